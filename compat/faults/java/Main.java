package faults;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringSerializer;

/** An idempotent producer program of compat/faults: kafka-clients as they are by default. */
final class Main {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private Main() {}

    public static void main(String[] args) throws Exception {
        String topic = System.getenv("QE_FAULTS_TOPIC");
        int partitions = Integer.parseInt(System.getenv("QE_FAULTS_PARTITIONS"));
        String padding = " " + "x".repeat(100);
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(settings());
                BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            say("ready");
            int next = 0;
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                int end = Integer.parseInt(line);
                for (; next < end; next++) {
                    int n = next;
                    producer.send(new ProducerRecord<>(topic, n % partitions, null, n + padding), (where, e) -> {
                        if (e != null) {
                            say("failed " + n + " " + e.toString().replaceAll("\\s+", " "));
                        } else {
                            say("acked " + n + " " + where.offset());
                        }
                    });
                }
            }
            producer.flush();
        }
        say("done");
    }

    private static Map<String, Object> settings() {
        Map<String, Object> s = new HashMap<>();
        s.put("bootstrap.servers", System.getenv("QE_FAULTS_BOOTSTRAP"));
        s.put("security.protocol", "SASL_PLAINTEXT");
        s.put("sasl.mechanism", "PLAIN");
        s.put("sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"java\" password=\""
                + System.getenv("QE_FAULTS_TOKEN") + "\";");
        s.put("key.serializer", StringSerializer.class);
        s.put("value.serializer", StringSerializer.class);
        s.put("batch.size", 4096); // so that there are many
        return s;
    }

    private static synchronized void say(String line) {
        OUT.println(line);
    }
}
