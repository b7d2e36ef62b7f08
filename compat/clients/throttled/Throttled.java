import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;

/**
 * Apache Kafka's Java clients: a producer, and a member of a group that reads meanwhile. The last line is the longest that
 * brokers asked to wait, by the clients' own metrics, in ms.
 */
public final class Throttled {
    private static final String NAME = System.getenv("THROTTLED_NAME");
    private static final int RECORDS = Integer.parseInt(System.getenv("THROTTLED_RECORDS"));

    private Throttled() {}

    public static void main(String[] args) throws Exception {
        double seen;
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(common("Serializer", Map.of("linger.ms", "0")))) {
            producer.send(new ProducerRecord<>(NAME, "0")).get();
            try (KafkaConsumer<String, String> member = new KafkaConsumer<>(common("Deserializer", Map.of(
                    "group.id", NAME, "auto.offset.reset", "earliest", "enable.auto.commit", "false",
                    "session.timeout.ms", "6000", "heartbeat.interval.ms", "1000")))) {
                member.subscribe(List.of(NAME));
                CompletableFuture<Void> rest = CompletableFuture.runAsync(() -> send(producer));
                int got = 0;
                while (got < RECORDS) {
                    int more = member.poll(Duration.ofSeconds(1)).count();
                    if (more > 0) {
                        member.commitSync();
                    }
                    got += more;
                    if (rest.isCompletedExceptionally()) {
                        rest.get();
                    }
                }
                rest.get();
                seen = longest(member.metrics(), "fetch-throttle-time-max");
            }
            seen = Math.max(seen, longest(producer.metrics(), "produce-throttle-time-max"));
        }
        System.out.println(seen);
    }

    private static void send(KafkaProducer<String, String> producer) {
        for (int i = 1; i < RECORDS; i++) {
            try {
                producer.send(new ProducerRecord<>(NAME, Integer.toString(i))).get();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }
    }

    private static double longest(Map<MetricName, ? extends Metric> metrics, String name) {
        return metrics.entrySet().stream()
                .filter(m -> m.getKey().name().equals(name))
                .mapToDouble(m -> ((Number) m.getValue().metricValue()).doubleValue())
                .filter(v -> !Double.isNaN(v))
                .max().orElse(0);
    }

    private static Properties common(String kind, Map<String, String> more) {
        Properties p = new Properties();
        p.put("bootstrap.servers", System.getenv("THROTTLED_ADDR"));
        p.put("security.protocol", "SASL_SSL");
        p.put("sasl.mechanism", "PLAIN");
        p.put("sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"throttled\" password=\""
                + System.getenv("THROTTLED_TOKEN") + "\";");
        p.put("ssl.truststore.type", "PEM");
        p.put("ssl.truststore.location", System.getenv("THROTTLED_CA"));
        String package_ = "org.apache.kafka.common.serialization.String" + kind;
        p.put(("key." + kind).toLowerCase(), package_);
        p.put(("value." + kind).toLowerCase(), package_);
        p.putAll(more);
        return p;
    }
}
