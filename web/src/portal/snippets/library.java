// Maven: com.standardwebhooks:standardwebhooks
import com.standardwebhooks.Webhook;
import com.standardwebhooks.exceptions.WebhookVerificationException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.Stream;

public final class Verify {
  /** Respond 401 if verify(secret, request::getHeader, body) is false. The body is what was received, not parsed JSON. */
  public static boolean verify(String secret, UnaryOperator<String> header, byte[] body) {
    Map<String, List<String>> headers =
        Stream.of("webhook-id", "webhook-timestamp", "webhook-signature")
            .filter(name -> header.apply(name) != null)
            .collect(Collectors.toMap(name -> name, name -> List.of(header.apply(name))));
    try {
      new Webhook(secret).verify(new String(body, StandardCharsets.UTF_8), headers);
      return true;
    } catch (WebhookVerificationException error) {
      return false;
    }
  }
}
