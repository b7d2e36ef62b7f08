import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Apache Kafka's Java clients: a producer with many requests in flight, and a member of a group that reads meanwhile. The last
 * line is how many records were acknowledged, and how many were read more than once.
 */
public final class Relogin {
    private static final String NAME = System.getenv("RELOGIN_NAME");
    private static final int IN_FLIGHT = Integer.parseInt(System.getenv("RELOGIN_INFLIGHT"));
    private static final long MS = Long.parseLong(System.getenv("RELOGIN_MS"));

    private Relogin() {}

    public static void main(String[] args) throws Exception {
        int again = 0;
        Set<String> seen = new HashSet<>();
        int total;
        // A batch holds one record: each is a request, up to as many as may be in flight.
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(common("Serializer", Map.of(
                "linger.ms", "0", "batch.size", "1", "enable.idempotence", "false",
                "max.in.flight.requests.per.connection", Integer.toString(IN_FLIGHT))))) {
            producer.send(new ProducerRecord<>(NAME, "0")).get();
            try (KafkaConsumer<String, String> member = new KafkaConsumer<>(common("Deserializer", Map.of(
                    "group.id", NAME, "auto.offset.reset", "earliest", "auto.commit.interval.ms", "500")))) {
                member.subscribe(List.of(NAME));
                CompletableFuture<Integer> sent = CompletableFuture.supplyAsync(() -> send(producer));
                while (!sent.isDone() || seen.size() < sent.get()) {
                    for (ConsumerRecord<String, String> r : member.poll(Duration.ofMillis(200))) {
                        if (!seen.add(r.value())) {
                            again++;
                        }
                    }
                }
                total = sent.get();
            }
        }
        System.out.println(total + " " + again);
    }

    private static int send(KafkaProducer<String, String> producer) {
        long end = System.nanoTime() + MS * 1_000_000;
        Semaphore places = new Semaphore(IN_FLIGHT);
        AtomicReference<Exception> failed = new AtomicReference<>();
        int n = 1;
        for (; System.nanoTime() < end && failed.get() == null; n++) {
            places.acquireUninterruptibly();
            producer.send(new ProducerRecord<>(NAME, Integer.toString(n)), (metadata, e) -> {
                places.release();
                if (e != null) {
                    failed.compareAndSet(null, e);
                }
            });
        }
        producer.flush();
        if (failed.get() != null) {
            throw new IllegalStateException(failed.get());
        }
        return n;
    }

    private static Properties common(String kind, Map<String, String> more) {
        Properties p = new Properties();
        p.put("bootstrap.servers", System.getenv("RELOGIN_ADDR"));
        p.put("security.protocol", "SASL_SSL");
        p.put("sasl.mechanism", "PLAIN");
        p.put("sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"relogin\" password=\""
                + System.getenv("RELOGIN_TOKEN") + "\";");
        p.put("ssl.truststore.type", "PEM");
        p.put("ssl.truststore.location", System.getenv("RELOGIN_CA"));
        String text = "org.apache.kafka.common.serialization.String" + kind;
        p.put(("key." + kind).toLowerCase(), text);
        p.put(("value." + kind).toLowerCase(), text);
        p.putAll(more);
        return p;
    }
}
