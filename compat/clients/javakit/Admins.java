package compat;

import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.MemberDescription;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;

/** The checks of administration. Every call waits for its outcome; the client's own timeouts end it. */
final class Admins {
    private static final String TOPIC = System.getenv("COMPAT_GROUP_TOPIC");
    private static final String DOOMED = System.getenv("COMPAT_DOOMED");

    private final Client client;
    private final Report report;

    Admins(Client client, Report report) {
        this.client = client;
        this.report = report;
    }

    void topics() throws Exception {
        String check = "admin-topics";
        try (Admin admin = client.admin(Env.ACME)) {
            String topic = client.named(check);
            report.line("topic", check, topic);
            NewTopic made = new NewTopic(topic, 2, (short) 1).configs(Map.of("retention.ms", "3600000"));
            admin.createTopics(List.of(made)).all().get();
            expect(2, partitions(admin, topic));
            admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get();
            expect(3, partitions(admin, topic));
            String doomed = doomed(admin.listTopics().names().get());
            admin.deleteTopics(List.of(doomed)).all().get();
            report.line("gone", check, doomed);
        }
    }

    void configs() throws Exception {
        String check = "admin-configs";
        try (Admin admin = client.admin(Env.ACME)) {
            String topic = client.named(check);
            report.line("topic", check, topic);
            admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
            expect("-1", configs(admin, topic).get("retention.ms"));
            set(admin, topic, "retention.ms", "7200000");
            try {
                set(admin, topic, "message.timestamp.type", "LogAppendTime");
                throw new IllegalStateException("what cannot be was allowed");
            } catch (ExecutionException refusal) {
                report.said(check, refusal.getCause());
            }
            configs(admin, topic).forEach((name, value) -> report.line("config", check, name, value));
        }
    }

    @SuppressWarnings("removal") // what replaces listConsumerGroups is not in 3.6
    void groups() throws Exception {
        String check = "admin-groups";
        try (Admin admin = client.admin(Env.ACME)) {
            String alive = System.getenv("COMPAT_ALIVE_GROUP");
            ConsumerGroupDescription described = admin.describeConsumerGroups(List.of(alive)).all().get().get(alive);
            int n = 0;
            for (MemberDescription member : described.members()) {
                report.line("member", check, String.valueOf(n++), held(member));
            }
            String group = client.named(check);
            report.line("group", check, group);
            admin.alterConsumerGroupOffsets(group, offsets(Map.of(0, 1L, 1, 2L, 2, 3L))).all().get();
            admin.alterConsumerGroupOffsets(group, offsets(Map.of(0, 5L))).all().get();
            admin.deleteConsumerGroupOffsets(group, Set.of(new TopicPartition(TOPIC, 2))).all().get();
            expect(offsets(Map.of(0, 5L, 1, 2L)), admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get());
            String doomed = doomed(admin.listConsumerGroups().all().get().stream().map(g -> g.groupId()).toList());
            admin.deleteConsumerGroups(List.of(doomed)).all().get();
            report.line("gone", check, doomed);
        }
    }

    private static int partitions(Admin admin, String topic) throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic).partitions().size();
    }

    private static Map<String, String> configs(Admin admin, String topic) throws Exception {
        ConfigResource of = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        Map<String, String> out = new HashMap<>();
        for (ConfigEntry e : admin.describeConfigs(List.of(of)).all().get().get(of).entries()) {
            out.put(e.name(), e.value());
        }
        return out;
    }

    private static void set(Admin admin, String topic, String name, String value) throws Exception {
        ConfigResource of = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        AlterConfigOp set = new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(of, List.of(set))).all().get();
    }

    private static String held(MemberDescription member) {
        TreeSet<Integer> held = new TreeSet<>();
        for (TopicPartition p : member.assignment().topicPartitions()) {
            if (p.topic().equals(TOPIC)) {
                held.add(p.partition());
            }
        }
        return Report.numbers(held);
    }

    /** Offsets of the topic that groups read, as they are committed and listed. */
    static Map<TopicPartition, OffsetAndMetadata> offsets(Map<Integer, Long> at) {
        Map<TopicPartition, OffsetAndMetadata> out = new HashMap<>();
        at.forEach((partition, offset) ->
                out.put(new TopicPartition(TOPIC, partition), new OffsetAndMetadata(offset, Optional.empty(), "")));
        return out;
    }

    /** One of the things that are there to be deleted. Their names are not told: they are to be listed. */
    private static String doomed(Collection<String> listed) {
        return listed.stream().filter(name -> name.startsWith(DOOMED)).findFirst().orElseThrow();
    }

    private static void expect(Object want, Object got) {
        if (!want.equals(got)) {
            throw new IllegalStateException("want " + want + ", got " + got);
        }
    }
}
