import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;

/**
 * A small order service: charging an order and publishing the event is one transaction.
 *
 * <p>usage: DATABASE_URL=jdbc:postgresql://… java Orders.java charge ORDER CENTS [--fail | --crash]
 *
 * <p>--fail rolls back, --crash kills the process before the commit: in both cases there is neither a charge nor an event.
 */
public class Orders {
  /** Returns the ID of the order's event. */
  static String charge(Connection connection, String order, int cents, Runnable beforeCommit) throws SQLException {
    connection.setAutoCommit(false);
    try {
      try (var insert = connection.prepareStatement("insert into charge (order_id, cents) values (?, ?)")) {
        insert.setString(1, order);
        insert.setInt(2, cents);
        insert.executeUpdate();
      }
      String event;
      try (var publish = connection.prepareStatement("select postrider.publish(?, ?, ?::json, id => ?)")) {
        publish.setString(1, "acme");
        publish.setString(2, "order.charged");
        publish.setString(3, "{\"order\": \"%s\", \"cents\": %d}".formatted(order, cents)); // use a JSON library
        publish.setString(4, "charge-" + order);
        try (var rows = publish.executeQuery()) {
          rows.next();
          event = rows.getString(1);
        }
      }
      beforeCommit.run();
      connection.commit();
      return event;
    } catch (SQLException | RuntimeException error) {
      connection.rollback();
      throw error;
    }
  }

  static void fail() {
    throw new IllegalStateException("the payment provider declined");
  }

  public static void main(String[] arguments) throws SQLException {
    if (arguments.length < 3 || !arguments[0].equals("charge")) {
      System.err.println("usage: Orders.java charge ORDER CENTS [--fail | --crash]");
      System.exit(2);
    }
    String how = arguments.length > 3 ? arguments[3] : "";
    Runnable beforeCommit =
        switch (how) {
          case "--fail" -> Orders::fail;
          case "--crash" -> () -> Runtime.getRuntime().halt(137);
          default -> () -> {};
        };
    try (Connection connection = DriverManager.getConnection(System.getenv("DATABASE_URL"))) {
      System.out.println(charge(connection, arguments[1], Integer.parseInt(arguments[2]), beforeCommit));
    } catch (IllegalStateException error) {
      System.err.println(error.getMessage());
      System.exit(1);
    }
  }
}
