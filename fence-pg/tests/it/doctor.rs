//! What `fence.doctor` finds: each way around that a database's state leaves open, by its name, and not one where there is none.

use pause_kit::services::{Login, for_tests};
use tokio_postgres::Client;

use crate::support::{CLASS, Database, OPEN, client, code};

/// One finding, without its words.
type Finding = (String, String, String);

/// A database as it should be, but for what the tests' server is set to.
struct Sound {
    database: Database,
    superuser: Client,
    app: Login,
}

impl Sound {
    async fn new() -> Sound {
        let database = Database::guarded().await;
        let name = database.url.database().to_owned();
        let app = for_tests()
            .await
            .postgres()
            .create_login(&format!("{name}_app"))
            .await
            .unwrap();
        let role = &app.role;
        database
            .run(&format!(
                "GRANT CONNECT ON DATABASE {name} TO {role};
                 GRANT SELECT, INSERT, UPDATE, DELETE ON transfer TO {role};
                 SELECT fence.grant_application('{role}');
                 CREATE TABLE opened (id bigint PRIMARY KEY); SELECT fence.protect('opened', '{OPEN}', 'id');
                 SELECT fence.remember()"
            ))
            .await;
        let superuser = database.superuser().await;
        Sound {
            database,
            superuser,
            app,
        }
    }

    /// What is found beyond what the tests' server, whose `fsync` is off and which can prepare transactions, is found by.
    async fn findings(&self) -> Vec<Finding> {
        self.all().await.into_iter().map(|(finding, _)| finding).collect()
    }

    /// The same with the fixes.
    async fn all(&self) -> Vec<(Finding, String)> {
        let owner = self.database.client().await;
        let rows = owner.query("SELECT * FROM fence.doctor()", &[]).await.unwrap();
        let of_the_server = ["server-not-durable", "prepared-transactions"];
        let mut server = 0;
        let mut found = Vec::new();
        for row in rows {
            let text = |column: &str| -> String { row.get(column) };
            assert!(
                !text("detail").is_empty() && !text("fix").is_empty(),
                "{}",
                text("finding")
            );
            match of_the_server.contains(&text("finding").as_str()) {
                true => server += 1,
                false => found.push(((text("severity"), text("finding"), text("object")), text("fix"))),
            }
        }
        assert_eq!(server, 2, "the tests' server has both");
        found
    }

    /// Makes a state as a superuser would, expects this finding alone, does what its fix says, and expects none.
    async fn finds(&self, state: &str, severity: &str, finding: &str, object: &str) {
        let fix = self.finds_only(state, severity, finding, object).await;
        self.superuser
            .batch_execute(&self.as_whoever_may(&fix))
            .await
            .unwrap_or_else(|error| panic!("{finding}'s fix, {fix}: {error:?}"));
        assert_eq!(self.findings().await, [], "after {fix}");
    }

    /// The same, where the fix needs a person; undone by other statements.
    async fn finds_until(&self, state: &str, severity: &str, finding: &str, object: &str, undo: &str) {
        self.finds_only(state, severity, finding, object).await;
        let undo = self.as_whoever_may(undo);
        self.superuser.batch_execute(&undo).await.unwrap();
        assert_eq!(self.findings().await, [], "after {undo}");
    }

    /// Tables are guarded by the role that installed the guard, which owns them here, and by nobody else.
    fn as_whoever_may(&self, sql: &str) -> String {
        match ["fence.protect", "fence.unprotect", "CREATE TABLE"]
            .iter()
            .any(|word| sql.contains(word))
        {
            true => format!(
                "SET ROLE {}_owner; {sql}; RESET ROLE",
                self.database.url.database()
            ),
            false => sql.to_owned(),
        }
    }

    async fn finds_only(&self, state: &str, severity: &str, finding: &str, object: &str) -> String {
        self.superuser
            .batch_execute(&self.as_whoever_may(state))
            .await
            .unwrap();
        let found = self.all().await;
        let wanted = (severity.to_owned(), finding.to_owned(), object.to_owned());
        assert_eq!(
            found.iter().map(|(found, _)| found).collect::<Vec<_>>(),
            [&wanted],
            "{state}"
        );
        found.into_iter().next().unwrap().1
    }
}

#[tokio::test]
async fn nothing_is_found_where_nothing_is_open() {
    let sound = Sound::new().await;
    assert_eq!(sound.findings().await, []);
    let app = client(
        &for_tests()
            .await
            .postgres()
            .url(sound.database.url.database(), &sound.app),
    )
    .await;
    assert_eq!(code(&app, "SELECT * FROM fence.doctor()").await, "42501");
}

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

#[tokio::test]
async fn what_an_application_role_may_do_besides_is_found_and_mended() {
    let sound = Sound::new().await;
    let role = sound.app.role.clone();
    let owner = sound.database.url.login().role.clone();
    let group = format!("{role}_group");
    sound
        .superuser
        .batch_execute(&format!("CREATE ROLE {group}"))
        .await
        .unwrap();
    for (state, severity, finding, object) in [
        (
            format!("GRANT {owner} TO {role}"),
            "open",
            "application-owner",
            role.as_str(),
        ),
        (
            format!("GRANT pg_execute_server_program TO {role}"),
            "open",
            "application-escalates",
            &role,
        ),
        (
            format!("GRANT TRUNCATE ON transfer TO {role}"),
            "weak",
            "truncate-granted",
            "public.transfer",
        ),
        (
            format!("GRANT TRIGGER ON transfer TO {role}"),
            "weak",
            "trigger-granted",
            "public.transfer",
        ),
        (
            format!("GRANT SELECT ON fence.high_water TO {role}"),
            "weak",
            "mark-readable",
            "fence.high_water",
        ),
        (
            format!("GRANT UPDATE ON fence.high_water TO {role}"),
            "open",
            "guard-writable",
            "fence.high_water",
        ),
        (
            format!("GRANT UPDATE (token) ON fence.high_water TO {role}"),
            "open",
            "guard-writable",
            "fence.high_water",
        ),
        (
            format!("GRANT pg_write_all_data TO {role}"),
            "open",
            "guard-writable",
            "fence.high_water",
        ),
        (
            format!("GRANT EXECUTE ON FUNCTION fence.register_epoch TO {role}"),
            "open",
            "function-granted",
            "fence.register_epoch(text,integer,bigint)",
        ),
        (
            format!("ALTER ROLE {role} SET session_replication_role = replica"),
            "weak",
            "replica-role",
            &role,
        ),
        (
            format!("GRANT SET ON PARAMETER session_replication_role TO {role}"),
            "weak",
            "replica-role",
            &role,
        ),
        (
            format!("GRANT CREATE ON SCHEMA fence TO {group}"),
            "open",
            "schema-writable",
            "fence",
        ),
    ] {
        sound.finds(&state, severity, finding, object).await;
    }
    sound
        .finds_until(
            &format!("ALTER ROLE {role} SUPERUSER"),
            "open",
            "application-superuser",
            &role,
            &format!("ALTER ROLE {role} NOSUPERUSER"),
        )
        .await;
    // A right that comes through a group is found too.
    sound
        .finds_until(
            &format!("GRANT {group} TO {role}; GRANT EXECUTE ON FUNCTION fence.register_epoch TO {group}"),
            "open",
            "function-granted",
            "fence.register_epoch(text,integer,bigint)",
            &format!("REVOKE EXECUTE ON FUNCTION fence.register_epoch FROM {group}"),
        )
        .await;
    let version = sound
        .database
        .number("SELECT current_setting('server_version_num')::bigint")
        .await;
    if version < 160_000 {
        let state = format!("ALTER ROLE {role} CREATEROLE");
        sound.finds(&state, "open", "application-escalates", &role).await;
    }
    let bypass = format!("ALTER ROLE {role} BYPASSRLS");
    sound.superuser.batch_execute(&bypass).await.unwrap();
    assert_eq!(sound.findings().await, [], "no guarded table has row security");
    let policy = "ALTER TABLE transfer ENABLE ROW LEVEL SECURITY";
    sound.finds(policy, "weak", "application-bypassrls", &role).await;
}

#[tokio::test]
async fn a_role_that_may_write_and_not_admit_is_found() {
    let sound = Sound::new().await;
    let batch = format!("{}_batch", sound.database.url.database());
    sound
        .finds_until(
            &format!("CREATE ROLE {batch} LOGIN; GRANT INSERT ON transfer TO {batch}"),
            "weak",
            "guard-not-granted",
            &batch,
            &format!("SELECT fence.grant_application('{batch}')"),
        )
        .await;
    let undo = format!("DROP OWNED BY {batch}; DROP ROLE {batch}");
    sound.superuser.batch_execute(&undo).await.unwrap();
}

#[tokio::test]
async fn an_application_that_connects_as_the_owner_is_found_by_name_and_by_there_being_no_other() {
    let sound = Sound::new().await;
    let owner = sound.database.url.login().role.clone();
    let client = sound.database.client().await;
    let found = client
        .query(
            "SELECT DISTINCT finding, object FROM fence.doctor(ARRAY[$1]::text[]::name[]) WHERE finding LIKE 'application-%'",
            &[&owner],
        )
        .await
        .unwrap();
    let found: Vec<(String, String)> = found.iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(found, [("application-owner".to_owned(), owner)]);
    assert_eq!(
        code(&client, "SELECT fence.doctor(ARRAY['nobody'])").await,
        "42704"
    );

    let role = &sound.app.role;
    sound
        .finds_until(
            &format!("SELECT fence.revoke_application('{role}'); REVOKE ALL ON transfer FROM {role}"),
            "open",
            "no-application-role",
            "fence",
            &format!("SELECT fence.grant_application('{role}')"),
        )
        .await;
}

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

#[tokio::test]
async fn a_monitoring_role_that_owns_nothing_sees_what_the_owner_sees() {
    let sound = Sound::new().await;
    let name = sound.database.url.database().to_owned();
    let postgres = for_tests().await.postgres();
    let watcher = postgres.create_login(&format!("{name}_watcher")).await.unwrap();
    sound
        .superuser
        .batch_execute(&format!(
            "GRANT CONNECT ON DATABASE {name} TO {0}; GRANT USAGE ON SCHEMA fence TO {0};
             GRANT EXECUTE ON FUNCTION fence.doctor TO {0};
             SELECT fence.stop('a test'); ALTER TABLE transfer DISABLE TRIGGER fence_enforce",
            watcher.role
        ))
        .await
        .unwrap();
    let watcher = client(&postgres.url(&name, &watcher)).await;
    let seen = watcher
        .query("SELECT finding FROM fence.doctor()", &[])
        .await
        .unwrap();
    let seen: Vec<String> = seen.iter().map(|row| row.get(0)).collect();
    assert_eq!(
        seen,
        [
            "history-in-doubt",
            "server-not-durable",
            "trigger-off",
            "prepared-transactions"
        ]
    );
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
async fn the_column_guards_limits_are_found_where_they_are_open() {
    let sound = Sound::new().await;
    let role = sound.app.role.clone();
    let database = sound.database.url.database().to_owned();
    // Written through a function that compares the token, by a role that cannot read it and whose waits are bounded.
    sound
        .superuser
        .batch_execute(&format!(
            "SET ROLE {owner};
             CREATE TABLE batch (id bigint PRIMARY KEY, state text, fence_token bigint NOT NULL DEFAULT 0);
             SELECT fence.protect_column('batch', 'paydb.batch', 'id', 'fence_token');
             GRANT SELECT (id, state), UPDATE (state) ON batch TO {role};
             RESET ROLE;
             ALTER ROLE {role} SET idle_in_transaction_session_timeout = '5s'; ALTER ROLE {role} SET lock_timeout = '2s'",
            owner = sound.database.url.login().role
        ))
        .await
        .unwrap();
    assert_eq!(sound.findings().await, []);
    for (state, severity, finding, object) in [
        (
            "GRANT TRUNCATE ON batch TO {role}",
            "open",
            "truncate-granted",
            "public.batch",
        ),
        (
            "ALTER ROLE {role} RESET idle_in_transaction_session_timeout",
            "weak",
            "column-idle-unbounded",
            "{role}",
        ),
        (
            "ALTER ROLE {role} SET lock_timeout = 0",
            "weak",
            "column-wait-unbounded",
            "{role}",
        ),
        (
            "ALTER DATABASE {database} SET synchronous_commit = off",
            "weak",
            "commit-not-durable",
            "{role}",
        ),
        (
            "ALTER TABLE batch ALTER COLUMN fence_token DROP NOT NULL",
            "open",
            "token-column",
            "public.batch",
        ),
    ] {
        let put = |text: &str| text.replace("{role}", &role).replace("{database}", &database);
        sound.finds(&put(state), severity, finding, &put(object)).await;
    }
    sound
        .finds_until(
            &format!("GRANT SELECT (fence_token) ON batch TO {role}"),
            "open",
            "token-column-readable",
            "public.batch",
            &format!("REVOKE SELECT (fence_token) ON batch FROM {role}"),
        )
        .await;
    sound
        .finds(
            "ALTER TABLE batch DROP CONSTRAINT batch_pkey",
            "open",
            "key-not-unique",
            "public.batch",
        )
        .await;
    sound
        .finds_until(
            "ALTER TABLE batch RENAME COLUMN id TO number",
            "weak",
            "key-column",
            "public.batch",
            "ALTER TABLE batch RENAME COLUMN number TO id",
        )
        .await;
}
