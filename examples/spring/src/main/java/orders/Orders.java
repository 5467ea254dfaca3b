package orders;

import jakarta.servlet.http.HttpServletRequest;
import java.sql.SQLException;
import java.util.*;
import java.util.regex.*;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.core.NestedRuntimeException;
import org.springframework.dao.DataAccessException;
import org.springframework.http.*;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.transaction.*;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.web.*;
import org.springframework.web.bind.annotation.*;

/**
 * Orders over HTTP, each written by the holder of its lock, who presents its Fencing-Token; spring.datasource.url is set.
 * POST /orders/ID/fence raises the mark: 204. PUT /orders/ID {"state":"..."} writes the order: 200.
 */
@SpringBootApplication
@RestController
public class Orders {
  private static final Pattern FIELD = Pattern.compile("\"([1-9][0-9]{0,18})\"; *grant=\"([A-Za-z0-9._:-]{1,64})\""); // the fence
  /** How PostgreSQL's refusals are answered: each status tells the client something else to do. */
  private static final Map<String, String> PROBLEMS = Map.of("ZF001", "412 stale", "ZF002", "428 missing-token", // the fence
      "ZF004", "412 collision", "ZF005", "409 unknown-epoch", "ZF008", "503 unavailable", "down", "503 unavailable", // the fence
      "22003", "400 malformed", "55P03", "503 blocked", "40001", "503 retryable", "25P03", "503 retryable"); // the fence

  @Autowired private JdbcTemplate db;
  public static void main(String[] args) { SpringApplication.run(Orders.class, args); }

  @Transactional
  @PostMapping("/orders/{id}/fence")
  public ResponseEntity<Void> fence(@PathVariable("id") long id, HttpServletRequest request) {
    call("fence.raise_mark", id, request); // the fence
    return ResponseEntity.noContent().build();
  }

  // Admission and write are committed together, or neither is. When the order is not there, or has no state, the mark stays raised.
  @Transactional(noRollbackFor = ErrorResponseException.class)
  @PutMapping("/orders/{id}")
  public Map<String, Integer> write(@PathVariable("id") long id, @RequestBody Map<String, String> order, HttpServletRequest request) {
    call("fence.admit", id, request); // the fence
    if (order.get("state") == null) throw new ErrorResponseException(HttpStatus.UNPROCESSABLE_ENTITY);
    int written = db.update("UPDATE orders SET state = ? WHERE id = ?", order.get("state"), id);
    if (written == 0) throw new ErrorResponseException(HttpStatus.NOT_FOUND);
    return Map.of("written", written);
  }

  /** Presents what the request claims: one field, whole, or none of it. The token stays a text up to the database. */
  private void call(String function, long id, HttpServletRequest request) {
    List<String> fields = Collections.list(request.getHeaders("Fencing-Token")); // the fence
    if (fields.isEmpty()) throw problem("428 missing-token", "send the token of your grant as Fencing-Token"); // the fence
    if (fields.size() > 1) throw problem("400 more-than-one", "send one Fencing-Token"); // the fence
    Matcher field = FIELD.matcher(fields.get(0)); // the fence
    if (!field.matches()) throw problem("400 malformed", "Fencing-Token is \"TOKEN\";grant=\"GRANT-ID\""); // the fence
    db.query("SELECT " + function + "('shop.order', ?, ?::bigint, ?)", row -> {}, id + "", field.group(1), field.group(2)); // the fence
  }

  @ExceptionHandler({DataAccessException.class, TransactionException.class})
  public ErrorResponse refused(NestedRuntimeException error) {
    String state = error.getRootCause() instanceof SQLException sql ? String.valueOf(sql.getSQLState()) : "";
    if (error instanceof CannotCreateTransactionException) state = "down"; // before anything was sent
    // The first line of a refusal at most: after it come DETAIL, which holds the mark, and the statement.
    String told = state.matches("ZF.*|55P03") ? error.getRootCause().getMessage().lines().toList().get(0) : "the log says more";
    return problem(PROBLEMS.getOrDefault(state, "500 unknown-outcome"), told);
  }

  private static ErrorResponseException problem(String kind, String detail) {
    var problem = new ErrorResponseException(HttpStatusCode.valueOf(Integer.parseInt(kind.substring(0, 3))));
    problem.setType(java.net.URI.create("urn:fence:problem:" + kind.substring(4))); // the fence
    problem.setDetail(detail);
    if (kind.startsWith("503")) problem.getHeaders().set("Retry-After", "1");
    return problem;
  }
}
