package compat;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** A consumer with a thread that polls it. */
final class PolledMember extends Member {
    private final Consumer<byte[], byte[]> consumer;
    private final Thread thread = new Thread(this::poll);
    private volatile boolean over;

    PolledMember(Consumer<byte[], byte[]> consumer) {
        this.consumer = consumer;
        consumer.subscribe(List.of(Env.GROUP_TOPIC), this);
    }

    @Override
    void start() {
        thread.start();
    }

    private void poll() {
        Map<TopicPartition, OffsetAndMetadata> taken = new HashMap<>();
        try (consumer) {
            while (!over) {
                for (ConsumerRecord<byte[], byte[]> r : consumer.poll(Duration.ofMillis(100))) {
                    if (takes(r)) {
                        taken.put(new TopicPartition(r.topic(), r.partition()), after(r));
                    }
                }
            }
            if (!taken.isEmpty()) {
                consumer.commitSync(taken);
            }
        } catch (RuntimeException e) {
            fail(e);
        }
    }

    /** A position under a leader epoch of another cluster's: here it must not matter. */
    private static OffsetAndMetadata after(ConsumerRecord<byte[], byte[]> record) {
        return new OffsetAndMetadata(record.offset() + 1, Optional.of(Groups.FOREIGN_EPOCH), "");
    }

    @Override
    public void close() {
        over = true;
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
