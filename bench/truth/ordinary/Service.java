import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executor;
import java.util.concurrent.Executors;

/** Arguments: threads, or 0 for as many as are needed; milliseconds to wait; numbers to write. */
public class Service {
    public static void main(String[] arguments) throws Exception {
        int threads = Integer.parseInt(arguments[0]);
        long waitMs = Long.parseLong(arguments[1]);
        int numbers = Integer.parseInt(arguments[2]);
        InetSocketAddress address = new InetSocketAddress("127.0.0.1", Integer.parseInt(System.getenv("PORT")));
        HttpServer server = HttpServer.create(address, 1024);
        server.createContext("/", exchange -> {
            pause(waitMs);
            byte[] body = written(numbers).getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        Executor executor = threads == 0 ? Executors.newCachedThreadPool() : Executors.newFixedThreadPool(threads);
        server.setExecutor(executor);
        server.start();
    }

    private static void pause(long ms) {
        try {
            if (ms > 0) Thread.sleep(ms);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private static String written(int numbers) {
        StringBuilder text = new StringBuilder();
        for (int number = 0; number < numbers; number++) text.append(Integer.toString(number * 7919)).append(',');
        return text.toString();
    }
}
