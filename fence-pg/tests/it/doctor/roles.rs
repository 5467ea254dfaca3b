//! What roles may do beside or without the guard.

use pause_kit::services::for_tests;

use super::Sound;
use crate::support::{client, code};

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
