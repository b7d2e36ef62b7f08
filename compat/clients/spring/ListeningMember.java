package compat;

import java.util.Properties;
import org.springframework.kafka.listener.AcknowledgingMessageListener;
import org.springframework.kafka.listener.ConcurrentMessageListenerContainer;
import org.springframework.kafka.listener.ContainerProperties;

/** A listener container, as a method with KafkaListener gets it. */
final class ListeningMember extends Member {
    private final ConcurrentMessageListenerContainer<?, ?> container;

    ListeningMember(ConcurrentMessageListenerContainer<?, ?> container, Properties settings) {
        this.container = container;
        ContainerProperties how = container.getContainerProperties();
        how.setKafkaConsumerProperties(settings);
        how.setGroupId(settings.getProperty("group.id"));
        how.setPollTimeout(100);
        how.setAckMode(ContainerProperties.AckMode.MANUAL);
        how.setConsumerRebalanceListener(this);
        AcknowledgingMessageListener<byte[], byte[]> listener = (record, acknowledgment) -> {
            if (takes(record)) {
                acknowledgment.acknowledge();
            }
        };
        how.setMessageListener(listener);
    }

    @Override
    void start() {
        container.start();
    }

    @Override
    public void close() {
        container.stop();
    }
}
