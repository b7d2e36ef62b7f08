import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs Apache Kafka's command-line tools one after the other in one process: each would take seconds to start.
 * A line of stdin is a class and its arguments, separated by tabs. What it says on stdout and stderr comes back
 * line by line behind a bar, and then its exit status behind an equals sign.
 */
public final class Tools {

    /** Ends a tool where it would have ended the process. */
    private static final class Exited extends Error {
        Exited() {
            super(null, null, false, false);
        }
    }

    private final ByteArrayOutputStream said = new ByteArrayOutputStream();
    private String last; // what was said when the tool ended the process; nothing counts after that
    private int status;

    public static void main(String[] args) throws Exception {
        new Tools().serve(System.out);
    }

    private void serve(PrintStream out) throws Exception {
        PrintStream capture = new PrintStream(said, true, StandardCharsets.UTF_8);
        System.setOut(capture);
        System.setErr(capture);
        Exit.setExitProcedure((code, message) -> end(code));
        Exit.setHaltProcedure((code, message) -> end(code));
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            run(line.split("\t"));
            last.lines().forEach(text -> out.println("|" + text));
            out.println("=" + status);
            out.flush();
        }
    }

    private void run(String[] words) throws Exception {
        said.reset();
        last = null;
        String[] args = new String[words.length - 1];
        System.arraycopy(words, 1, args, 0, args.length);
        try {
            Class.forName(words[0]).getMethod("main", String[].class).invoke(null, (Object) args);
            end(0);
        } catch (InvocationTargetException e) {
            if (!(e.getCause() instanceof Exited)) {
                e.getCause().printStackTrace();
                end(1); // as an uncaught exception does
            }
        } catch (Exited e) {
            // It is all noted.
        }
    }

    /** The first end counts: a tool that catches everything goes on, where its process would be gone. */
    private void end(int code) {
        if (last == null) {
            last = said.toString(StandardCharsets.UTF_8);
            status = code;
        }
        throw new Exited();
    }
}
