import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import org.postgresql.util.PSQLException;

/** Sends an order, under the token and the grant id that its lock gave: Send ORDER TOKEN GRANT. */
class Send {
    public static void main(String[] args) throws Exception {
        try (Connection db = DriverManager.getConnection(System.getenv("JDBC_URL"))) {
            send(db, Long.parseLong(args[0]), Long.parseLong(args[1]), args[2]);
        } catch (PSQLException error) {
            if (!"ZF001".equals(error.getSQLState())) throw error; // the fence
            // Terminal for this grant: no retry, and no newer token for work that was begun under this one.
            System.err.println("refused, ZF001: " + error.getServerErrorMessage().getDetail());
            System.exit(1);
        }
    }

    static void send(Connection db, long order, long token, String grant) throws Exception {
        String key = Long.toString(order);
        // Committed at once, before the first read: from here on every older holder is refused.
        run(db, "SELECT fence.raise_mark('shop.order', ?, ?, ?)", key, token, grant); // the fence
        try (var read = db.createStatement();
                var row = read.executeQuery("SELECT state FROM orders WHERE id = " + order)) {
            row.next();
            System.out.println("order " + order + " is " + row.getString(1) + "; press Enter to send it");
        }
        System.in.read(); // However long this takes: the write below is refused once a newer holder has been here.
        db.setAutoCommit(false);
        run(db, "SELECT fence.admit('shop.order', ?, ?, ?)", key, token, grant); // the fence
        run(db, "UPDATE orders SET state = ? WHERE id = ?", "sent by " + grant, order);
        db.commit();
        System.out.println("order " + order + " sent by " + grant);
    }

    static void run(Connection db, String sql, Object... values) throws SQLException {
        try (var statement = db.prepareStatement(sql)) {
            for (int n = 0; n < values.length; n++) statement.setObject(n + 1, values[n]);
            statement.execute();
        }
    }
}
