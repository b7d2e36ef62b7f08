package compat;

import java.io.IOException;
import java.io.InputStream;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** kafka-clients, of whichever version is on the classpath. */
final class Main implements Client {
    private final String version;

    private Main() throws IOException {
        version = ownVersion();
    }

    public static void main(String[] args) throws Exception {
        Checks.run(new Main(), new Report());
    }

    @Override
    public String name() {
        return "java";
    }

    @Override
    public String version() {
        return version;
    }

    @Override
    public Consumer<byte[], byte[]> consumer(String token, Map<String, Object> settings) {
        Map<String, Object> all = connection(token);
        all.put("default.api.timeout.ms", 10_000);
        all.put("request.timeout.ms", 8_000);
        all.putAll(settings);
        return new KafkaConsumer<>(all, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    @Override
    public Member member(String token, Map<String, Object> settings) {
        return new PolledMember(consumer(token, settings));
    }

    @Override
    public Sender producer(String token, Map<String, Object> settings) {
        return new Plain(bytes(token, settings));
    }

    @Override
    public Admin admin(String token) {
        Map<String, Object> all = connection(token);
        all.put("default.api.timeout.ms", 10_000);
        all.put("request.timeout.ms", 8_000);
        return Admin.create(all);
    }

    @Override
    public Transactor transactor(String token, String id) {
        KafkaProducer<byte[], byte[]> producer = bytes(token, Map.of("transactional.id", id));
        producer.initTransactions();
        return new ProducerTransactor(producer, producer::close);
    }

    private static KafkaProducer<byte[], byte[]> bytes(String token, Map<String, Object> settings) {
        Map<String, Object> all = connection(token);
        all.put("max.block.ms", 10_000);
        all.put("request.timeout.ms", 8_000);
        all.put("delivery.timeout.ms", 10_000);
        all.putAll(settings);
        return new KafkaProducer<>(all, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static Map<String, Object> connection(String token) {
        Map<String, Object> s = new HashMap<>();
        s.put("bootstrap.servers", Env.BOOTSTRAP);
        s.put("security.protocol", "SASL_SSL");
        s.put("ssl.truststore.type", "PEM");
        s.put("ssl.truststore.location", Env.CA);
        s.put("sasl.mechanism", "PLAIN");
        s.put("sasl.jaas.config", Env.login(token));
        return s;
    }

    private static String ownVersion() throws IOException {
        Properties properties = new Properties();
        try (InputStream in = KafkaProducer.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            properties.load(in);
        }
        return properties.getProperty("version");
    }

    private record Plain(KafkaProducer<byte[], byte[]> producer) implements Sender {
        @Override
        public Future<RecordMetadata> send(ProducerRecord<byte[], byte[]> record) {
            return producer.send(record);
        }

        @Override
        public void flush() {
            producer.flush();
        }

        @Override
        public Map<MetricName, ? extends Metric> metrics() {
            return producer.metrics();
        }

        @Override
        public void close() {
            producer.close();
        }
    }
}
