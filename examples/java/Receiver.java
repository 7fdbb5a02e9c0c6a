import com.standardwebhooks.Webhook;
import com.standardwebhooks.exceptions.WebhookVerificationException;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;

/**
 * Receives webhooks, verifies their signatures with the Standard Webhooks library, and prints each event once.
 *
 * <p>usage: WEBHOOK_SECRET=whsec_… LISTEN=127.0.0.1:8000 java Receiver.java
 */
public class Receiver {
  static final int MAX_BODY_BYTES = 1 << 20;
  static final Webhook WEBHOOK = new Webhook(System.getenv("WEBHOOK_SECRET"));
  static final Set<String> SEEN = ConcurrentHashMap.newKeySet(); // a table with a unique key in a real service

  static int receive(HttpExchange exchange) throws IOException {
    byte[] body = exchange.getRequestBody().readNBytes(MAX_BODY_BYTES + 1);
    if (body.length > MAX_BODY_BYTES) return 413;
    // The library looks headers up in lower case.
    Map<String, List<String>> headers =
        exchange.getRequestHeaders().entrySet().stream()
            .collect(Collectors.toMap(header -> header.getKey().toLowerCase(Locale.ROOT), Map.Entry::getValue));
    String text = new String(body, StandardCharsets.UTF_8);
    try {
      WEBHOOK.verify(text, headers);
    } catch (WebhookVerificationException error) {
      return 401;
    }
    process(headers.get("webhook-id").get(0), text);
    return 204;
  }

  /** An event can arrive more than once, always with the same ID. */
  static void process(String id, String body) {
    if (SEEN.add(id)) System.out.println(id + " " + body);
  }

  public static void main(String[] arguments) throws IOException {
    String[] listen = System.getenv("LISTEN").split(":");
    HttpServer server = HttpServer.create(new InetSocketAddress(listen[0], Integer.parseInt(listen[1])), 0);
    server.setExecutor(Executors.newFixedThreadPool(4));
    server.createContext(
        "/",
        exchange -> {
          try (exchange) {
            exchange.sendResponseHeaders(receive(exchange), -1);
          }
        });
    server.start();
  }
}
