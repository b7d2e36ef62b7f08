package compat;

import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.TopicPartition;

/** What the checks need of a library: consumers and producers that log in with a token. */
interface Client {
    String name();

    String version();

    Consumer<byte[], byte[]> consumer(String token, Map<String, Object> settings);

    Sender producer(String token, Map<String, Object> settings);

    /** A member of a group, by a consumer's settings, that reads the topic that groups read. */
    Member member(String token, Map<String, Object> settings);

    Admin admin(String token);

    /** Makes a transactional producer, which fences those of the same id. */
    Transactor transactor(String token, String id);

    /** The name of what a check makes: a topic, a group, a transactional id. */
    default String named(String check) {
        return (Env.RUN + "-" + name() + "-" + version() + "-" + check).replaceAll("[^A-Za-z0-9._-]", "_");
    }

    /** A transactional producer. */
    interface Transactor extends AutoCloseable {
        void begin();

        Future<RecordMetadata> send(ProducerRecord<byte[], byte[]> record);

        void offsets(String group, Map<TopicPartition, OffsetAndMetadata> offsets);

        void commit();

        void abort();

        @Override
        void close();
    }

    /** A producer. A send ends with the offset or with what its caller is shown. */
    interface Sender extends AutoCloseable {
        Future<RecordMetadata> send(ProducerRecord<byte[], byte[]> record);

        void flush();

        Map<MetricName, ? extends Metric> metrics();

        @Override
        void close();
    }
}
