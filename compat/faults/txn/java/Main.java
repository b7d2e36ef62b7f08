package faults.txn;

import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A transactional program of compat/faults: kafka-clients, a producer and a consumer side by side. */
final class Main {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    private static final String ID = System.getenv("QE_FAULTS_TXN_ID");
    private static final String OUTPUT = System.getenv("QE_FAULTS_OUTPUT");

    private final KafkaConsumer<String, String> consumer = new KafkaConsumer<>(consumerSettings());
    private volatile boolean stopping;

    private Main() {}

    public static void main(String[] args) {
        new Main().run();
    }

    private void run() {
        Thread watch = new Thread(this::watch, "stdin");
        watch.setDaemon(true);
        watch.start();
        consumer.subscribe(List.of(System.getenv("QE_FAULTS_INPUT")));
        for (int life = 1; !stopping; life++) {
            try (KafkaProducer<String, String> producer = new KafkaProducer<>(producerSettings())) {
                live(producer, life);
            }
            rewind();
        }
        consumer.close();
        say("done");
    }

    private void watch() {
        try {
            System.in.transferTo(PrintStream.nullOutputStream());
        } catch (IOException e) {
            e.printStackTrace();
        }
        stopping = true;
    }

    /** Goes from transaction to transaction with one producer, until that is of no use any more. */
    private void live(KafkaProducer<String, String> producer, int life) {
        say("init " + life);
        try {
            producer.initTransactions();
        } catch (KafkaException e) {
            met(life, 0, "init", e, false);
            return;
        }
        say("inited " + life);
        int number = 1;
        while (!stopping) {
            ConsumerRecords<String, String> records = again(() -> consumer.poll(Duration.ofMillis(200)));
            if (!records.isEmpty() && !new Transaction(producer, life, number++).run(records)) {
                return;
            }
        }
    }

    /** One transaction. */
    private final class Transaction {
        private final KafkaProducer<String, String> producer;
        private final int life;
        private final int number;
        private String call = "begin";

        Transaction(KafkaProducer<String, String> producer, int life, int number) {
            this.producer = producer;
            this.life = life;
            this.number = number;
        }

        /** Returns false if the producer is of no use any more. */
        boolean run(ConsumerRecords<String, String> records) {
            try {
                producer.beginTransaction();
                write(records);
            } catch (KafkaException e) {
                return giveUp(e);
            }
            say("committed " + life + " " + number);
            return true;
        }

        private void write(ConsumerRecords<String, String> records) {
            Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
            Map<Integer, StringJoiner> writes = new TreeMap<>();
            Map<Integer, Long> offsets = new TreeMap<>();
            call = "produce";
            for (ConsumerRecord<String, String> r : records) {
                producer.send(new ProducerRecord<>(OUTPUT, r.partition(), null, r.value() + " " + ID + "/" + life + "/" + number));
                next.put(new TopicPartition(r.topic(), r.partition()), new OffsetAndMetadata(r.offset() + 1));
                writes.computeIfAbsent(r.partition(), p -> new StringJoiner(",", p + ":", "")).add(r.value());
                offsets.put(r.partition(), r.offset() + 1);
            }
            producer.flush();
            call = "offsets";
            producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
            call = "commit";
            StringJoiner all = new StringJoiner(";");
            writes.values().forEach(w -> all.add(w.toString()));
            StringJoiner nexts = new StringJoiner(";");
            offsets.forEach((p, o) -> nexts.add(p + ":" + o));
            say("commit " + life + " " + number + " " + all + " " + nexts);
            commit();
        }

        /** A commit that has timed out is asked for again: only so is its outcome known. */
        private void commit() {
            while (true) {
                try {
                    producer.commitTransaction();
                    return;
                } catch (TimeoutException e) {
                    say("met " + life + " " + number + " commit retry " + e.getClass().getSimpleName());
                }
            }
        }

        /** Aborts where the producer lets itself be aborted. */
        private boolean giveUp(KafkaException why) {
            try {
                producer.abortTransaction();
            } catch (KafkaException fatal) {
                met(life, number, call, why, false);
                return false;
            }
            met(life, number, call, why, true);
            say("aborted " + life + " " + number);
            rewind();
            return true;
        }
    }

    /** Goes back to what is committed. */
    private void rewind() {
        again(() -> consumer.committed(consumer.assignment(), Duration.ofSeconds(30))).forEach((partition, offset) ->
                consumer.seek(partition, offset == null ? 0 : offset.offset()));
    }

    /** Asks the consumer again: what a coordinator cannot read at the moment it throws, for good it seems (docs/CLIENTS.md). */
    private static <T> T again(Supplier<T> call) {
        for (int failures = 0; ; failures++) {
            try {
                return call.get();
            } catch (KafkaException e) {
                if (failures == 20) {
                    throw e;
                }
                System.err.println("again after " + e);
            }
        }
    }

    private static void met(int life, int number, String call, KafkaException e, boolean aborted) {
        Throwable root = e;
        while (root.getCause() != null) {
            root = root.getCause();
        }
        boolean fenced = root instanceof ProducerFencedException || root instanceof InvalidProducerEpochException;
        String what = aborted ? "abort" : fenced ? "fenced" : "fatal";
        say("met " + life + " " + number + " " + call + " " + what + " " + root.getClass().getSimpleName());
    }

    private static Map<String, Object> common() {
        Map<String, Object> s = new HashMap<>();
        s.put("bootstrap.servers", System.getenv("QE_FAULTS_BOOTSTRAP"));
        s.put("security.protocol", "SASL_PLAINTEXT");
        s.put("sasl.mechanism", "PLAIN");
        s.put("sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"java\" password=\""
                + System.getenv("QE_FAULTS_TOKEN") + "\";");
        return s;
    }

    private static Map<String, Object> producerSettings() {
        Map<String, Object> s = common();
        s.put("transactional.id", ID);
        s.put("transaction.timeout.ms", System.getenv("QE_FAULTS_TXN_TIMEOUT_MS"));
        s.put("key.serializer", StringSerializer.class);
        s.put("value.serializer", StringSerializer.class);
        return s;
    }

    private static Map<String, Object> consumerSettings() {
        Map<String, Object> s = common();
        s.put("group.id", System.getenv("QE_FAULTS_GROUP"));
        s.put("isolation.level", "read_committed");
        s.put("enable.auto.commit", false);
        s.put("auto.offset.reset", "earliest");
        s.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer.RangeAssignor");
        s.put("heartbeat.interval.ms", 300);
        s.put("session.timeout.ms", 10_000);
        s.put("key.deserializer", StringDeserializer.class);
        s.put("value.deserializer", StringDeserializer.class);
        return s;
    }

    private static synchronized void say(String words) {
        OUT.println(ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now()) + " " + words);
    }
}
