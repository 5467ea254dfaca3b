//! Installing, applying again, and who may do what.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use fence_pg::{GuardSha256, MIGRATIONS, guard_sha256};
use pause_kit::services::for_tests;

use crate::support::{CLASS, Database, admit, client, code, failure, token};

fn files() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql");
    let mut files: Vec<(String, String)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            (
                path.file_name().unwrap().to_str().unwrap().to_owned(),
                fs::read_to_string(path).unwrap(),
            )
        })
        .collect();
    files.sort();
    files
}

#[test]
fn what_is_embedded_is_the_folder_in_name_order() {
    let embedded: Vec<(String, String)> = MIGRATIONS
        .iter()
        .map(|migration| (migration.name.to_owned(), migration.sql.to_owned()))
        .collect();
    assert_eq!(embedded, files());
    assert_eq!(guard_sha256(), GuardSha256::of(files()));
    assert_eq!(guard_sha256().to_string().len(), 64);
}

#[test]
fn the_digest_changes_with_every_name_and_content_and_not_with_the_order() {
    let digests = [
        GuardSha256::of([("a", "bc")]),
        GuardSha256::of([("ab", "c")]),
        GuardSha256::of([("a", "b"), ("c", "")]),
        GuardSha256::of([("a", "bd")]),
        GuardSha256::of::<&str, &str>([]),
    ];
    let distinct: BTreeSet<String> = digests.iter().map(ToString::to_string).collect();
    assert_eq!(distinct.len(), digests.len());
    assert_eq!(
        GuardSha256::of([("a", "1"), ("b", "2")]),
        GuardSha256::of([("b", "2"), ("a", "1")])
    );
}

#[tokio::test]
async fn both_drivers_install_once_and_what_is_there_is_left_alone() {
    let names: Vec<&str> = MIGRATIONS.iter().map(|migration| migration.name).collect();
    for first_is_sqlx in [true, false] {
        let database = Database::bare().await;
        let mut connection = database.pool.acquire().await.unwrap();
        let client = database.client().await;
        if first_is_sqlx {
            assert_eq!(fence_pg::sqlx::install(&mut connection).await.unwrap(), names);
            assert!(
                fence_pg::tokio_postgres::install(&client)
                    .await
                    .unwrap()
                    .is_empty()
            );
        } else {
            assert_eq!(fence_pg::tokio_postgres::install(&client).await.unwrap(), names);
            assert!(fence_pg::sqlx::install(&mut connection).await.unwrap().is_empty());
        }
        assert_eq!(
            database.number("SELECT count(*) FROM fence.migration").await,
            names.len() as i64
        );
    }
}

#[tokio::test]
async fn installers_at_once_take_turns() {
    let database = Database::bare().await;
    let install = async || {
        let mut connection = database.pool.acquire().await.unwrap();
        fence_pg::sqlx::install(&mut connection).await.unwrap().len()
    };
    let (a, b, c) = tokio::join!(install(), install(), install());
    assert_eq!(a + b + c, MIGRATIONS.len());
}

#[tokio::test]
async fn applying_every_file_again_changes_no_mark_and_no_declaration() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client.batch_execute(&admit("acct-1", 34)).await.unwrap();
    for (name, sql) in files() {
        client
            .batch_execute(&sql)
            .await
            .unwrap_or_else(|error| panic!("{name}: {error:?}"));
    }
    assert_eq!(code(&client, &admit("acct-1", 33)).await, "ZF001");
    assert_eq!(code(&client, "DELETE FROM fence.high_water").await, "55000");
    let insert = "INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 5)";
    assert_eq!(code(&client, insert).await, "ZF002");
    client
        .batch_execute(&format!("BEGIN; {} {insert}; COMMIT", admit("acct-1", 34)))
        .await
        .unwrap();
}

#[tokio::test]
async fn an_older_installations_triggers_are_brought_up_to_date() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE TABLE batch (id text PRIMARY KEY, f bigint NOT NULL);
             SELECT fence.protect_column('batch', 'paydb.batch', 'id', 'f');
             CREATE TABLE part (id text NOT NULL, r int) PARTITION BY LIST (r);
             CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1);
             SELECT fence.protect('part', 'paydb.part', 'id');
             -- As they were before there were modes.
             CREATE FUNCTION fence.enforce() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
             CREATE FUNCTION fence.require_admitted(class text, key text, relation regclass) RETURNS void LANGUAGE sql AS '';
             CREATE OR REPLACE TRIGGER fence_enforce AFTER INSERT OR UPDATE OR DELETE ON transfer
                 FOR EACH ROW EXECUTE FUNCTION fence.enforce('paydb.account', 'from_account');
             CREATE OR REPLACE TRIGGER fence_truncate BEFORE TRUNCATE ON transfer
                 FOR EACH STATEMENT EXECUTE FUNCTION fence.refuse_truncate();
             CREATE OR REPLACE TRIGGER fence_enforce AFTER INSERT OR UPDATE OR DELETE ON part
                 FOR EACH ROW EXECUTE FUNCTION fence.enforce('paydb.part', 'id');
             DROP TABLE fence.guarded;",
        )
        .await
        .unwrap();
    assert_eq!(code(&client, "TRUNCATE transfer").await, "ZF002");
    for (name, sql) in files() {
        client
            .batch_execute(&sql)
            .await
            .unwrap_or_else(|error| panic!("{name}: {error:?}"));
    }
    for sql in [
        "INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 5)",
        "INSERT INTO part VALUES ('a', 1)",
        "INSERT INTO part_1 VALUES ('a', 1)",
    ] {
        assert_eq!(code(&client, sql).await, "ZF002", "{sql}");
    }
    assert_eq!(
        database
            .text(
                "SELECT string_agg(concat_ws(' ', name, guard, class), '; ' ORDER BY name) FROM fence.guarded"
            )
            .await,
        "public.batch column paydb.batch; public.part mark paydb.part; public.transfer mark paydb.account"
    );
    let left =
        "SELECT count(*) FROM fence.guard_trigger WHERE NOT always OR function = to_regproc('fence.enforce')";
    assert_eq!(database.number(left).await, 0);
    let old = "SELECT count(*) FROM pg_proc WHERE oid IN (to_regprocedure('fence.enforce()'), to_regproc('fence.require_admitted'))";
    assert_eq!(database.number(old).await, 0);
}

#[tokio::test]
async fn psql_installs_the_folder_file_by_file_and_again() {
    let database = Database::bare().await;
    let psql = pause_kit::services::locate::postgres().unwrap().join("psql");
    for arguments in [
        &["--no-psqlrc"][..],
        &["--no-psqlrc"][..],
        &["--no-psqlrc", "--single-transaction"][..],
    ] {
        for (name, _) in files() {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql").join(&name);
            let output = tokio::process::Command::new(&psql)
                .args(arguments)
                .args(["--set=ON_ERROR_STOP=1", "--quiet", "--file"])
                .arg(file)
                .arg(database.url.as_str())
                .output()
                .await
                .unwrap_or_else(|error| {
                    panic!(
                        "{}: {error}; install PostgreSQL's client programs",
                        psql.display()
                    )
                });
            assert!(
                output.status.success(),
                "{name}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
    // psql records no digests, so that a program applies the files again, once.
    let client = database.client().await;
    assert_eq!(
        fence_pg::tokio_postgres::pending(&client).await.unwrap(),
        MIGRATIONS
    );
    assert_eq!(
        fence_pg::tokio_postgres::install(&client).await.unwrap().len(),
        MIGRATIONS.len()
    );
    assert_eq!(fence_pg::tokio_postgres::pending(&client).await.unwrap(), []);
}

#[tokio::test]
async fn an_installation_of_older_files_is_upgraded_in_place_and_a_newer_one_is_left_alone() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client.batch_execute(&admit("acct-1", 34)).await.unwrap();
    // As it was before there were digests, with an older admission.
    client
        .batch_execute(
            "ALTER TABLE fence.migration DROP COLUMN sha256;
             CREATE OR REPLACE FUNCTION fence.raise_mark(class text, key text, token bigint, grant_id text DEFAULT NULL)
             RETURNS void LANGUAGE sql AS ''",
        )
        .await
        .unwrap();
    let mut connection = database.pool.acquire().await.unwrap();
    let names: Vec<&str> = MIGRATIONS.iter().map(|migration| migration.name).collect();
    assert_eq!(
        fence_pg::sqlx::pending(&mut connection).await.unwrap(),
        MIGRATIONS
    );
    assert_eq!(fence_pg::sqlx::install(&mut connection).await.unwrap(), names);
    let stale = format!(
        "SELECT fence.raise_mark('{CLASS}', 'acct-1', {}, 'g33')",
        token(33)
    );
    assert_eq!(code(&client, &stale).await, "ZF001");

    client
        .batch_execute("UPDATE fence.migration SET sha256 = 'other' WHERE name LIKE '0003%'")
        .await
        .unwrap();
    assert_eq!(
        fence_pg::tokio_postgres::install(&client).await.unwrap(),
        &names[2..]
    );
    client
        .batch_execute("INSERT INTO fence.migration (name) VALUES ('9999_later.sql')")
        .await
        .unwrap();
    for newer in [
        fence_pg::sqlx::install(&mut connection).await.unwrap_err(),
        fence_pg::tokio_postgres::install(&client).await.unwrap_err(),
    ] {
        assert!(matches!(newer, fence_pg::InstallError::Newer { .. }), "{newer:?}");
    }
}

#[tokio::test]
async fn a_failing_installation_says_which_file_and_leaves_the_connection_usable() {
    let database = Database::bare().await;
    let login = for_tests()
        .await
        .postgres()
        .create_login(&format!("{}_guest", database.url.database()))
        .await
        .unwrap();
    database
        .run(&format!(
            "GRANT CONNECT ON DATABASE {} TO {}",
            database.url.database(),
            login.role
        ))
        .await;
    let url = for_tests().await.postgres().url(database.url.database(), &login);
    let guest = client(&url).await;
    let error = fence_pg::tokio_postgres::install(&guest).await.unwrap_err();
    assert_eq!(error.to_string(), "0001_ledger.sql cannot be applied");
    guest.batch_execute("SELECT 1").await.unwrap();
    let mut connection = crate::support::pool(&url, 1).acquire().await.unwrap();
    let error = fence_pg::sqlx::install(&mut connection).await.unwrap_err();
    assert_eq!(error.to_string(), "0001_ledger.sql cannot be applied");
    sqlx::query("SELECT 1").execute(&mut *connection).await.unwrap();
    // The next installer finds the lock free.
    assert_eq!(
        fence_pg::tokio_postgres::install(&database.client().await)
            .await
            .unwrap()
            .len(),
        MIGRATIONS.len()
    );
}

#[tokio::test]
async fn an_application_role_admits_and_writes_and_can_do_nothing_else() {
    let database = Database::guarded().await;
    let postgres = for_tests().await.postgres();
    let login = postgres
        .create_login(&format!("{}_app", database.url.database()))
        .await
        .unwrap();
    let app = async || client(&postgres.url(database.url.database(), &login)).await;
    database
        .run(&format!(
            "GRANT CONNECT ON DATABASE {} TO {}",
            database.url.database(),
            login.role
        ))
        .await;
    let role = &login.role;
    // PUBLIC may do nothing.
    let admission = admit("acct-1", 34);
    assert_eq!(code(&app().await, &admission).await, "42501");
    database
        .run(&format!("GRANT USAGE ON SCHEMA fence TO {role}"))
        .await;
    assert_eq!(code(&app().await, &admission).await, "42501");

    database
        .run(&format!(
            "GRANT EXECUTE ON FUNCTION fence.admit, fence.raise_mark TO {role};
             GRANT ALL ON transfer TO {role}"
        ))
        .await;
    let app = app().await;
    let insert = "INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 5)";
    app.batch_execute(&format!("BEGIN; {admission} {insert}; COMMIT"))
        .await
        .unwrap();
    for sql in [
        insert,
        "UPDATE transfer SET amount = 0",
        "DELETE FROM transfer",
        "TRUNCATE transfer",
    ] {
        assert_eq!(code(&app, sql).await, "ZF002", "{sql}");
    }
    let stale = format!(
        "SELECT fence.raise_mark('{CLASS}', 'acct-1', {}, 'g33')",
        token(33)
    );
    assert_eq!(code(&app, &stale).await, "ZF001");
    for sql in [
        "SELECT * FROM fence.high_water",
        "UPDATE fence.high_water SET token = 1",
        "INSERT INTO fence.high_water (class, key, token) VALUES ('paydb.account', 'acct-2', 1)",
        "DELETE FROM fence.high_water",
        "ALTER TABLE transfer DISABLE TRIGGER fence_enforce",
        "DROP TRIGGER fence_enforce ON transfer",
        "ALTER TABLE fence.high_water DISABLE TRIGGER ALL",
        "SET session_replication_role = replica",
        "SELECT fence.declare('paydb.mine')",
        "SELECT fence.register_epoch('entity', 9)",
        "SELECT fence.take_key('paydb.account', 'acct-2')",
        "SELECT fence.danger_bypass('paydb.account', 'none')",
        "SELECT fence.danger_relax('paydb.account', 'observe', 'none')",
        "SELECT fence.enforce('paydb.account')",
        "SELECT fence.unprotect('transfer')",
        "UPDATE fence.class SET mode = 'observe'",
        "INSERT INTO fence.danger_log (role, what, class, reason) VALUES ('a', 'danger_bypass', 'paydb.account', 'none')",
        "SELECT fence.log_danger('danger_bypass', 'paydb.account', NULL, NULL, NULL, 'none')",
        "CREATE OR REPLACE FUNCTION fence.admit(class text, key text, token bigint, grant_id text DEFAULT NULL) RETURNS void
             LANGUAGE sql AS ''",
    ] {
        assert_eq!(code(&app, sql).await, "42501", "{sql}");
    }
    // No trigger of its own can borrow a function of the guard.
    database
        .run(&format!("CREATE TABLE t (k text); GRANT TRIGGER ON t TO {role}"))
        .await;
    let functions = app
        .query("SELECT oid::regproc::text FROM pg_proc WHERE pronamespace = 'fence'::regnamespace AND prorettype = 'trigger'::regtype", &[])
        .await
        .unwrap();
    assert!(functions.len() > 4, "{functions:?}");
    for function in functions {
        let function: &str = function.get(0);
        let borrow =
            format!("CREATE TRIGGER t AFTER INSERT ON t FOR EACH ROW EXECUTE FUNCTION {function}('c', 'k')");
        let error = failure(&app, &borrow).await;
        assert_eq!(error.code().code(), "42501", "{function}");
        assert!(error.message().contains("for function"), "{error:?}");
    }
}

#[tokio::test]
async fn objects_of_the_callers_own_do_not_stand_in_for_the_guards() {
    let database = Database::guarded().await;
    let client = database.client().await;
    client
        .batch_execute(
            "CREATE SCHEMA trap; CREATE FUNCTION trap.format(text, VARIADIC text[]) RETURNS text LANGUAGE sql AS $$ SELECT 'trapped' $$;
             CREATE FUNCTION trap.octet_length(text) RETURNS int LANGUAGE sql AS 'SELECT 9999';
             CREATE FUNCTION trap.pg_current_xact_id() RETURNS xid8 LANGUAGE sql AS $$ SELECT '3'::xid8 $$;
             SET search_path = trap, pg_catalog, public",
        )
        .await
        .unwrap();
    client.batch_execute(&admit("acct-1", 34)).await.unwrap();
    assert_eq!(code(&client, &admit("acct-1", 33)).await, "ZF001");
    assert_eq!(
        code(
            &client,
            "INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 5)"
        )
        .await,
        "ZF002"
    );
}

#[tokio::test]
async fn dropping_the_schema_removes_the_guard_and_leaves_the_tables() {
    let database = Database::guarded().await;
    database
        .run(
            "DROP SCHEMA fence CASCADE;
             INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 5)",
        )
        .await;
    assert_eq!(database.number("SELECT count(*) FROM transfer").await, 1);
}
