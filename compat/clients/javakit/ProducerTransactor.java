package compat;

import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;

/** A transactional producer of kafka-clients, whoever made it; end is how it is closed. */
record ProducerTransactor(Producer<byte[], byte[]> producer, Runnable end) implements Client.Transactor {
    @Override
    public void begin() {
        producer.beginTransaction();
    }

    @Override
    public Future<RecordMetadata> send(ProducerRecord<byte[], byte[]> record) {
        return producer.send(record);
    }

    @Override
    @SuppressWarnings("removal") // what replaces this constructor is not in 3.6
    public void offsets(String group, Map<TopicPartition, OffsetAndMetadata> offsets) {
        producer.sendOffsetsToTransaction(offsets, new ConsumerGroupMetadata(group));
    }

    @Override
    public void commit() {
        producer.commitTransaction();
    }

    @Override
    public void abort() {
        producer.abortTransaction();
    }

    @Override
    public void close() {
        end.run();
    }
}
