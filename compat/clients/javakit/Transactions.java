package compat;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/** The checks of transactions. Which offsets they commit, and for what: README.md one folder up. */
final class Transactions {
    private final Client client;
    private final List<Row> rows;
    private final Report report;

    Transactions(Client client, List<Row> rows, Report report) {
        this.client = client;
        this.rows = rows;
        this.report = report;
    }

    void commit() throws Exception {
        Case c = new Case("txn-commit");
        try (Client.Transactor producer = client.transactor(Env.ACME, c.name)) {
            producer.begin();
            c.good(producer);
            producer.commit();
        }
    }

    void abort() throws Exception {
        Case c = new Case("txn-abort");
        try (Client.Transactor producer = client.transactor(Env.ACME, c.name)) {
            producer.begin();
            c.never(producer);
            producer.abort();
            producer.begin();
            c.good(producer);
            producer.commit();
        }
    }

    void fenced() throws Exception {
        Case c = new Case("txn-fenced");
        try (Client.Transactor first = client.transactor(Env.ACME, c.name)) {
            first.begin();
            c.never(first);
            try (Client.Transactor second = client.transactor(Env.ACME, c.name)) {
                second.begin();
                c.good(second);
                second.commit();
            }
            report.said(c.check, refusal(() -> c.send(first, List.of(c.record("of a fenced one")))));
            report.said(c.check, refusal(first::commit));
        }
    }

    private interface Step {
        void run() throws Exception;
    }

    private static Throwable refusal(Step step) {
        try {
            step.run();
        } catch (Exception shown) {
            return shown instanceof ExecutionException ? shown.getCause() : shown;
        }
        throw new IllegalStateException("a fenced producer goes on");
    }

    /** What one check has: a topic, a group and a transactional id of one name. */
    private final class Case {
        private final String check;
        private final String name;

        Case(String check) {
            this.check = check;
            name = client.named(check);
            report.line("topic", check, name);
            report.line("group", check, name);
        }

        /** What is to be seen of each check. */
        void good(Client.Transactor producer) throws Exception {
            List<ProducerRecord<byte[], byte[]>> lines = new ArrayList<>();
            for (Row row : rows) {
                if (row.check().equals(check)) {
                    lines.add(row.toRecord(name));
                }
            }
            send(producer, lines);
            producer.offsets(name, Admins.offsets(Map.of(1, 4L, 2, 7L)));
        }

        /** What is not to be seen. */
        void never(Client.Transactor producer) throws Exception {
            send(producer, List.of(record("never")));
            producer.offsets(name, Admins.offsets(Map.of(0, 9L)));
        }

        ProducerRecord<byte[], byte[]> record(String value) {
            return new ProducerRecord<>(name, 0, null, value.getBytes());
        }

        void send(Client.Transactor producer, List<ProducerRecord<byte[], byte[]>> records) throws Exception {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (ProducerRecord<byte[], byte[]> record : records) {
                sent.add(producer.send(record));
            }
            for (Future<RecordMetadata> one : sent) {
                one.get();
            }
        }
    }
}
