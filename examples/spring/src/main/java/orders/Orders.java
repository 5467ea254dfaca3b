package orders;

import jakarta.servlet.http.HttpServletRequest;
import java.sql.SQLException;
import java.util.*;
import java.util.regex.*;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.dao.DataAccessException;
import org.springframework.http.ResponseEntity;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.web.bind.annotation.*;
import org.springframework.web.server.ResponseStatusException;
import static org.springframework.http.HttpStatusCode.valueOf;

/**
 * Orders over HTTP, each written by the holder of its lock, with spring.datasource.url and server.port set.
 *
 * <p>POST /orders/ID/fence raises the mark: 204. PUT /orders/ID {"state":"..."} writes the order: 200. Both need a
 * Fencing-Token.
 */
@SpringBootApplication
@RestController
public class Orders {
  private static final Pattern FIELD = Pattern.compile("\"([1-9][0-9]{0,18})\"; *grant=\"([A-Za-z0-9._:-]{1,64})\""); // the fence

  /** How PostgreSQL's refusals are answered: each status tells the client something else to do. */
  private static final Map<String, Integer> STATUS = Map.of("ZF001", 412, "ZF002", 428, "ZF003", 400, "ZF004", 412, // the fence
      "ZF005", 409, "22003", 400, "55P03", 503, "40001", 503); // the fence

  private final JdbcTemplate db;

  public Orders(JdbcTemplate db) {
    this.db = db;
  }

  public static void main(String[] args) {
    SpringApplication.run(Orders.class, args);
  }

  @PostMapping("/orders/{id}/fence")
  public ResponseEntity<Void> fence(@PathVariable("id") long id, HttpServletRequest request) {
    call("fence.raise_mark", id, request); // the fence
    return ResponseEntity.noContent().build();
  }

  // One transaction a request: admission and write are committed together, or neither is.
  @Transactional
  @PutMapping("/orders/{id}")
  public Map<String, Integer> write(@PathVariable("id") long id, @RequestBody Map<String, String> order, HttpServletRequest request) {
    call("fence.admit", id, request); // the fence
    int written = db.update("UPDATE orders SET state = ? WHERE id = ?", order.get("state"), id);
    if (written == 0) throw new ResponseStatusException(valueOf(404), "no such order");
    return Map.of("written", written);
  }

  /** Presents what the request claims: one field, whole, or none of it. The token stays a text up to the database. */
  private void call(String function, long id, HttpServletRequest request) {
    List<String> fields = Collections.list(request.getHeaders("Fencing-Token")); // the fence
    if (fields.isEmpty()) throw new ResponseStatusException(valueOf(428), "send the token of your grant"); // the fence
    Matcher field = FIELD.matcher(fields.get(0)); // the fence
    if (fields.size() > 1 || !field.matches()) throw new ResponseStatusException(valueOf(400), "one Fencing-Token"); // the fence
    db.query("SELECT " + function + "('shop.order', ?, ?::bigint, ?)", row -> {}, // the fence
        Long.toString(id), field.group(1), field.group(2)); // the fence
  }

  @ExceptionHandler(DataAccessException.class)
  public ResponseEntity<Map<String, String>> refused(DataAccessException error) {
    int status = error.getRootCause() instanceof SQLException sql ? STATUS.getOrDefault(sql.getSQLState(), 500) : 500; // the fence
    var answer = ResponseEntity.status(status);
    return (status == 503 ? answer.header("Retry-After", "1") : answer).body(Map.of("error", error.getMessage()));
  }
}
