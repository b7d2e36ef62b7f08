package compat;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;

/** The checks of consumer groups: members in threads of their own, and one in a process that is killed. */
final class Groups {
    static final int FOREIGN_EPOCH = 7; // a leader epoch that another cluster may have given
    static final String MEMBER = "COMPAT_MEMBER"; // a process that is to be a member and be killed
    private static final Duration WAIT = Duration.ofSeconds(45);
    private static final String TOPIC = System.getenv("COMPAT_GROUP_TOPIC");

    private final Client client;
    private final Report report;

    Groups(Client client, Report report) {
        this.client = client;
        this.report = report;
    }

    /** One member. One thread polls it; what it holds may be asked for at any time. */
    private final class Member implements ConsumerRebalanceListener, AutoCloseable {
        private final Consumer<byte[], byte[]> consumer;
        private final TreeSet<Integer> held = new TreeSet<>(); // guarded by this
        private int told; // guarded by this
        private volatile boolean over;
        private volatile RuntimeException failure;
        private Thread thread;

        Member(String group, String instance, boolean cooperative) {
            Map<String, Object> s = new HashMap<>();
            s.put("group.id", group);
            s.put("enable.auto.commit", false);
            s.put("auto.offset.reset", "earliest");
            s.put("session.timeout.ms", 6000); // the least that is allowed
            s.put("heartbeat.interval.ms", 200);
            s.put("max.poll.records", 5);
            s.put("fetch.max.wait.ms", 100);
            String assignor = cooperative ? "CooperativeStickyAssignor" : "RangeAssignor";
            s.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer." + assignor);
            if (instance != null) {
                s.put("group.instance.id", instance);
            }
            consumer = client.consumer(Env.ACME, s);
            consumer.subscribe(List.of(TOPIC), this);
        }

        Iterable<ConsumerRecord<byte[], byte[]>> poll() {
            return consumer.poll(Duration.ofMillis(100));
        }

        /** Polls in a thread of its own until it is closed. */
        Member started() {
            thread = new Thread(() -> {
                try {
                    while (!over) {
                        poll();
                    }
                } catch (RuntimeException e) {
                    failure = e;
                } finally {
                    consumer.close();
                }
            });
            thread.start();
            return this;
        }

        synchronized int told() {
            return told;
        }

        synchronized TreeSet<Integer> held() {
            return new TreeSet<>(held);
        }

        @Override
        public synchronized void onPartitionsAssigned(Collection<TopicPartition> given) {
            given.forEach(p -> held.add(p.partition()));
            told++;
        }

        @Override
        public synchronized void onPartitionsRevoked(Collection<TopicPartition> taken) {
            taken.forEach(p -> held.remove(p.partition()));
        }

        @Override
        public void close() {
            over = true;
            if (thread == null) {
                consumer.close();
                return;
            }
            try {
                thread.join();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    private String group(String check) {
        String name = client.named(check);
        report.line("group", check, name);
        return name;
    }

    void resume() {
        String check = "group-resume";
        String group = group(check);
        int left = 4 * Integer.parseInt(System.getenv("COMPAT_GROUP_COUNT"));
        long deadline = System.nanoTime() + WAIT.toNanos();
        for (int stop : new int[] {left / 2, 0}) {
            try (Member m = new Member(group, null, false)) {
                while (left > stop) {
                    if (System.nanoTime() > deadline) {
                        throw new IllegalStateException(left + " records are left");
                    }
                    for (ConsumerRecord<byte[], byte[]> r : m.poll()) {
                        report.line("got", check, String.valueOf(r.partition()), String.valueOf(r.offset()));
                        left--;
                    }
                }
                m.consumer.commitSync(positions(m.consumer));
            }
        }
    }

    /** Positions under a leader epoch of another cluster's: here it must not matter. */
    private static Map<TopicPartition, OffsetAndMetadata> positions(Consumer<byte[], byte[]> consumer) {
        Map<TopicPartition, OffsetAndMetadata> at = new HashMap<>();
        for (TopicPartition p : consumer.assignment()) {
            at.put(p, new OffsetAndMetadata(consumer.position(p), Optional.of(FOREIGN_EPOCH), ""));
        }
        return at;
    }

    void share(String check, int n, boolean cooperative) throws Exception {
        String group = group(check);
        List<Member> members = new ArrayList<>();
        try {
            for (int i = 0; i < n; i++) {
                members.add(new Member(group, null, cooperative).started());
            }
            settle(members);
            show(check, members);
        } finally {
            members.parallelStream().forEach(Member::close);
        }
    }

    void killed() throws Exception {
        String check = "group-killed";
        String group = group(check);
        ProcessBuilder same = new ProcessBuilder(
                ProcessHandle.current().info().command().orElseThrow(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
                "-cp", System.getProperty("java.class.path"), "compat.Main");
        same.environment().put(MEMBER, group);
        Process victim = same.redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try (Member stays = new Member(group, null, false).started();
                BufferedReader lines = new BufferedReader(new InputStreamReader(victim.getInputStream()))) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                int mine = stays.held().size();
                if (line.matches("[123]") && mine > 0 && mine < 4) {
                    break;
                }
            }
            victim.destroyForcibly().waitFor();
            settle(List.of(stays));
            show(check, List.of(stays));
        } finally {
            victim.destroyForcibly();
        }
    }

    /** The process that is to be killed. */
    void beMember(String group) {
        long deadline = System.nanoTime() + WAIT.toNanos();
        try (Member m = new Member(group, null, false)) {
            while (System.nanoTime() < deadline) {
                m.poll();
                report.line(String.valueOf(m.held().size()));
            }
        }
    }

    void stays() throws Exception {
        String check = "group-static";
        String group = group(check);
        List<Member> members = new ArrayList<>();
        try {
            members.add(new Member(group, "stays", false).started());
            members.add(new Member(group, "restarts", false).started());
            settle(members);
            int before = members.get(0).told();
            members.remove(1).close();
            members.add(new Member(group, "restarts", false).started());
            settle(members);
            report.line("rebalances", check, String.valueOf(before), String.valueOf(members.get(0).told()));
            show(check, members);
        } finally {
            members.parallelStream().forEach(Member::close);
        }
    }

    /** Waits until every member was told what it holds and each partition is held by one of them. */
    private static void settle(List<Member> members) throws Exception {
        long deadline = System.nanoTime() + WAIT.toNanos();
        while (true) {
            List<Integer> all = new ArrayList<>();
            boolean told = true;
            for (Member m : members) {
                if (m.failure != null) {
                    throw m.failure;
                }
                all.addAll(m.held());
                told &= m.told() > 0;
            }
            all.sort(null);
            if (told && all.equals(List.of(0, 1, 2, 3))) {
                return;
            }
            if (System.nanoTime() > deadline) {
                throw new TimeoutException("the group did not settle: " + all + " are held");
            }
            synchronized (Groups.class) {
                Groups.class.wait(20);
            }
        }
    }

    private void show(String check, List<Member> members) {
        for (int i = 0; i < members.size(); i++) {
            report.line("member", check, String.valueOf(i), Report.numbers(members.get(i).held()));
        }
    }
}
