//! The limits of the column guard, where they are open.

use super::Sound;

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
