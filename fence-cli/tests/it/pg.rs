//! `fence pg`, each of its commands against a real database.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pause_kit::services::for_tests;
use sqlx::Row as _;

use crate::database::{Database, fence_with, run};

/// The token of epoch 1 and this revision.
fn token(revision: i64) -> i64 {
    (1 << 48) + revision
}

const WRITE: &str = "INSERT INTO orders VALUES (42, 'paid')";

#[tokio::test]
async fn migrate_installs_once_and_says_what_it_applied() {
    let database = Database::bare().await;
    let (code, said) = database.json(&["pg", "migrate"]);
    assert_eq!(code, 0);
    assert_eq!(said["applied"][0], "0001_ledger.sql");
    assert_eq!(
        said["applied"].as_array().unwrap().len(),
        fence_pg::MIGRATIONS.len()
    );
    let again = database.fence(&["pg", "migrate"]);
    assert_eq!((again.code, again.out.as_str()), (0, "the guard is up to date\n"));
    database
        .run("DELETE FROM fence.migration WHERE name = '0015_doctor.sql'")
        .await;
    let (_, said) = database.json(&["pg", "status"]);
    assert_eq!(said["behind"], serde_json::json!(["0015_doctor.sql"]));
    let last = database.fence(&["pg", "migrate"]);
    assert!(last.out.starts_with("applied 0015_doctor.sql"), "{}", last.out);
}

#[tokio::test]
async fn what_migrate_would_run_is_sql_that_psql_runs() {
    let database = Database::bare().await;
    let dry = database.fence(&["pg", "migrate", "--dry-run"]);
    assert_eq!(dry.code, 0, "{}", dry.err);
    assert_eq!(
        database
            .number("SELECT count(*) FROM pg_namespace WHERE nspname = 'fence'")
            .await,
        0
    );
    let mut psql = Command::new("psql")
        .args(["--no-psqlrc", "--quiet", database.url.as_str()])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("psql is in PATH: install postgresql-client");
    std::io::Write::write_all(psql.stdin.as_mut().unwrap(), dry.out.as_bytes()).unwrap();
    let output = psql.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // The ledger has the digests, so that nothing is left to do.
    let (_, status) = database.json(&["pg", "status"]);
    assert_eq!(status["behind"], serde_json::json!([]));
    assert_eq!(
        database.fence(&["pg", "migrate", "--dry-run"]).out,
        "-- The guard is up to date.\n"
    );
}

#[tokio::test]
async fn every_change_can_be_printed_without_a_database_and_then_changes_nothing() {
    for (arguments, sql) in [
        (
            vec!["protect", "orders", "shop.order", "id", "--tier", "entity"],
            "BEGIN;\nSELECT fence.declare('shop.order', 'entity');\nSELECT fence.protect('orders', 'shop.order', 'id');\nCOMMIT;\n",
        ),
        (
            vec!["protect", "seat", "show.seat", "hall", "no", "--observe"],
            "BEGIN;\nSELECT fence.protect('seat', 'show.seat', ARRAY['hall', 'no']::name[], 'observe'::fence.mode);\nCOMMIT;\n",
        ),
        (
            vec![
                "protect",
                "b",
                "shop.batch",
                "id",
                "--token-column",
                "fence_token",
            ],
            "BEGIN;\nSELECT fence.protect_column('b', 'shop.batch', 'id', 'fence_token');\nCOMMIT;\n",
        ),
        (
            vec!["enforce", "shop.order"],
            "SELECT fence.enforce('shop.order');\n",
        ),
        (
            vec!["unprotect", "o'rders"],
            "SELECT fence.unprotect('o''rders');\n",
        ),
        (
            vec!["unprotect", "b", "--column"],
            "SELECT fence.unprotect_column('b');\n",
        ),
        (vec!["grant", "App"], "SELECT fence.grant_application('App');\n"),
        (
            vec!["grant", "App", "--revoke"],
            "SELECT fence.revoke_application('App');\n",
        ),
        (
            vec!["evict", "shop.order", "42", "281474976710690"],
            "SELECT pid, transaction::text, outcome, detail FROM fence.evict('shop.order', '42', 281474976710690);\n",
        ),
        (
            vec!["uninstall"],
            "BEGIN;\nSET LOCAL lock_timeout = '1s';\nSET LOCAL client_min_messages = warning;\nDROP SCHEMA fence CASCADE;\nCOMMIT;\n",
        ),
    ] {
        let said = fence_with(
            &[&["pg"], arguments.as_slice(), &["--dry-run"]].concat(),
            &[("PGHOST", "/nonexistent")],
        );
        assert_eq!(
            (said.code, said.out.as_str()),
            (0, sql),
            "{arguments:?}: {}",
            said.err
        );
    }
}

#[tokio::test]
async fn a_table_is_observed_then_enforced_then_let_go() {
    let database = Database::migrated().await;
    let said = database.fence(&[
        "pg",
        "protect",
        "orders",
        "shop.order",
        "id",
        "--tier",
        "entity",
        "--observe",
    ]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.starts_with("orders is observed for class shop.order"),
        "{}",
        said.out
    );
    database.run(WRITE).await;
    let (_, status) = database.json(&["pg", "status"]);
    assert_eq!(status["classes"][0]["mode"], "observe");
    assert_eq!(status["classes"][0]["would_be_refused"], "1");
    assert_eq!(status["tables"][0]["table"], "orders");

    let said = database.fence(&["pg", "enforce", "shop.order"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("notice: refused from now on: "), "{}", said.err);
    assert_eq!(database.code("UPDATE orders SET state = 'lost'").await, "ZF002");
    let said = database.fence(&["pg", "status"]);
    assert!(said.out.contains("shop.order  entity  enforce"), "{}", said.out);

    assert_eq!(database.fence(&["pg", "unprotect", "orders"]).code, 0);
    database.run("UPDATE orders SET state = 'free'").await;
}

#[tokio::test]
async fn the_column_guard_is_put_on_and_taken_off() {
    let database = Database::migrated().await;
    database.run("ALTER TABLE orders ADD COLUMN fence_token bigint NOT NULL DEFAULT 9; INSERT INTO orders VALUES (1, 'new')").await;
    let said = database.fence(&[
        "pg",
        "protect",
        "orders",
        "shop.order",
        "id",
        "--token-column",
        "fence_token",
    ]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.err
            .contains("notice: class shop.order was declared without a tier"),
        "{}",
        said.err
    );
    assert_eq!(database.code("UPDATE orders SET fence_token = 8").await, "ZF001");
    let two = database.fence(&[
        "pg",
        "protect",
        "orders",
        "shop.order",
        "id",
        "state",
        "--token-column",
        "fence_token",
    ]);
    assert_eq!(
        (two.code, two.err.as_str()),
        (2, "error: the column guard has one key column\n")
    );
    assert_eq!(database.fence(&["pg", "unprotect", "orders", "--column"]).code, 0);
    database.run("UPDATE orders SET fence_token = 7").await;
}

#[tokio::test]
async fn a_role_is_granted_the_guard_and_loses_it_again() {
    let database = Database::guarded().await;
    let login = database.application().await;
    let postgres = for_tests().await.postgres();
    let app = Database {
        url: postgres.url(database.url.database(), &login),
    };
    let admit = format!("SELECT fence.raise_mark('shop.order', '42', {}, 'g1')", token(1));
    assert_eq!(app.code(&admit).await, "42501");
    assert_eq!(database.fence(&["pg", "grant", &login.role]).code, 0);
    app.run(&admit).await;
    assert_eq!(app.fence(&["pg", "grant", &login.role]).code, 2);
    assert_eq!(database.fence(&["pg", "grant", &login.role, "--revoke"]).code, 0);
    assert_eq!(app.code(&admit).await, "42501");

    let nobody = database.fence(&["pg", "grant", "Nobody"]);
    assert_eq!(nobody.code, 2);
    assert!(
        nobody
            .err
            .starts_with("error: there is no role \"Nobody\" (42704)\nhint: CREATE ROLE"),
        "{}",
        nobody.err
    );
    let (code, said) = database.json(&["pg", "grant", "Nobody"]);
    assert_eq!(code, 2);
    assert!(
        said["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("there is no role"),
        "{said}"
    );
}

#[tokio::test]
async fn evict_ends_the_older_holders_transaction_and_says_so() {
    let database = Database::guarded().await;
    let free = database.fence(&["pg", "evict", "shop.order", "42", &token(34).to_string()]);
    assert_eq!(free.code, 0, "{}", free.err);
    assert!(free.out.starts_with("nobody"), "{}", free.out);

    let mut holder = database.connection().await;
    let begin = format!(
        "BEGIN; SELECT fence.admit('shop.order', '42', {}, 'g33'); {WRITE}",
        token(33)
    );
    run(&mut holder, &begin).await.unwrap();
    let (code, said) = database.json(&["pg", "evict", "shop.order", "42", &token(34).to_string()]);
    assert_eq!((code, &said["held"]), (0, &serde_json::json!(false)), "{said}");
    assert_eq!(said["holders"][0]["outcome"], "evicted");
    assert!(run(&mut holder, "COMMIT").await.is_err());
    assert_eq!(database.number("SELECT count(*) FROM orders").await, 0);

    // A prepared transaction cannot be ended so.
    let prepared = format!("{begin}; PREPARE TRANSACTION '{}'", database.url.database());
    run(&mut database.connection().await, &prepared).await.unwrap();
    let held = database.fence(&["pg", "evict", "shop.order", "42", &token(34).to_string()]);
    assert_eq!(held.code, 1, "{}", held.err);
    assert!(held.out.starts_with("prepared: "), "{}", held.out);
    database
        .run(&format!("ROLLBACK PREPARED '{}'", database.url.database()))
        .await;
}

#[tokio::test]
async fn uninstall_names_what_is_lost_and_waits_for_a_yes() {
    let database = Database::guarded().await;
    database
        .run(&format!(
            "SELECT fence.raise_mark('shop.order', '42', {}, 'g1')",
            token(1)
        ))
        .await;
    let unconfirmed = database.fence(&["pg", "uninstall"]);
    assert_eq!(unconfirmed.code, 2);
    assert_eq!(
        unconfirmed.err,
        "error: this would lose 1 mark, 1 class and the guard of orders; say --danger-drop-all-marks if that is meant\n"
    );
    assert_eq!(database.code(WRITE).await, "ZF002");
    let said = database.fence(&["pg", "uninstall", "--danger-drop-all-marks"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (
            0,
            "removed, and with it 1 mark, 1 class and the guard of orders\n"
        )
    );
    database.run(WRITE).await;
    let gone = database.fence(&["pg", "uninstall", "--danger-drop-all-marks"]);
    assert_eq!(gone.code, 2);
    assert_eq!(
        gone.err,
        "error: there is no guard in this database: install it with fence pg migrate\n"
    );
}

#[tokio::test]
async fn a_table_in_use_is_an_answer_that_may_be_asked_for_again() {
    let database = Database::guarded().await;
    let mut reader = database.connection().await;
    run(&mut reader, "BEGIN; SELECT * FROM orders").await.unwrap();
    let busy = database.fence(&["pg", "uninstall", "--danger-drop-all-marks"]);
    assert_eq!(busy.code, 4, "{}", busy.err);
    assert!(busy.err.contains("(55P03)"), "{}", busy.err);
    run(&mut reader, "COMMIT").await.unwrap();
    assert_eq!(
        database
            .fence(&["pg", "uninstall", "--danger-drop-all-marks"])
            .code,
        0
    );
}

#[tokio::test]
async fn the_variables_and_the_password_file_of_psql_say_which_database() {
    let database = Database::migrated().await;
    let login = database.url.login();
    let postgres = for_tests().await.postgres();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pgpass");
    let line = format!(
        "127.0.0.1:{}:*:{}:{}\n",
        postgres.port(),
        login.role,
        login.password
    );
    std::fs::write(&file, line).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let port = postgres.port().to_string();
    let variables = [
        ("PGHOST", "127.0.0.1"),
        ("PGPORT", port.as_str()),
        ("PGUSER", login.role.as_str()),
        ("PGDATABASE", database.url.database()),
    ];
    let with_file = [&variables[..], &[("PGPASSFILE", file.to_str().unwrap())]].concat();
    let said = fence_with(&["pg", "status"], &with_file);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.starts_with("the guard is installed and up to date"),
        "{}",
        said.out
    );
    let said = fence_with(
        &["pg", "status"],
        &[&variables[..], &[("PGPASSWORD", "wrong")]].concat(),
    );
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(
        said.err.contains("password authentication failed"),
        "{}",
        said.err
    );
}

#[test]
fn what_cannot_be_reached_or_is_spelt_wrong_is_told_apart() {
    let said = fence_with(
        &["pg", "status", "--database-url", "postgresql://u@127.0.0.1:1/x"],
        &[],
    );
    assert_eq!(said.code, 4);
    assert!(
        said.err
            .starts_with("error: cannot connect to database x at 127.0.0.1:1 as u: "),
        "{}",
        said.err
    );
    for (url, words) in [
        (
            "mysql://u@h/x",
            "error: the database URL begins with mysql, and not with postgresql\n",
        ),
        (
            "localhost/x",
            "error: the database URL is not of the form postgresql://",
        ),
        (
            "postgresql://u@h/x?sslmod=require",
            "error: the database URL has no parameter sslmod\n",
        ),
        (
            "postgresql://u@h/x?sslmode=maybe",
            "error: the database URL is not of the form postgresql://",
        ),
    ] {
        let said = fence_with(&["pg", "status", "--database-url", url], &[]);
        assert_eq!(said.code, 2, "{url}: {}", said.err);
        assert!(said.err.starts_with(words), "{url}: {}", said.err);
    }
    let said = fence_with(&["pg", "status"], &[("PGSSLMODE", "full")]);
    assert_eq!(said.code, 2);
    assert!(
        said.err
            .starts_with("error: PGSSLMODE is \"full\", and must be verify-full,"),
        "{}",
        said.err
    );
}

#[tokio::test]
async fn a_session_says_which_command_it_is_for() {
    let database = Database::migrated().await;
    let mut holder = database.connection().await;
    let lock = "BEGIN; LOCK TABLE fence.migration IN ACCESS EXCLUSIVE MODE";
    run(&mut holder, lock).await.unwrap();
    let url = database.url.as_str().to_owned();
    let status =
        tokio::task::spawn_blocking(move || fence_with(&["pg", "status"], &[("DATABASE_URL", &url)]));
    let waiting = "SELECT pg_stat_clear_snapshot(); SELECT count(*) FROM pg_stat_activity
                   WHERE application_name = 'fence pg status' AND wait_event_type = 'Lock' AND datname = current_database()";
    let began = Instant::now();
    while run(&mut holder, waiting).await.unwrap()[1].get::<i64, _>(0) != 1 {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "nobody waits under the command's name"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    run(&mut holder, "COMMIT").await.unwrap();
    assert_eq!(status.await.unwrap().code, 0);
}
