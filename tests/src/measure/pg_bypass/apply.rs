//! Sessions that apply changes instead of making them.

use std::time::{Duration, Instant};

use super::bed::{Bed, connect, run};
use super::finding;
use crate::measure::Failure;

const FORGOTTEN: &str = "UPDATE payment SET amount = 0 WHERE id = 1";

pub(super) async fn replica_role(bed: &Bed<'_>) -> Result<(), Failure> {
    let who = bed.who();
    bed.refused(
        &[],
        &format!("SET session_replication_role = replica; {FORGOTTEN}"),
        "42501",
    )
    .await?;
    bed.owner(&format!("GRANT TRUNCATE ON payment TO {}", bed.app()))
        .await?;
    // A superuser's function that switches it on for its caller.
    bed.superuser(
        "CREATE FUNCTION public.as_replica() RETURNS void LANGUAGE sql SECURITY DEFINER SET search_path = public
         SET session_replication_role = replica AS $$ UPDATE payment SET amount = 0 WHERE id = 1 $$",
    )
    .await?;
    bed.refused(&[], "SELECT as_replica()", "ZF002").await?;
    bed.control(&["acct-1"], "SELECT as_replica()").await?;
    // A superuser who gives the right to switch it on, or has it on from the start.
    bed.superuser(&format!(
        "GRANT SET ON PARAMETER session_replication_role TO {who}"
    ))
    .await?;
    bed.finds(finding::REPLICA_ROLE, who).await?;
    let switched = format!("SET LOCAL session_replication_role = replica; {FORGOTTEN}");
    bed.refused(&[], &switched, "ZF002").await?;
    bed.control(&["acct-1"], &switched).await?;
    bed.superuser(&format!(
        "REVOKE SET ON PARAMETER session_replication_role FROM {who};
         ALTER ROLE {who} SET session_replication_role = replica"
    ))
    .await?;
    bed.finds(finding::REPLICA_ROLE, who).await?;
    for sql in [
        FORGOTTEN,
        "INSERT INTO payment VALUES (3, 'acct-1', 5)",
        "DELETE FROM payment WHERE id = 1",
    ] {
        bed.refused(&[], sql, "ZF002").await?;
        bed.refused(&["acct-2"], sql, "ZF006").await?;
        bed.control(&["acct-1"], sql).await?;
    }
    bed.refused(&["acct-1"], "TRUNCATE payment", "ZF002").await
}

pub(super) async fn logical_apply(bed: &Bed<'_>) -> Result<(), Failure> {
    let postgres = bed.services.postgres().ok_or("no PostgreSQL")?;
    let (who, here) = (bed.who(), bed.superuser.database());
    let elsewhere = format!("{here}_publisher");
    let publisher = postgres.superuser_url_of(&elsewhere);
    run(&postgres.superuser_url(), &format!("CREATE DATABASE {elsewhere}")).await?;
    run(
        &publisher,
        &format!(
            "CREATE TABLE payment (id integer PRIMARY KEY, account text NOT NULL, amount bigint NOT NULL);
             GRANT INSERT, UPDATE, SELECT ON payment TO {who};
             CREATE PUBLICATION payments FOR TABLE payment;"
        ),
    )
    .await?;
    let slot = format!("SELECT pg_create_logical_replication_slot('{here}', 'pgoutput')");
    run(&publisher, &slot).await?;
    let subscribe = format!(
        "CREATE SUBSCRIPTION {here} CONNECTION '{}' PUBLICATION payments
         WITH (create_slot = false, slot_name = '{here}', copy_data = false)",
        publisher.as_str()
    );
    bed.refused(&[], &subscribe, "42501").await?;

    // The codes of errors, for the worker's own log; and the launcher is quick.
    run(
        &bed.superuser,
        &format!("ALTER DATABASE {here} SET log_error_verbosity = verbose"),
    )
    .await?;
    for sql in [
        "ALTER SYSTEM SET wal_retrieve_retry_interval = '200ms'",
        "SELECT pg_reload_conf()",
    ] {
        run(&bed.superuser, sql).await?;
    }
    run(&bed.superuser, &subscribe).await?;
    bed.finds(finding::SUBSCRIPTION, "public.payment").await?;
    let before = bed.rows().await?;
    let log = ServerLog::open(bed)?;
    let write = "INSERT INTO payment VALUES (3, 'acct-1', 5)";
    run(&postgres.url(&elsewhere, bed.url().login()), write).await?;
    bed.count();
    let errors =
        format!("SELECT apply_error_count > 0 FROM pg_stat_subscription_stats WHERE subname = '{here}'");
    until(bed, &errors, "the apply worker was not refused").await?;
    if bed.rows().await? != before {
        return Err("the apply worker's write is there".into());
    }
    log.says("ZF002")?;
    bed.say("ZF002 by the apply worker".to_owned());

    // The control: standing by, the guard lets the worker write, and nobody else.
    let relax = format!(
        "SELECT fence.danger_relax('{}', 'standby', 'a subscriber')",
        super::bed::CLASS
    );
    bed.owner(&relax).await?;
    let applied = "SELECT count(*) = 1 FROM payment WHERE id = 3";
    until(
        bed,
        applied,
        "the apply worker does not write although the class stands by",
    )
    .await?;
    bed.say("applied when standing by by the apply worker".to_owned());
    bed.refused(&[], FORGOTTEN, "ZF002").await?;
    bed.control(&["acct-1"], FORGOTTEN).await?;
    run(&bed.superuser, &format!("ALTER SUBSCRIPTION {here} DISABLE")).await
}

/// Waits for a query to be true, and fails with these words when it is not within 30 s.
async fn until(bed: &Bed<'_>, sql: &str, otherwise: &str) -> Result<(), Failure> {
    let client = connect(&bed.superuser).await?;
    let began = Instant::now();
    loop {
        let row = client.query_opt(sql, &[]).await?;
        if row.is_some_and(|row| row.get(0)) {
            return Ok(());
        }
        if began.elapsed() > Duration::from_secs(30) {
            return Err(otherwise.into());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What the server writes to its log from now on.
struct ServerLog {
    path: std::path::PathBuf,
    from: usize,
}

impl ServerLog {
    fn open(bed: &Bed<'_>) -> Result<ServerLog, Failure> {
        let folder = bed.services.folder().join("logs");
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let text = std::fs::read(&path)?;
            if String::from_utf8_lossy(&text).contains("database system is ready to accept connections") {
                return Ok(ServerLog {
                    path,
                    from: text.len(),
                });
            }
        }
        Err("the server's log was not found".into())
    }

    /// Whether an error with this code stands there.
    fn says(&self, code: &str) -> Result<(), Failure> {
        let text = std::fs::read(&self.path)?;
        let new = String::from_utf8_lossy(&text[self.from..]);
        if new.contains(&format!("ERROR:  {code}: ")) {
            return Ok(());
        }
        Err(format!("the worker was refused with something else than {code}: {new}").into())
    }
}
