package compat;

import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;

/** What the checks need of a library: consumers and producers that log in with a token. */
interface Client {
    String name();

    String version();

    /** Whether its consumers take a group; else its folder says why not, in undriven. */
    default boolean groups() {
        return true;
    }

    Consumer<byte[], byte[]> consumer(String token, Map<String, Object> settings);

    Sender producer(String token, Map<String, Object> settings);

    /** A producer. A send ends with the offset or with what its caller is shown. */
    interface Sender extends AutoCloseable {
        Future<RecordMetadata> send(ProducerRecord<byte[], byte[]> record);

        void flush();

        Map<MetricName, ? extends Metric> metrics();

        @Override
        void close();
    }
}
