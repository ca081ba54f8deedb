import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.concurrent.Executors;

/** A service for the recipe: WORK is how much each request does. */
class Server {
    static byte[] digest(int work) throws Exception {
        var text = "order";
        for (int round = 0; round < work; round++) {
            var hash = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
            text = HexFormat.of().formatHex(hash);
        }
        return text.getBytes(StandardCharsets.UTF_8);
    }

    public static void main(String[] arguments) throws Exception {
        int work = Integer.parseInt(System.getenv().getOrDefault("WORK", "1"));
        int port = Integer.parseInt(System.getenv("PORT"));
        var server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 0);
        server.setExecutor(Executors.newFixedThreadPool(8));
        server.createContext("/", exchange -> {
            try (exchange) {
                var body = digest(work);
                exchange.sendResponseHeaders(200, body.length);
                exchange.getResponseBody().write(body);
            } catch (Exception error) {
                throw new RuntimeException(error);
            }
        });
        server.start();
    }
}
