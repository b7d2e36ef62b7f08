package compat;

import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.ConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaAdmin;
import org.springframework.kafka.core.KafkaTemplate;
import org.springframework.kafka.core.ProducerFactory;
import org.springframework.kafka.support.SendResult;
import org.springframework.stereotype.Component;

/** spring-kafka through the factories that Spring Boot made; only the login differs between checks. */
@Component
class Spring implements Client {
    private final ProducerFactory<byte[], byte[]> producers;
    private final ConsumerFactory<byte[], byte[]> consumers;
    private final ConcurrentKafkaListenerContainerFactory<?, ?> listeners;
    private final KafkaAdmin administration;

    Spring(ProducerFactory<byte[], byte[]> producers, ConsumerFactory<byte[], byte[]> consumers,
            ConcurrentKafkaListenerContainerFactory<?, ?> listeners, KafkaAdmin administration) {
        this.producers = producers;
        this.consumers = consumers;
        this.listeners = listeners;
        this.administration = administration;
    }

    @Override
    public String name() {
        return "spring";
    }

    @Override
    public String version() {
        return KafkaTemplate.class.getPackage().getImplementationVersion();
    }

    @Override
    public Consumer<byte[], byte[]> consumer(String token, Map<String, Object> settings) {
        return consumers.createConsumer(null, null, null, overrides(token, settings));
    }

    @Override
    public Member member(String token, Map<String, Object> settings) {
        return new ListeningMember(listeners.createContainer(Env.GROUP_TOPIC), overrides(token, settings));
    }

    private static Properties overrides(String token, Map<String, Object> settings) {
        Properties all = new Properties();
        all.put("sasl.jaas.config", Env.login(token));
        settings.forEach((name, value) -> all.put(name, value.toString()));
        return all;
    }

    @Override
    public Sender producer(String token, Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>(settings);
        all.put("sasl.jaas.config", Env.login(token));
        return new Template(new KafkaTemplate<>(producers, all));
    }

    /** KafkaAdmin makes topics and describes them; for the rest an application takes its settings. */
    @Override
    public Admin admin(String token) {
        Map<String, Object> all = new HashMap<>(administration.getConfigurationProperties());
        all.put("sasl.jaas.config", Env.login(token));
        return Admin.create(all);
    }

    /** A factory of its own: one factory gives every producer another id of its prefix. */
    @Override
    public Transactor transactor(String token, String id) {
        Map<String, Object> all = new HashMap<>(producers.getConfigurationProperties());
        all.put("sasl.jaas.config", Env.login(token));
        all.put("transactional.id", id);
        DefaultKafkaProducerFactory<byte[], byte[]> factory = new DefaultKafkaProducerFactory<>(all);
        return new ProducerTransactor(factory.createProducer(), factory::destroy);
    }

    private record Template(KafkaTemplate<byte[], byte[]> template) implements Sender {
        @Override
        public Future<RecordMetadata> send(ProducerRecord<byte[], byte[]> record) {
            return template.send(record).thenApply(SendResult::getRecordMetadata);
        }

        @Override
        public void flush() {
            template.flush();
        }

        @Override
        public Map<MetricName, ? extends Metric> metrics() {
            return template.metrics();
        }

        @Override
        public void close() {
            template.destroy();
        }
    }
}
