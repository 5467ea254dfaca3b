//! The guard's own objects, its classes, its memory, and what feeds a guarded table from elsewhere.

use pause_kit::services::for_tests;

use super::Sound;
use crate::support::{CLASS, Database, OPEN};

#[tokio::test]
async fn the_guards_own_objects_are_looked_at() {
    let sound = Sound::new().await;
    for (state, finding, object) in [
        (
            "GRANT EXECUTE ON FUNCTION fence.declare TO PUBLIC",
            "function-public",
            "fence.declare(text,text)",
        ),
        (
            "GRANT SELECT ON fence.high_water TO PUBLIC",
            "guard-writable",
            "fence.high_water",
        ),
        (
            "GRANT TRUNCATE ON transfer TO PUBLIC",
            "table-public",
            "public.transfer",
        ),
        (
            "ALTER FUNCTION fence.admit(text, text, bigint, text) SET search_path = public",
            "function-search-path",
            "fence.admit(text,text,bigint,text)",
        ),
    ] {
        // What everybody may, the application's role may as well.
        sound.superuser.batch_execute(state).await.unwrap();
        let found = sound.all().await;
        let this = found
            .iter()
            .find(|((_, name, of), _)| name == finding && of == object);
        let (_, fix) = this.unwrap_or_else(|| panic!("{state}: {found:?}"));
        sound.superuser.batch_execute(fix).await.unwrap();
        assert_eq!(sound.findings().await, [], "after {fix}");
    }
    // A guard that was replaced, as a test of something else may have left it.
    sound
        .superuser
        .batch_execute(
            "CREATE OR REPLACE FUNCTION fence.raise_mark(class text, key text, token bigint, grant_id text DEFAULT NULL)
             RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS ''",
        )
        .await
        .unwrap();
    let altered = "fence.raise_mark(text,text,bigint,text)";
    let wanted = (
        "open".to_owned(),
        "function-altered".to_owned(),
        altered.to_owned(),
    );
    assert_eq!(sound.findings().await, [wanted]);
    let files: String = fence_pg::MIGRATIONS.iter().map(|file| file.sql).collect();
    sound.database.run(&files).await;
    assert_eq!(sound.findings().await, []);
    for (table, trigger) in [
        ("fence.high_water", "stamp_mark"),
        ("fence.high_water", "stamp_first_mark"),
        ("fence.high_water", "keep_marks"),
        ("fence.class", "keep_floor"),
        ("fence.danger_log", "keep_danger_log"),
    ] {
        sound
            .finds_until(
                &format!("ALTER TABLE {table} DISABLE TRIGGER {trigger}"),
                "open",
                "guard-trigger",
                table,
                &format!("ALTER TABLE {table} ENABLE ALWAYS TRIGGER {trigger}"),
            )
            .await;
    }
    sound
        .finds_until(
            "CREATE OR REPLACE TRIGGER keep_marks BEFORE TRUNCATE ON fence.high_water
                 FOR EACH STATEMENT EXECUTE FUNCTION suppress_redundant_updates_trigger();
             ALTER TABLE fence.high_water ENABLE ALWAYS TRIGGER keep_marks",
            "open",
            "guard-trigger",
            "fence.high_water",
            &files,
        )
        .await;
}

#[tokio::test]
async fn classes_that_guard_nothing_or_take_nothing_are_found() {
    let sound = Sound::new().await;
    sound
        .finds_until(
            "SELECT fence.declare('paydb.new', 'entity')",
            "open",
            "class-unguarded",
            "paydb.new",
            "CREATE TABLE news (id uuid PRIMARY KEY); SELECT fence.protect('news', 'paydb.new', 'id')",
        )
        .await;
    sound
        .finds(
            &format!("SELECT fence.danger_relax('{OPEN}', 'observe', 'a test')"),
            "open",
            "class-observe",
            OPEN,
        )
        .await;
    sound
        .finds(
            &format!("SELECT fence.danger_relax('{OPEN}', 'standby', 'a test')"),
            "open",
            "class-standby",
            OPEN,
        )
        .await;
    sound
        .finds_until(
            "SELECT fence.declare('paydb.far', 'away'); CREATE TABLE far (id int PRIMARY KEY); SELECT fence.protect('far', 'paydb.far', 'id')",
            "weak",
            "tier-without-epoch",
            "paydb.far",
            "SELECT fence.register_epoch('away', 7)",
        )
        .await;
}

#[tokio::test]
async fn a_history_in_doubt_and_one_that_nobody_else_remembers_are_found() {
    let sound = Sound::new().await;
    sound
        .finds_until(
            "SELECT fence.stop('a test')",
            "open",
            "history-in-doubt",
            "history",
            "SELECT fence.acknowledge('a test', nothing_lost => true)",
        )
        .await;
    for forget in [
        "DELETE FROM fence.memory",
        "UPDATE fence.memory SET at = at - interval '8 days'",
    ] {
        sound
            .finds_until(
                forget,
                "weak",
                "no-outside-memory",
                "history",
                "SELECT fence.remember()",
            )
            .await;
    }
}

#[tokio::test]
async fn what_cannot_be_told_is_said_to_be_not_judged() {
    let sound = Sound::new().await;
    let role = sound.app.role.clone();
    sound
        .database
        .run(&format!(
            "CREATE TABLE batch (id bigint PRIMARY KEY, fence_token bigint NOT NULL DEFAULT 0);
             SELECT fence.protect_column('batch', 'paydb.batch', 'id', 'fence_token');
             GRANT UPDATE (id) ON batch TO {role}"
        ))
        .await;
    let owner = sound.database.client().await;
    // What the server's own value is, this session no longer shows.
    owner
        .batch_execute("SET idle_in_transaction_session_timeout = '1s'; SET lock_timeout = '1s'")
        .await
        .unwrap();
    for finding in ["column-idle-unbounded", "column-wait-unbounded"] {
        let row = owner
            .query_one(
                "SELECT severity, detail FROM fence.doctor() WHERE finding = $1",
                &[&finding],
            )
            .await
            .unwrap();
        assert_eq!(row.get::<_, String>(0), "unknown", "{finding}");
        assert!(row.get::<_, String>(1).starts_with("not judged: "), "{finding}");
    }
}

#[tokio::test]
async fn a_bypass_is_named_for_a_day() {
    let sound = Sound::new().await;
    let bypass = format!(
        "BEGIN; SELECT fence.danger_bypass('{CLASS}', 'a repair by hand');
         INSERT INTO transfer (from_account, amount) VALUES ('acct-9', 1); COMMIT"
    );
    sound
        .finds_until(
            &bypass,
            "weak",
            "bypass-used",
            CLASS,
            "ALTER TABLE fence.danger_log DISABLE TRIGGER keep_danger_log;
             UPDATE fence.danger_log SET at = at - interval '25 hours';
             ALTER TABLE fence.danger_log ENABLE ALWAYS TRIGGER keep_danger_log",
        )
        .await;
}
#[tokio::test]
async fn a_subscription_that_feeds_a_guarded_table_is_found_by_a_plain_owner() {
    let sound = Sound::new().await;
    let publisher = Database::guarded().await;
    let superuser = publisher.superuser().await;
    let slot = format!("slot_{}", publisher.url.database());
    superuser
        .batch_execute("CREATE PUBLICATION transfers FOR TABLE transfer")
        .await
        .unwrap();
    let make = format!("SELECT pg_create_logical_replication_slot('{slot}', 'pgoutput')");
    superuser.batch_execute(&make).await.unwrap();
    let postgres = for_tests().await.postgres();
    let from = postgres.superuser_url_of(publisher.url.database());
    sound
        .finds_until(
            &format!(
                "CREATE SUBSCRIPTION feed CONNECTION '{}' PUBLICATION transfers
                 WITH (create_slot = false, slot_name = '{slot}', copy_data = false, enabled = false)",
                from.as_str()
            ),
            "weak",
            "subscription",
            "public.transfer",
            "ALTER SUBSCRIPTION feed SET (slot_name = NONE); DROP SUBSCRIPTION feed",
        )
        .await;
    let drop = format!("SELECT pg_drop_replication_slot('{slot}')");
    superuser.batch_execute(&drop).await.unwrap();
}
