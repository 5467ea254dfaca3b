//! What the records under `docs/adr` rest on: each test shows what would go wrong otherwise.

use crate::column::accounts;
use crate::support::{Database, admit, code, wait_for_lock_waiters};

/// Spends what there is to spend, once: the second one finds it spent.
const SPEND: &str = "INSERT INTO transfer (from_account, amount)
    SELECT 'acct-1', 100 WHERE NOT EXISTS (SELECT FROM transfer WHERE from_account = 'acct-1')";

/// One holder has spent in an open transaction, and a newer one comes with `statements`: how often was there spending, and
/// which SQLSTATE did the newer one get, if any?
async fn spent(database: &Database, newer: i64, begin: &str, statements: &[&str]) -> (i64, Option<String>) {
    database.run(&admit("acct-1", 33)).await;
    let h1 = database.client().await;
    h1.batch_execute(&format!("BEGIN; {} {SPEND}", admit("acct-1", 33)))
        .await
        .unwrap();
    let h2 = database.client().await;
    h2.batch_execute(begin).await.unwrap();
    let statements: Vec<String> = statements
        .iter()
        .map(|statement| statement.replace("{admit}", &admit("acct-1", newer)))
        .collect();
    let second = async {
        for statement in &statements {
            if let Err(error) = h2.batch_execute(statement).await {
                return Some(error.code().unwrap().code().to_owned());
            }
        }
        h2.batch_execute("COMMIT").await.unwrap();
        None
    };
    let first = async {
        wait_for_lock_waiters(database, 1).await;
        h1.batch_execute("COMMIT").await.unwrap();
    };
    let (refused, ()) = tokio::join!(second, first);
    (database.number("SELECT count(*) FROM transfer").await, refused)
}

#[tokio::test]
async fn a_mark_that_an_equal_token_only_locks_lets_a_later_snapshot_spend_twice() {
    let snapshot = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM transfer";
    let written = Database::guarded().await;
    let outcome = spent(&written, 33, snapshot, &["{admit}", SPEND]).await;
    assert_eq!(outcome, (1, Some("40001".to_owned())));

    // A guard that leaves the row of an equal token as it is. The table's own triggers would notice, as they ask for the row's
    // evidence; so it has to do without them.
    let locked = Database::guarded().await;
    locked
        .run(
            "SELECT fence.unprotect('transfer');
             CREATE OR REPLACE FUNCTION fence.admit(class text, key text, token bigint, grant_id text DEFAULT NULL) RETURNS void
             LANGUAGE plpgsql AS $$
             BEGIN
                 PERFORM FROM fence.high_water h
                 WHERE h.class = admit.class AND h.key = admit.key AND h.token = admit.token FOR UPDATE;
                 IF NOT FOUND THEN
                     INSERT INTO fence.high_water (class, key, token, grant_id) VALUES ($1, $2, $3, $4);
                 END IF;
             END
             $$",
        )
        .await;
    let outcome = spent(&locked, 33, snapshot, &["{admit}", SPEND]).await;
    assert_eq!(outcome, (2, None));
}

#[tokio::test]
async fn admission_and_write_in_one_statement_spend_twice_and_in_two_or_in_one_function_once() {
    let one_statement = format!(
        "WITH admitted AS MATERIALIZED ({}) {} AND EXISTS (SELECT FROM admitted)",
        admit("acct-1", 34).trim_end_matches(';'),
        SPEND
    );
    let function = format!(
        "CREATE FUNCTION spend() RETURNS void LANGUAGE plpgsql VOLATILE AS $$
         BEGIN
             PERFORM {};
             {SPEND};
         END
         $$",
        admit("acct-1", 34)
            .trim_start_matches("SELECT ")
            .trim_end_matches(';'),
    );
    let unprotected = "SELECT fence.unprotect('transfer')";
    let forms: [(&str, &[&str], i64, Option<&str>); 4] = [
        (unprotected, &[&one_statement], 2, None),
        // The triggers of a protected table see what the writing statement sees: no admission.
        ("", &[&one_statement], 1, Some("ZF002")),
        ("", &["{admit}", SPEND], 1, None),
        ("", &["SELECT spend()"], 1, None),
    ];
    for (setup, statements, times, refused) in forms {
        let database = Database::guarded().await;
        database.run(setup).await;
        database.run(&function).await;
        let outcome = spent(&database, 34, "BEGIN", statements).await;
        assert_eq!(outcome, (times, refused.map(str::to_owned)), "{statements:?}");
    }
}

#[tokio::test]
async fn no_trigger_on_a_column_tells_a_forgotten_token_from_one_that_is_presented_again() {
    let forgets = "UPDATE account SET balance = balance + 1 WHERE id = 1";
    let presents_again = "UPDATE account SET balance = balance + 1, fence = 30 WHERE id = 1 AND fence <= 30";
    let names_the_column = "UPDATE account SET balance = balance + 1, fence = fence WHERE id = 1";

    // What protect_column promises: the column never falls. A statement that forgets the token goes through.
    let shipped = accounts().await;
    let client = shipped.client().await;
    for sql in [forgets, presents_again, names_the_column] {
        client.batch_execute(sql).await.unwrap();
    }
    assert_eq!(code(&client, "UPDATE account SET fence = 29").await, "ZF001");

    // A trigger that asks for a larger token refuses the rightful holder's second write, too.
    let refuse = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
                  BEGIN RAISE EXCEPTION USING ERRCODE = 'ZF002'; END $$;";
    let must_rise = accounts().await;
    let client = must_rise.client().await;
    let trigger = "CREATE TRIGGER must_rise BEFORE UPDATE ON account FOR EACH ROW
                   WHEN (NEW.fence <= OLD.fence) EXECUTE FUNCTION refuse();";
    client
        .batch_execute(&format!("{refuse} {trigger}"))
        .await
        .unwrap();
    assert_eq!(code(&client, forgets).await, "ZF002");
    assert_eq!(code(&client, presents_again).await, "ZF002");

    // The mark guard asks for an admission in the same transaction instead, which every one of them has to make.
    let marked = accounts().await;
    let client = marked.client().await;
    client
        .batch_execute(
            "SELECT fence.declare('bank.account', 'entity'); SELECT fence.register_epoch('entity', 1);
             SELECT fence.protect('account', 'bank.account', 'id')",
        )
        .await
        .unwrap();
    for sql in [forgets, presents_again, names_the_column] {
        assert_eq!(code(&client, sql).await, "ZF002", "{sql}");
    }
    let admitted = format!(
        "BEGIN; {} {forgets}; {forgets}; COMMIT",
        admit("1", 34).replace("paydb.account", "bank.account")
    );
    client.batch_execute(&admitted).await.unwrap();
}
