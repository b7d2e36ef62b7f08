package compat;

import java.time.Duration;
import java.util.Collection;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/** One member of a group. A client has its own kind, which tells here what it was given, reads and fails of. */
abstract class Member implements ConsumerRebalanceListener, AutoCloseable {
    private static final Object CHANGE = new Object(); // guards the fields of all members; told of every change

    private final TreeSet<Integer> held = new TreeSet<>();
    private int told;
    private Reader reader = record -> false;
    private RuntimeException failure;

    /** Says whether a record is to be committed. */
    interface Reader {
        boolean takes(ConsumerRecord<byte[], byte[]> record);
    }

    /** Joins the group, and reads until it is closed. */
    abstract void start();

    /** Commits the records that were taken, and leaves the group; a static member's place is kept. */
    @Override
    public abstract void close();

    /** Before it starts. One that is given no reader commits nothing. */
    final void readBy(Reader taker) {
        synchronized (CHANGE) {
            reader = taker;
        }
    }

    final boolean takes(ConsumerRecord<byte[], byte[]> record) {
        synchronized (CHANGE) {
            CHANGE.notifyAll();
            return reader.takes(record);
        }
    }

    final void fail(RuntimeException why) {
        synchronized (CHANGE) {
            failure = why;
            CHANGE.notifyAll();
        }
    }

    /** How many times it was given partitions, none included. */
    final int told() {
        synchronized (CHANGE) {
            return told;
        }
    }

    final TreeSet<Integer> held() {
        synchronized (CHANGE) {
            return new TreeSet<>(held);
        }
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> given) {
        synchronized (CHANGE) {
            given.forEach(p -> held.add(p.partition()));
            told++;
            CHANGE.notifyAll();
        }
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> taken) {
        synchronized (CHANGE) {
            taken.forEach(p -> held.remove(p.partition()));
            CHANGE.notifyAll();
        }
    }

    /** Waits for what members are to come to, and for no longer than until one of them fails. */
    static void await(Collection<Member> members, Duration patience, Callable<Boolean> done) throws Exception {
        long deadline = System.nanoTime() + patience.toNanos();
        synchronized (CHANGE) {
            while (!done.call()) {
                for (Member m : members) {
                    if (m.failure != null) {
                        throw m.failure;
                    }
                }
                long left = Duration.ofNanos(deadline - System.nanoTime()).toMillis();
                if (left <= 0) {
                    throw new TimeoutException("not so far after " + patience + ": "
                            + members.stream().map(Member::held).toList() + " are held");
                }
                CHANGE.wait(left);
            }
        }
    }
}
