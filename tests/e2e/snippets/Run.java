import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Scanner;

final class Run {
  static byte[] decode(String field) {
    return Base64.getDecoder().decode(field);
  }

  public static void main(String[] arguments) throws Exception {
    Scanner lines = new Scanner(System.in, StandardCharsets.UTF_8);
    List<String> names = List.of("webhook-id", "webhook-timestamp", "webhook-signature");
    while (lines.hasNextLine()) {
      String[] fields = lines.nextLine().split("\t", -1);
      Map<String, String> headers = new HashMap<>();
      for (int index = 0; index < names.size(); ++index) {
        String field = fields[index + 1];
        if (!field.equals("-")) headers.put(names.get(index), new String(decode(field), StandardCharsets.UTF_8));
      }
      String secret = new String(decode(fields[0]), StandardCharsets.UTF_8);
      System.out.println(Verify.verify(secret, headers::get, decode(fields[4])));
    }
  }
}
