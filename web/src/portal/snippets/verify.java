import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Base64;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public final class Verify {
  static final long TOLERANCE_SECONDS = 300;

  /** Respond 401 if verify(secret, request::getHeader, body) is false. The body is what was received, not parsed JSON. */
  public static boolean verify(String secret, UnaryOperator<String> header, byte[] body) throws GeneralSecurityException {
    String id = header.apply("webhook-id");
    String timestamp = header.apply("webhook-timestamp");
    String signatures = header.apply("webhook-signature");
    if (id == null || timestamp == null || signatures == null || !timestamp.matches("[0-9]{1,12}")) return false;
    if (Math.abs(System.currentTimeMillis() / 1000 - Long.parseLong(timestamp)) > TOLERANCE_SECONDS) return false;
    byte[] key = Base64.getDecoder().decode(secret.replace("whsec_", ""));
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(key, "HmacSHA256"));
    mac.update((id + "." + timestamp + ".").getBytes());
    byte[] expected = ("v1," + Base64.getEncoder().encodeToString(mac.doFinal(body))).getBytes();
    // There are several signatures while the secret is being rotated; one match is enough.
    return Stream.of(signatures.split(" ")).anyMatch(signature -> MessageDigest.isEqual(signature.getBytes(), expected));
  }
}
