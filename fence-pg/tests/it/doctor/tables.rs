//! What stands in the way of a table's own guard: its triggers, its partitions and heirs, its name.

use super::Sound;
use crate::support::{CLASS, OPEN};

#[tokio::test]
async fn every_state_of_a_guarded_tables_triggers_is_found_and_mended() {
    let sound = Sound::new().await;
    for (state, finding) in [
        (
            "ALTER TABLE transfer DISABLE TRIGGER fence_enforce",
            "trigger-off",
        ),
        (
            "ALTER TABLE transfer ENABLE TRIGGER fence_enforce",
            "trigger-not-always",
        ),
        (
            "ALTER TABLE transfer ENABLE REPLICA TRIGGER fence_enforce",
            "trigger-not-always",
        ),
        (
            "ALTER TABLE transfer DISABLE TRIGGER fence_truncate",
            "trigger-off",
        ),
        ("DROP TRIGGER fence_truncate ON transfer", "truncate-unguarded"),
        ("DROP TRIGGER fence_enforce ON transfer", "trigger-missing"),
        (
            "DO $$ DECLARE made text := (SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'fence_enforce'
                                         AND tgrelid = 'transfer'::regclass);
             BEGIN
                 EXECUTE 'DROP TRIGGER fence_enforce ON transfer';
                 EXECUTE replace(made, ' EXECUTE ', ' WHEN (pg_trigger_depth() > 0) EXECUTE ');
                 EXECUTE 'ALTER TABLE transfer ENABLE ALWAYS TRIGGER fence_enforce';
             END $$",
            "trigger-altered",
        ),
        (
            "DO $$ DECLARE made text := (SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = 'fence_enforce'
                                         AND tgrelid = 'transfer'::regclass);
             BEGIN
                 EXECUTE 'DROP TRIGGER fence_enforce ON transfer';
                 EXECUTE replace(made, 'INSERT OR DELETE OR UPDATE', 'DELETE OR UPDATE');
                 EXECUTE 'ALTER TABLE transfer ENABLE ALWAYS TRIGGER fence_enforce';
             END $$",
            "trigger-altered",
        ),
    ] {
        sound.finds(state, "open", finding, "public.transfer").await;
    }
    sound
        .finds_until(
            "CREATE RULE elsewhere AS ON DELETE TO transfer DO INSTEAD NOTHING",
            "weak",
            "rule-on-table",
            "public.transfer",
            "DROP RULE elsewhere ON transfer",
        )
        .await;
}

#[tokio::test]
async fn partitions_are_looked_at_one_by_one() {
    let sound = Sound::new().await;
    sound
        .database
        .run(&format!(
            "CREATE TABLE part (k text NOT NULL, n int) PARTITION BY LIST (n);
             CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1) PARTITION BY LIST (k);
             CREATE TABLE part_1_a PARTITION OF part_1 FOR VALUES IN ('a');
             SELECT fence.protect('part', '{CLASS}', 'k')"
        ))
        .await;
    assert_eq!(sound.findings().await, []);
    sound
        .finds(
            "ALTER TABLE part_1_a DISABLE TRIGGER fence_enforce",
            "open",
            "trigger-off",
            "public.part_1_a",
        )
        .await;
    // A later one is guarded against writes of rows at once, and against TRUNCATE by the fix.
    sound
        .finds(
            "CREATE TABLE part_2 PARTITION OF part FOR VALUES IN (2)",
            "open",
            "truncate-unguarded",
            "public.part_2",
        )
        .await;
    sound
        .finds_until(
            "ALTER TABLE part DETACH PARTITION part_2",
            "open",
            "partition-former",
            "public.part_2",
            "DROP TRIGGER fence_truncate ON part_2",
        )
        .await;
}

#[tokio::test]
async fn tables_that_come_to_inherit_and_tables_that_were_made_anew_are_found() {
    let sound = Sound::new().await;
    sound
        .database
        .run("CREATE TABLE heir () INHERITS (transfer); CREATE TABLE heir_s_heir () INHERITS (heir)")
        .await;
    let found: Vec<String> = sound.findings().await.into_iter().map(|found| found.2).collect();
    assert_eq!(found, ["public.heir", "public.heir_s_heir"]);
    sound
        .finds("DROP TABLE heir_s_heir", "open", "child-unguarded", "public.heir")
        .await;
    sound
        .finds(
            "DROP TABLE opened; CREATE TABLE opened (id bigint PRIMARY KEY)",
            "open",
            "table-recreated",
            "public.opened",
        )
        .await;
    sound
        .database
        .run("CREATE TABLE more (id uuid); SELECT fence.protect('more', 'paydb.open', 'id')")
        .await;
    sound
        .finds("DROP TABLE more", "weak", "table-gone", "public.more")
        .await;
}

#[tokio::test]
async fn a_table_that_another_one_took_the_name_of_is_found() {
    let sound = Sound::new().await;
    sound
        .finds_until(
            "CREATE TABLE copy (id bigint PRIMARY KEY); ALTER TABLE opened RENAME TO old; ALTER TABLE copy RENAME TO opened;
             DROP TABLE IF EXISTS nothing",
            "open",
            "table-swapped",
            "public.opened",
            &format!(
                "SELECT fence.protect('opened', '{OPEN}', 'id'); SELECT fence.unprotect('old')"
            ),
        )
        .await;
    // A guarded table that only has a new name is as guarded as before.
    sound.database.run("ALTER TABLE opened RENAME TO renamed").await;
    assert_eq!(sound.findings().await, []);
}

#[tokio::test]
async fn a_function_that_no_longer_asks_for_admission_is_found_and_mended() {
    let sound = Sound::new().await;
    let name: String = sound
        .superuser
        .query_one(
            "SELECT function::text FROM fence.guard_trigger WHERE relation = 'transfer'::regclass",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    sound
        .finds(
            &format!(
                "CREATE OR REPLACE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql STABLE SECURITY DEFINER
                 SET search_path = pg_catalog, pg_temp AS 'BEGIN RETURN NULL; END'"
            ),
            "open",
            "function-altered",
            &format!("{name}()"),
        )
        .await;
}

#[tokio::test]
async fn a_part_whose_rows_are_elsewhere_is_found() {
    let sound = Sound::new().await;
    sound
        .superuser
        .batch_execute(
            "CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
             CREATE FOREIGN TABLE far (id bigint, from_account text NOT NULL, amount bigint NOT NULL)
                 SERVER files OPTIONS (filename '/nonexistent')",
        )
        .await
        .unwrap();
    sound
        .finds_until(
            "ALTER FOREIGN TABLE far ALTER COLUMN id SET NOT NULL; ALTER FOREIGN TABLE far INHERIT transfer",
            "open",
            "foreign-member",
            "public.far",
            "ALTER FOREIGN TABLE far NO INHERIT transfer",
        )
        .await;
}
