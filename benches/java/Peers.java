import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.StringJoiner;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * One measurement of {@code ScheduledThreadPoolExecutor}, in the process that it is started in:
 * {@code java Peers.java MEASURE PEER SIZE WORKERS [EXTRA]}. Prints JSON. What is measured was
 * done often enough before for the compiler to have been at it.
 */
public final class Peers {
    private static final long HOUR = TimeUnit.HOURS.toNanos(1);
    private static final long PERIOD = TimeUnit.MILLISECONDS.toNanos(1);
    private static final int SAMPLE = 10_000;
    private static final int PART = 1_000;
    private static final int BATCHES = 15;
    private static final Runnable NOOP = () -> {};
    private static final Random RANDOM = new Random(1);

    public static void main(String[] arguments) throws Exception {
        int size = Integer.parseInt(arguments[2]);
        int workers = Integer.parseInt(arguments[3]);
        switch (arguments[0]) {
            case "held" -> held(size, workers);
            case "life" -> life(size, workers);
            case "burst" -> burst(size, workers);
            case "beat" -> beat(size, workers);
            case "idle" -> idle(size, workers, Integer.parseInt(arguments[4]));
            default -> throw new IllegalArgumentException(arguments[0]);
        }
        System.exit(0);
    }

    private static long[] delays(int count) {
        return RANDOM.doubles(count).mapToLong(part -> HOUR + (long) (part * HOUR)).toArray();
    }

    private static List<Future<?>> fill(ScheduledThreadPoolExecutor pool, long[] delays) {
        List<Future<?>> kept = new ArrayList<>(delays.length);
        for (long delay : delays) {
            kept.add(pool.schedule(NOOP, delay, TimeUnit.NANOSECONDS));
        }
        return kept;
    }

    private static void cancel(List<Future<?>> kept) {
        for (Future<?> future : kept) {
            future.cancel(false);
        }
    }

    private static ScheduledThreadPoolExecutor pool(int workers) {
        ScheduledThreadPoolExecutor pool = new ScheduledThreadPoolExecutor(workers);
        // By default a cancelled task stays until it is due; with this it leaves at once.
        pool.setRemoveOnCancelPolicy(true);
        return pool;
    }

    private static void warmUp(int workers) {
        for (int round = 0; round < 10; round++) {
            ScheduledThreadPoolExecutor pool = pool(workers);
            cancel(fill(pool, delays(SAMPLE)));
            pool.shutdownNow();
        }
    }

    private static void held(int size, int workers) {
        warmUp(workers);
        ScheduledThreadPoolExecutor pool = pool(workers);
        long[] first = delays(size);
        long begin = System.nanoTime();
        fill(pool, first);
        long fill = System.nanoTime() - begin;
        long[] schedule = new long[11];
        long[] cancel = new long[11];
        for (int round = 0; round < schedule.length; round++) {
            long[] delays = delays(PART);
            long start = System.nanoTime();
            List<Future<?>> kept = fill(pool, delays);
            schedule[round] = System.nanoTime() - start;
            Collections.shuffle(kept, RANDOM);
            start = System.nanoTime();
            cancel(kept);
            cancel[round] = System.nanoTime() - start;
        }
        show("fill_us", micros(fill, size), "schedule_us", micros(median(schedule), PART), "cancel_us", micros(median(cancel), PART));
    }

    private static void life(int size, int workers) throws InterruptedException {
        warmUp(workers);
        ScheduledThreadPoolExecutor pool = pool(workers);
        long[] delays = delays(size);
        long start = System.nanoTime();
        List<Future<?>> kept = fill(pool, delays);
        long schedule = System.nanoTime() - start;
        Collections.shuffle(kept, RANDOM);
        start = System.nanoTime();
        cancel(kept);
        long cancel = System.nanoTime() - start;
        kept.clear();
        run(pool(workers), SAMPLE, 0);
        long margin = schedule * 3 + TimeUnit.MILLISECONDS.toNanos(50);
        long run = run(pool(workers), size, margin) - margin;
        show("schedule_us", micros(schedule, size), "cancel_us", micros(cancel, size),
            "run_us", micros(Math.max(run, 0), size));
    }

    /** Schedules jobs that do nothing, due after a delay, and gives the time until all have been run. */
    private static long run(ScheduledThreadPoolExecutor pool, int size, long delay) throws InterruptedException {
        long start = System.nanoTime();
        for (int n = 0; n < size; n++) {
            pool.schedule(NOOP, Math.max(delay - (System.nanoTime() - start), 0), TimeUnit.NANOSECONDS);
        }
        pool.shutdown();
        pool.awaitTermination(1, TimeUnit.HOURS);
        return System.nanoTime() - start;
    }

    private static void burst(int size, int workers) throws InterruptedException {
        long[] times = new long[BATCHES];
        for (int batch = 0; batch < BATCHES; batch++) {
            ScheduledThreadPoolExecutor pool = pool(workers);
            pool.prestartAllCoreThreads();
            times[batch] = run(pool, size, 0);
        }
        // The first third was for the compiler.
        show("per_second", size * 1e9 / median(Arrays.copyOfRange(times, BATCHES / 3, BATCHES)));
    }

    private static void beat(int size, int workers) throws Exception {
        ScheduledThreadPoolExecutor pool = pool(workers);
        beats(pool, size);
        long[] before = new long[2];
        long[] after = new long[2];
        long[] late = beats(pool, size, before, after);
        Arrays.sort(late);
        StringJoiner quantiles = new StringJoiner(", ", "[", "]");
        for (int n = 0; n <= 1000; n += 5) {
            quantiles.add(String.valueOf(late[Math.min(size * n / 1000, size - 1)] / 1e3));
        }
        show("late_us", quantiles, "p50", late[size / 2] / 1e3, "p90", late[size * 90 / 100] / 1e3,
            "p99", late[size * 99 / 100] / 1e3, "wakes", (after[0] - before[0] - 1.0) / size,
            "cpu_us", micros(after[1] - before[1], size));
    }

    private static void beats(ScheduledThreadPoolExecutor pool, int size) throws Exception {
        beats(pool, size, new long[2], new long[2]);
    }

    private static long[] beats(ScheduledThreadPoolExecutor pool, int size, long[] before, long[] after)
            throws Exception {
        long[] late = new long[size];
        long start = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(200);
        CountDownLatch ended = new CountDownLatch(size);
        for (int n = 0; n < size; n++) {
            int index = n;
            long due = start + n * PERIOD;
            pool.schedule(() -> {
                late[index] = System.nanoTime() - due;
                ended.countDown();
            }, due - System.nanoTime(), TimeUnit.NANOSECONDS);
        }
        TimeUnit.NANOSECONDS.sleep(start - TimeUnit.MILLISECONDS.toNanos(20) - System.nanoTime());
        before[0] = wakeups();
        before[1] = cpu();
        ended.await();
        after[0] = wakeups();
        after[1] = cpu();
        return late;
    }

    private static void idle(int size, int workers, int seconds) throws Exception {
        ScheduledThreadPoolExecutor pool = pool(workers);
        fill(pool, delays(size));
        Thread.sleep(2000); // the compiler's and the collector's threads have come to rest
        long wakes = wakeups();
        Thread.sleep(seconds * 1000L);
        show("wakes", Math.max(wakeups() - wakes - 1, 0));
    }

    /** How often the threads of this process went to sleep of their own accord. */
    private static long wakeups() throws IOException {
        AtomicLong total = new AtomicLong();
        try (var tasks = Files.list(Path.of("/proc/self/task"))) {
            for (Path task : (Iterable<Path>) tasks::iterator) {
                for (String line : Files.readAllLines(task.resolve("status"))) {
                    if (line.startsWith("voluntary")) {
                        total.addAndGet(Long.parseLong(line.split("\\s+")[1]));
                    }
                }
            }
        }
        return total.get();
    }

    private static long cpu() {
        var system = java.lang.management.ManagementFactory.getOperatingSystemMXBean();
        return ((com.sun.management.OperatingSystemMXBean) system).getProcessCpuTime();
    }

    private static long median(long[] times) {
        long[] sorted = times.clone();
        Arrays.sort(sorted);
        return sorted[sorted.length / 2];
    }

    private static double micros(long nanos, int count) {
        return nanos / 1e3 / count;
    }

    private static void show(Object... namesAndValues) {
        StringJoiner members = new StringJoiner(", ", "{", "}");
        for (int n = 0; n < namesAndValues.length; n += 2) {
            members.add("\"" + namesAndValues[n] + "\": " + namesAndValues[n + 1]);
        }
        System.out.println(members);
    }
}
