package compat;

/** What a run is given: README.md one folder up. */
final class Env {
    static final String BOOTSTRAP = get("QUEEN_EDGE_BOOTSTRAP");
    static final String CA = get("QUEEN_EDGE_CA");
    static final String ACME = get("QUEEN_EDGE_TOKEN_ACME");
    static final String ACME_CONSUME = get("QUEEN_EDGE_TOKEN_ACME_CONSUME");
    static final String ACME_PRODUCE = get("QUEEN_EDGE_TOKEN_ACME_PRODUCE");
    static final String ACME_NOREAD = get("QUEEN_EDGE_TOKEN_ACME_NOREAD");
    static final String GLOBEX = get("QUEEN_EDGE_TOKEN_GLOBEX");
    static final String RUN = get("COMPAT_RUN");
    static final String DATASET = get("COMPAT_DATASET");
    static final String READ_TOPIC = get("COMPAT_READ_TOPIC");
    static final long READ_COUNT = Long.parseLong(get("COMPAT_READ_COUNT"));
    static final String GROUP_TOPIC = get("COMPAT_GROUP_TOPIC");
    static final int GROUP_COUNT = Integer.parseInt(get("COMPAT_GROUP_COUNT"));
    static final String TIME_TOPIC = get("COMPAT_TIME_TOPIC");
    static final long TIME = Long.parseLong(get("COMPAT_TIME"));

    private Env() {}

    /** The value of sasl.jaas.config. The username is free: it is seen in logs only. */
    static String login(String token) {
        return "org.apache.kafka.common.security.plain.PlainLoginModule required username=\"compat\" password=\""
                + token + "\";";
    }

    private static String get(String name) {
        String value = System.getenv(name);
        if (value == null) {
            throw new IllegalStateException(name + " is not set");
        }
        return value;
    }
}
