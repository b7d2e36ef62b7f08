package compat;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/** The checks of consumer groups: members in threads of their own, and one in a process that is killed. */
final class Groups {
    static final int FOREIGN_EPOCH = 7; // a leader epoch that another cluster may have given
    static final String MEMBER = "COMPAT_MEMBER"; // a process that is to be a member and be killed
    private static final Duration WAIT = Duration.ofSeconds(45); // for a group to settle or to read

    private final Client client;
    private final Report report;

    Groups(Client client, Report report) {
        this.client = client;
        this.report = report;
    }

    private static Map<String, Object> settings(String group) {
        Map<String, Object> s = new HashMap<>();
        s.put("group.id", group);
        s.put("enable.auto.commit", false);
        s.put("auto.offset.reset", "earliest");
        s.put("session.timeout.ms", 6000); // the least that is allowed
        s.put("heartbeat.interval.ms", 200);
        s.put("max.poll.records", 5);
        s.put("fetch.max.wait.ms", 100);
        s.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer.RangeAssignor");
        return s;
    }

    private Member join(Map<String, Object> settings) {
        Member m = client.member(Env.ACME, settings);
        m.start();
        return m;
    }

    private String group(String check) {
        String name = client.named(check);
        report.line("group", check, name);
        return name;
    }

    void resume() throws Exception {
        String check = "group-resume";
        String group = group(check);
        int all = 4 * Env.GROUP_COUNT;
        for (int count : new int[] {all / 2, all - all / 2}) {
            AtomicInteger left = new AtomicInteger(count);
            try (Member m = client.member(Env.ACME, settings(group))) {
                m.readBy(record -> {
                    if (left.get() == 0) {
                        return false;
                    }
                    report.line("got", check, String.valueOf(record.partition()), String.valueOf(record.offset()));
                    left.decrementAndGet();
                    return true;
                });
                m.start();
                Member.await(List.of(m), WAIT, () -> left.get() == 0);
            }
        }
    }

    void share(String check, int n, boolean cooperative) throws Exception {
        Map<String, Object> settings = settings(group(check));
        if (cooperative) {
            settings.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
        }
        List<Member> members = new ArrayList<>();
        try {
            for (int i = 0; i < n; i++) {
                members.add(join(settings));
                if (cooperative) {
                    settle(members); // so that partitions change hands
                }
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
        try (Member stays = join(settings(group));
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

    /** The process that is to be killed. Who reads its lines looks at another member each time: so they go on. */
    void beMember(String group) throws Exception {
        long deadline = System.nanoTime() + WAIT.toNanos();
        try (Member m = join(settings(group))) {
            while (System.nanoTime() < deadline) {
                report.line(String.valueOf(m.held().size()));
                Thread.sleep(100);
            }
        }
    }

    void stays() throws Exception {
        String check = "group-static";
        Map<String, Object> settings = settings(group(check));
        List<Member> members = new ArrayList<>();
        try {
            for (String id : List.of("stays", "restarts")) {
                settings.put("group.instance.id", id);
                members.add(join(settings));
            }
            settle(members);
            int before = members.get(0).told();
            members.remove(1).close();
            members.add(join(settings));
            settle(members);
            report.line("rebalances", check, String.valueOf(before), String.valueOf(members.get(0).told()));
            show(check, members);
        } finally {
            members.parallelStream().forEach(Member::close);
        }
    }

    /**
     * Waits until every member was told what it holds, each partition is held by one of them, and none holds nothing
     * that need not.
     */
    private static void settle(List<Member> members) throws Exception {
        Member.await(members, WAIT, () -> {
            List<Integer> all = new ArrayList<>();
            members.forEach(m -> all.addAll(m.held()));
            all.sort(null);
            long idle = members.stream().filter(m -> m.held().isEmpty()).count();
            boolean told = members.stream().allMatch(m -> m.told() > 0);
            return told && all.equals(List.of(0, 1, 2, 3)) && idle == Math.max(members.size() - 4, 0);
        });
    }

    private void show(String check, List<Member> members) {
        for (int i = 0; i < members.size(); i++) {
            report.line("member", check, String.valueOf(i), Report.numbers(members.get(i).held()));
        }
    }
}
