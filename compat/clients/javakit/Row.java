package compat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/** A line of the data set. The timestamp is null where it is left to the client. */
record Row(String check, byte[] key, byte[] value, Long timestamp, List<Header> headers) {

    static List<Row> read(String file) throws IOException {
        List<Row> rows = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(file))) {
            if (!line.isEmpty() && !line.startsWith("#")) {
                rows.add(parse(line));
            }
        }
        return rows;
    }

    ProducerRecord<byte[], byte[]> toRecord(String topic) {
        return new ProducerRecord<>(topic, 0, timestamp, key, value, headers);
    }

    /** The last five words of a line "read". */
    static String show(ConsumerRecord<byte[], byte[]> record) {
        return String.join(" ", String.valueOf(record.offset()), show(record.key()), show(record.value()),
                String.valueOf(record.timestamp()), show(record.headers()));
    }

    private static Row parse(String line) {
        String[] f = line.split("\t", -1);
        if (f.length != 6) {
            throw new IllegalArgumentException("a line of the data set has " + f.length + " fields: " + line);
        }
        Long timestamp = f[4].equals("now") ? null : Long.valueOf(f[4]);
        return new Row(f[0], bytes(f[2]), bytes(f[3]), timestamp, headers(f[5]));
    }

    private static byte[] bytes(String form) {
        if (form.equals("null")) {
            return null;
        }
        String rest = form.substring(1);
        return switch (form.charAt(0)) {
            case 'x' -> HexFormat.of().parseHex(rest);
            case 'r' -> letters(Integer.parseInt(rest));
            default -> throw new IllegalArgumentException("not a form of the data set: " + form);
        };
    }

    private static byte[] letters(int n) {
        byte[] out = new byte[n];
        for (int i = 0; i < n; i++) {
            out[i] = (byte) ('a' + i % 26);
        }
        return out;
    }

    private static List<Header> headers(String form) {
        List<Header> out = new ArrayList<>();
        if (form.equals("none")) {
            return out;
        }
        for (String header : form.split(",")) {
            String[] pair = header.split("=", 2);
            out.add(new RecordHeader(new String(bytes(pair[0]), StandardCharsets.UTF_8), bytes(pair[1])));
        }
        return out;
    }

    private static String show(byte[] bytes) {
        return bytes == null ? "null" : "x" + HexFormat.of().formatHex(bytes);
    }

    private static String show(Iterable<Header> headers) {
        List<String> out = new ArrayList<>();
        for (Header h : headers) {
            out.add(show(h.key().getBytes(StandardCharsets.UTF_8)) + "=" + show(h.value()));
        }
        return out.isEmpty() ? "none" : String.join(",", out);
    }
}
