//! Several guards beside each other, and several sessions that change them at once.

use std::time::{Duration, Instant};

use crate::enforce::{in_transaction, with_rows};
use crate::support::{Database, code, failure, wait_for_lock_waiters};

/// The triggers on a table, by name, with whether each fires always.
async fn triggers(database: &Database, table: &str) -> String {
    database
        .text(&format!(
            "SELECT coalesce(string_agg(concat_ws(' ', tgname, tgenabled), ', ' ORDER BY tgname), 'none')
             FROM pg_trigger WHERE tgrelid = '{table}'::regclass AND NOT tgisinternal"
        ))
        .await
}

#[tokio::test]
async fn a_part_with_another_guard_keeps_it_and_its_whole_is_not_taken() {
    let (database, client) = with_rows().await;
    client
        .batch_execute(
            "CREATE TABLE whole (id text NOT NULL, alt text NOT NULL, f bigint NOT NULL, r int) PARTITION BY LIST (r);
             CREATE TABLE part_1 PARTITION OF whole FOR VALUES IN (1);
             CREATE TABLE part_2 PARTITION OF whole FOR VALUES IN (2);
             SELECT fence.protect('part_2', 'paydb.part', 'alt');
             SELECT fence.protect_column('part_2', 'paydb.f', 'id', 'f')",
        )
        .await
        .unwrap();
    let guards = "SELECT string_agg(concat_ws(' ', relation, guard, class, key_columns), '; ' ORDER BY guard)
                  FROM fence.guard_trigger WHERE relation IN ('whole'::regclass, 'part_1'::regclass, 'part_2'::regclass)";
    let before = database.text(guards).await;
    for call in [
        "SELECT fence.protect('whole', 'paydb.whole', 'alt')",
        "SELECT fence.protect('whole', 'paydb.part', 'id')",
        "SELECT fence.protect('whole', 'paydb.whole', 'alt', mode => 'observe')",
        "SELECT fence.protect_column('whole', 'paydb.whole', 'id', 'f')",
        "SELECT fence.protect_column('whole', 'paydb.f', 'alt', 'f')",
    ] {
        let refused = failure(&client, call).await;
        assert_eq!(refused.code().code(), "42710", "{call}");
        assert!(refused.message().contains("public.part_2"), "{refused:?}");
        assert_eq!(database.text(guards).await, before, "{call}");
    }
    let write = "INSERT INTO part_2 VALUES ('a', 'b', 5, 2)";
    assert_eq!(code(&client, write).await, "ZF002");
}

#[tokio::test]
async fn a_part_that_was_protected_by_itself_stays_so_when_its_whole_is_not() {
    let (database, client) = with_rows().await;
    client
        .batch_execute(
            "CREATE TABLE whole (id text NOT NULL, f bigint NOT NULL, r int) PARTITION BY LIST (r);
             CREATE TABLE part_1 PARTITION OF whole FOR VALUES IN (1);
             CREATE TABLE part_2 PARTITION OF whole FOR VALUES IN (2);
             CREATE TABLE parent (id text NOT NULL);
             CREATE TABLE heir () INHERITS (parent);
             CREATE TABLE other_heir () INHERITS (parent);",
        )
        .await
        .unwrap();
    for table in ["part_2", "whole", "heir", "parent"] {
        let protect = format!("SELECT fence.protect('{table}', 'paydb.part', 'id')");
        client.batch_execute(&protect).await.unwrap();
    }
    for table in ["part_2", "whole"] {
        let protect = format!("SELECT fence.protect_column('{table}', 'paydb.f', 'id', 'f')");
        client.batch_execute(&protect).await.unwrap();
    }
    for call in [
        "SELECT fence.unprotect('whole')",
        "SELECT fence.unprotect_column('whole')",
        "SELECT fence.unprotect('parent')",
    ] {
        client.batch_execute(call).await.unwrap();
    }
    for (table, expected) in [
        ("whole", "none"),
        ("part_1", "none"),
        ("parent", "none"),
        ("other_heir", "none"),
        (
            "part_2",
            "fence_column A, fence_enforce A, fence_truncate A, zz_fence_column_move A",
        ),
        ("heir", "fence_enforce A, fence_truncate A"),
    ] {
        assert_eq!(triggers(&database, table).await, expected, "{table}");
    }
    for write in [
        "INSERT INTO whole VALUES ('a', 5, 2)",
        "INSERT INTO heir VALUES ('a')",
    ] {
        assert_eq!(code(&client, write).await, "ZF002", "{write}");
    }
    for call in [
        "SELECT fence.unprotect('part_2')",
        "SELECT fence.unprotect_column('part_2')",
        "SELECT fence.unprotect('heir')",
    ] {
        client.batch_execute(call).await.unwrap();
    }
    for table in ["part_2", "heir"] {
        assert_eq!(triggers(&database, table).await, "none", "{table}");
    }
}

#[tokio::test]
async fn a_class_put_in_force_by_an_open_transaction_is_not_relaxed_by_another() {
    let (database, client) = with_rows().await;
    client
        .batch_execute(
            "CREATE TABLE a (id text NOT NULL, f bigint NOT NULL); CREATE TABLE b (id text NOT NULL, f bigint NOT NULL);
             SELECT fence.declare('paydb.both')",
        )
        .await
        .unwrap();
    let open =
        "BEGIN; SET LOCAL application_name = 'migration-7'; SELECT fence.protect('a', 'paydb.both', 'id')";
    client.batch_execute(open).await.unwrap();
    let other = database.client().await;
    for call in [
        "SELECT fence.protect('b', 'paydb.both', 'id', mode => 'observe')",
        "SELECT fence.protect_column('b', 'paydb.both', 'id', 'f', 'observe')",
        "SELECT fence.enforce('paydb.both')",
        "SELECT fence.danger_relax('paydb.both', 'observe', 'a test')",
    ] {
        let began = Instant::now();
        let blocked = failure(&other, call).await;
        let waited = began.elapsed();
        assert_eq!(blocked.code().code(), "55P03", "{call}");
        assert!(blocked.message().contains("class paydb.both"), "{blocked:?}");
        assert!(blocked.detail().unwrap().contains("'migration-7'"), "{blocked:?}");
        assert!(
            waited > Duration::from_millis(800) && waited < Duration::from_secs(4),
            "{waited:?}"
        );
    }
    let relaxing = tokio::spawn(async move {
        code(
            &other,
            "SELECT fence.protect('b', 'paydb.both', 'id', mode => 'observe')",
        )
        .await
    });
    wait_for_lock_waiters(&database, 1).await;
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(relaxing.await.unwrap(), "55000");
    let mode = "SELECT mode::text FROM fence.class WHERE name = 'paydb.both'";
    assert_eq!(database.text(mode).await, "enforce");

    // Taking a guard off is such a change too.
    client
        .batch_execute("BEGIN; SELECT fence.unprotect('a')")
        .await
        .unwrap();
    let other = database.client().await;
    let protect = "SELECT fence.protect('b', 'paydb.both', 'id')";
    assert_eq!(code(&other, protect).await, "55P03");
    client.batch_execute("COMMIT").await.unwrap();
}

#[tokio::test]
async fn a_snapshot_from_before_a_guard_does_not_relax_its_class() {
    let (database, client) = with_rows().await;
    client
        .batch_execute(
            "CREATE TABLE a (id text NOT NULL); CREATE TABLE b (id text NOT NULL); SELECT fence.declare('paydb.both')",
        )
        .await
        .unwrap();
    let other = database.client().await;
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM a";
    other.batch_execute(begin).await.unwrap();
    let protect = "SELECT fence.protect('a', 'paydb.both', 'id')";
    client.batch_execute(protect).await.unwrap();
    let relax = "SELECT fence.protect('b', 'paydb.both', 'id', mode => 'observe')";
    let refused = failure(&other, relax).await;
    assert_eq!(refused.code().code(), "55000");
    assert!(refused.message().contains("READ COMMITTED"), "{refused:?}");
}

#[tokio::test]
async fn sessions_that_protect_tables_of_one_class_at_once_take_turns() {
    let (database, client) = with_rows().await;
    let mut protecting = Vec::new();
    for n in 0..8 {
        let create = format!("CREATE TABLE t{n} (id text NOT NULL)");
        client.batch_execute(&create).await.unwrap();
        let session = database.client().await;
        protecting.push(tokio::spawn(async move {
            let protect = format!("SELECT fence.protect('t{n}', 'paydb.many', 'id')");
            session.batch_execute(&protect).await
        }));
    }
    for one in protecting {
        one.await.unwrap().unwrap();
    }
    let guarded = "SELECT count(*) FROM fence.guarded WHERE class = 'paydb.many'";
    assert_eq!(database.number(guarded).await, 8);
}

#[tokio::test]
async fn only_the_role_that_installed_the_guard_protects_with_it() {
    let (database, client) = with_rows().await;
    client
        .batch_execute("CREATE TABLE t (id text NOT NULL, f bigint NOT NULL)")
        .await
        .unwrap();
    let superuser = database.superuser().await;
    for call in [
        "SELECT fence.protect('t', 'paydb.t', 'id')",
        "SELECT fence.protect('t', 'paydb.t', 'id', mode => 'observe')",
        "SELECT fence.protect('t', 'paydb.t', ARRAY['id']::name[], mode => 'observe')",
        "SELECT fence.protect_column('t', 'paydb.t', 'id', 'f')",
        "SELECT fence.protect_column('t', 'paydb.t', 'id', 'f', 'observe')",
    ] {
        let refused = failure(&superuser, call).await;
        assert_eq!(refused.code().code(), "42501", "{call}");
        let role = &database.url.login().role;
        assert!(
            refused.hint().unwrap().contains(&format!("SET ROLE {role}")),
            "{refused:?}"
        );
        let as_owner = format!("BEGIN; SET LOCAL ROLE {role}; {call}; ROLLBACK");
        superuser.batch_execute(&as_owner).await.unwrap();
    }
}

#[tokio::test]
async fn a_session_without_standard_strings_writes_the_same_keys() {
    let (database, client) = with_rows().await;
    client
        .batch_execute(
            "CREATE TABLE two (a text NOT NULL, b text NOT NULL); SELECT fence.protect('two', 'paydb.two', 'a', 'b');
             SET standard_conforming_strings = off",
        )
        .await
        .unwrap();
    let key = "fence.key('x/y', E'p\\\\q')";
    in_transaction(
        &client,
        &[
            &format!("SELECT fence.admit('paydb.two', {key}, 5)"),
            "INSERT INTO two VALUES ('x/y', E'p\\\\q')",
            // What it does to the guard function that is made here is the same for everybody.
            "CREATE TABLE three (a text NOT NULL, b text NOT NULL)",
            "SELECT fence.protect('three', 'paydb.three', 'b', 'a')",
        ],
    )
    .await
    .unwrap();
    let written = "SELECT key FROM fence.high_water WHERE class = 'paydb.two'";
    assert_eq!(database.text(written).await, r"x\/y/p\\q");
    let other = database.client().await;
    in_transaction(
        &other,
        &[
            &format!("SELECT fence.admit('paydb.two', {key}, 6)"),
            "DELETE FROM two",
            &format!("SELECT fence.admit('paydb.three', {key}, 6)"),
            r"INSERT INTO three (b, a) VALUES ('x/y', 'p\q')",
        ],
    )
    .await
    .unwrap();
}

#[tokio::test]
async fn columns_whose_names_run_together_have_a_guard_each() {
    let (database, client) = with_rows().await;
    client
        .batch_execute(
            "CREATE TABLE two (a text NOT NULL, b text NOT NULL);
             CREATE TABLE one (\"a\x1fb\" text NOT NULL);
             SELECT fence.protect('two', 'paydb.run', 'a', 'b');
             SELECT fence.protect('one', 'paydb.run', E'a\\x1fb')",
        )
        .await
        .unwrap();
    for (key, write) in [
        ("fence.key('x', 'y')", "INSERT INTO two VALUES ('x', 'y')"),
        ("'x'", "INSERT INTO one VALUES ('x')"),
    ] {
        assert_eq!(code(&client, write).await, "ZF002", "{write}");
        let admission = format!("SELECT fence.admit('paydb.run', {key}, 5)");
        in_transaction(&client, &[&admission, write]).await.unwrap();
    }
    let functions = "SELECT count(DISTINCT function) FROM fence.guard_trigger WHERE class = 'paydb.run'";
    assert_eq!(database.number(functions).await, 2);
}

#[tokio::test]
async fn a_question_about_a_column_that_is_not_there_says_which() {
    let (_database, client) = with_rows().await;
    client
        .batch_execute("CREATE TABLE t (id text NOT NULL, f bigint NOT NULL)")
        .await
        .unwrap();
    for call in [
        "SELECT fence.explain_column('t', 'absent', 'f', 'a', 5)",
        "SELECT fence.explain_column('t', 'id', 'absent', 'a', 5)",
        "SELECT fence.explain_block('t', 'absent', 'a')",
    ] {
        let refused = failure(&client, call).await;
        assert_eq!(refused.code().code(), "42703", "{call}");
        assert!(refused.message().contains("absent"), "{refused:?}");
    }
}
