package compat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Predicate;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.SaslAuthenticationException;

/** Takes a client through the shared list of checks. What a check does and prints: README.md one folder up. */
final class Checks {
    private static final Duration STEP = Duration.ofSeconds(15); // every deadline of the client is shorter
    private static final TopicPartition READ = new TopicPartition(Env.READ_TOPIC, 0);
    private static final TopicPartition TIME = new TopicPartition(Env.TIME_TOPIC, 0);

    // A producer as it comes is idempotent; one that is not sends nothing twice.
    private static final Map<String, Object> AS_IT_COMES = Map.of();
    private static final Map<String, Object> NOT_IDEMPOTENT =
            Map.of("enable.idempotence", false, "acks", "all", "retries", 0);
    // Every record is a batch, so that five are on their way at any time.
    private static final Map<String, Object> IDEMPOTENT =
            Map.of("enable.idempotence", true, "acks", "all", "batch.size", 0);

    private final Client client;
    private final List<Row> rows;
    private final Report report;

    private Checks(Client client, List<Row> rows, Report report) {
        this.client = client;
        this.rows = rows;
        this.report = report;
    }

    static void run(Client client, Report report) throws Exception {
        Groups groups = new Groups(client, report);
        String memberOf = System.getenv(Groups.MEMBER);
        if (memberOf != null) {
            groups.beMember(memberOf);
            return;
        }
        report.line("client", client.name(), client.version());
        Checks c = new Checks(client, Row.read(Env.DATASET), report);
        c.check("connect", c::connect);
        c.check("bad-token", () -> c.loginRefused("bad-token", "not-a-token"));
        c.check("missing-scope", () -> c.loginRefused("missing-scope", Env.ACME_NOREAD));
        c.check("scope-produce", c::scopeProduce);
        c.check("scope-consume", c::scopeConsume);
        c.check("create-by-produce", () -> c.produce("create-by-produce", "create-by-produce", AS_IT_COMES));
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            c.check("codec-" + codec, () -> c.produce("codec-" + codec, "codec", oneBatch(codec)));
        }
        for (String name : List.of("keys-and-nulls", "headers", "timestamps", "sizes")) {
            c.check(name, () -> c.produce(name, name, NOT_IDEMPOTENT));
        }
        c.check("consume", c::consume);
        c.check("seek", c::seek);
        c.check("by-time", c::byTime);
        c.check("isolation", c::isolation);
        c.check("idempotent", () -> c.produce("idempotent", "idempotent", IDEMPOTENT));
        c.check("group-resume", groups::resume);
        c.check("group-3", () -> groups.share("group-3", 3, false));
        c.check("group-10", () -> groups.share("group-10", 10, false));
        c.check("group-cooperative", () -> groups.share("group-cooperative", 3, true));
        c.check("group-killed", groups::killed);
        c.check("group-static", groups::stays);
        Admins admins = new Admins(client, report);
        c.check("admin-topics", admins::topics);
        c.check("admin-configs", admins::configs);
        c.check("admin-groups", admins::groups);
        Transactions transactions = new Transactions(client, c.rows, report);
        c.check("txn-commit", transactions::commit);
        c.check("txn-abort", transactions::abort);
        c.check("txn-fenced", transactions::fenced);
    }

    private interface Step {
        void run() throws Exception;
    }

    private void check(String name, Step step) {
        long start = System.nanoTime();
        try {
            step.run();
            report.pass(name);
        } catch (Throwable why) {
            report.fail(name, why);
        }
        System.err.println(name + ": " + Duration.ofNanos(System.nanoTime() - start).toMillis() + " ms");
    }

    private void connect() {
        try (Consumer<byte[], byte[]> consumer = consumer(Env.ACME)) {
            for (PartitionInfo partition : consumer.partitionsFor(Env.READ_TOPIC)) {
                for (Node node : partition.replicas()) {
                    expect(Env.BOOTSTRAP, node.host() + ":" + node.port());
                }
                expect(1, partition.replicas().length);
            }
        }
    }

    /** A consumer and a producer are both shown the refusal. */
    private void loginRefused(String check, String token) throws Exception {
        List<Throwable> shown = new ArrayList<>();
        try (Consumer<byte[], byte[]> consumer = consumer(token)) {
            shown.add(refusal(SaslAuthenticationException.class, consumer::listTopics));
        }
        try (Client.Sender producer = client.producer(token, AS_IT_COMES)) {
            ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(Env.READ_TOPIC, 0, null, null);
            shown.add(refusal(SaslAuthenticationException.class, () -> await(producer.send(record))));
        }
        expect(true, shown.stream().map(Checks::root).map(Throwable::getMessage).distinct().count() == 1);
        report.said(check, shown.get(0));
    }

    private void scopeProduce() throws Exception {
        ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(Env.READ_TOPIC, 0, null, null);
        for (Map<String, Object> settings : List.of(NOT_IDEMPOTENT, AS_IT_COMES)) {
            try (Client.Sender producer = client.producer(Env.ACME_CONSUME, settings)) {
                Throwable refusal = refusal(AuthorizationException.class, () -> await(producer.send(record)));
                report.said("scope-produce", refusal);
            }
        }
    }

    private void scopeConsume() throws Exception {
        try (Consumer<byte[], byte[]> consumer = consumer(Env.ACME_PRODUCE)) {
            consumer.assign(List.of(READ));
            consumer.seek(READ, 0);
            Step poll = () -> read(consumer, records -> !records.isEmpty());
            report.said("scope-consume", refusal(AuthorizationException.class, poll));
        }
    }

    private static Map<String, Object> oneBatch(String codec) {
        return Map.of("compression.type", codec, "batch.size", 900_000, "linger.ms", 1_000);
    }

    /** Sends the lines of the data set and sees to it that they got the offsets from 0 on, each at the first try. */
    private void produce(String check, String lines, Map<String, Object> settings) throws Exception {
        String topic = client.named(check);
        try (Client.Sender producer = client.producer(Env.ACME, settings)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (Row row : rows) {
                if (row.check().equals(lines)) {
                    sent.add(producer.send(row.toRecord(topic)));
                }
            }
            producer.flush();
            for (int i = 0; i < sent.size(); i++) {
                RecordMetadata metadata = await(sent.get(i));
                expect(0, metadata.partition());
                expect((long) i, metadata.offset());
            }
            expect(0.0, metric(producer, "record-retry-total"));
            expect(0.0, metric(producer, "record-error-total"));
            boolean compressed = metric(producer, "compression-rate-avg") < 1;
            expect(!settings.getOrDefault("compression.type", "none").equals("none"), compressed);
        }
        report.line("topic", check, topic);
    }

    private void consume() {
        try (Consumer<byte[], byte[]> consumer = consumer(Env.ACME)) {
            consumer.assign(List.of(READ));
            expect(Map.of(READ, 0L), consumer.beginningOffsets(List.of(READ)));
            expect(Map.of(READ, Env.READ_COUNT), consumer.endOffsets(List.of(READ)));
            consumer.seekToBeginning(List.of(READ));
            print("consume", read(consumer, records -> records.size() >= Env.READ_COUNT));
        }
    }

    private void seek() {
        Map<String, Object> settings = Map.of("max.poll.records", 1, "isolation.level", "read_committed");
        try (Consumer<byte[], byte[]> consumer = client.consumer(Env.ACME, settings)) {
            consumer.assign(List.of(READ));
            for (long offset : List.of(5L, 1L)) {
                // An epoch of another cluster's must not matter here.
                consumer.seek(READ, new OffsetAndMetadata(offset, Optional.of(Groups.FOREIGN_EPOCH), ""));
                print("seek", read(consumer, records -> !records.isEmpty()));
                expect(offset + 1, consumer.position(READ));
            }
        }
    }

    private void byTime() {
        try (Consumer<byte[], byte[]> consumer = consumer(Env.ACME)) {
            consumer.assign(List.of(TIME));
            OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(TIME, Env.TIME)).get(TIME);
            consumer.seek(TIME, found.offset());
            print("by-time", read(consumer, records -> !records.isEmpty()).subList(0, 1));
        }
    }

    private void isolation() {
        try (Consumer<byte[], byte[]> consumer = consumer(Env.GLOBEX)) {
            consumer.assign(List.of(READ));
            consumer.seekToBeginning(List.of(READ));
            long end = consumer.endOffsets(List.of(READ)).get(READ);
            print("isolation", read(consumer, records -> consumer.position(READ) >= end));
            for (String topic : new TreeSet<>(consumer.listTopics().keySet())) {
                report.line("list", topic);
            }
        }
    }

    private Consumer<byte[], byte[]> consumer(String token) {
        return client.consumer(token, Map.of());
    }

    private static List<ConsumerRecord<byte[], byte[]>> read(
            Consumer<byte[], byte[]> consumer, Predicate<List<ConsumerRecord<byte[], byte[]>>> done) {
        List<ConsumerRecord<byte[], byte[]>> out = new ArrayList<>();
        long deadline = System.nanoTime() + STEP.toNanos();
        while (!done.test(out)) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("only " + out.size() + " records within " + STEP);
            }
            consumer.poll(Duration.ofSeconds(1)).forEach(out::add);
        }
        return out;
    }

    private void print(String check, List<ConsumerRecord<byte[], byte[]>> records) {
        for (ConsumerRecord<byte[], byte[]> record : records) {
            report.line("read", check, Row.show(record));
        }
    }

    private static <T> T await(Future<T> future) throws Exception {
        try {
            return future.get(STEP.toSeconds(), TimeUnit.SECONDS);
        } catch (TimeoutException e) {
            throw new IllegalStateException("not sent within " + STEP);
        }
    }

    /** What a step throws that must be refused for this reason, as the application gets it. */
    private static Throwable refusal(Class<? extends Throwable> reason, Step step) throws Exception {
        try {
            step.run();
        } catch (Exception shown) {
            if (reason.isInstance(root(shown))) {
                return shown instanceof ExecutionException ? shown.getCause() : shown;
            }
            throw shown;
        }
        throw new IllegalStateException("it was not refused");
    }

    private static Throwable root(Throwable t) {
        return t.getCause() == null ? t : root(t.getCause());
    }

    private static double metric(Client.Sender producer, String name) {
        return producer.metrics().entrySet().stream()
                .filter(m -> m.getKey().group().equals("producer-metrics") && m.getKey().name().equals(name))
                .map(m -> (Double) m.getValue().metricValue())
                .findFirst().orElseThrow();
    }

    private static void expect(Object want, Object got) {
        if (!want.equals(got)) {
            throw new IllegalStateException("want " + want + ", got " + got);
        }
    }
}
