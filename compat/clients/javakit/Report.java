package compat;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/** What a run writes on stdout. Whatever else prints there from now on goes to stderr. */
final class Report {
    private final PrintStream out = System.out;

    Report() {
        System.setOut(System.err);
    }

    void line(String... words) {
        out.println(String.join(" ", words));
        out.flush();
    }

    void said(String check, Throwable refusal) {
        line("said", check, text(refusal));
    }

    /** Numbers as a line holds them. */
    static String numbers(Collection<Integer> numbers) {
        return numbers.isEmpty() ? "none" : String.join(",", numbers.stream().map(String::valueOf).toList());
    }

    void pass(String check) {
        line("pass", check);
    }

    void fail(String check, Throwable why) {
        why.printStackTrace();
        line("fail", check + ":", text(why));
    }

    /** The texts of an exception and its causes, on one line. */
    static String text(Throwable t) {
        List<String> texts = new ArrayList<>();
        for (Throwable cause = t; cause != null; cause = cause.getCause()) {
            texts.add(cause.toString());
        }
        return String.join("; caused by ", texts).replaceAll("\\s+", " ");
    }
}
