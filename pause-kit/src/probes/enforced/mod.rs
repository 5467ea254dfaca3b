//! Writes on a guarded table of the kit's own, straight to the database: with their admission, and without it in every way in
//! which a statement can do without.

mod ways;

use tokio_postgres::Client;

use super::asked::{Ask, reply, run};
use crate::history::{Presented, Probe, ProbeKind as Kind, Reply};
use crate::run::RunError;
use crate::scenario::{Half, filled};
use crate::target::Place;
use ways::{Step, TABLES, Way, as_replica, way, ways};

/// The class of the kit's own guarded tables.
const CLASS: &str = "pause-kit.guarded";
/// Another class, in which the same keys are admitted.
const ELSEWHERE: &str = "pause-kit.elsewhere";
/// The newest holder's token of every key. Whoever presents none is late.
const NEWER: i64 = 20;

/// The target's own table, by the statement that it declares for that.
pub(super) async fn forget(half: &Half<'_>, writer: &Client) -> Result<(), RunError> {
    let class = half.task.class;
    let Some(sql) = &class.proof.writes.forgetful else {
        return Ok(());
    };
    let values = half.values.clone();
    let values = values
        .with("key", half.keys[0].as_str())
        .with("id", "probe-forgetful:1");
    run(writer, "BEGIN").await?;
    let answered = reply(writer, &filled(sql, &values)?).await?;
    run(writer, "ROLLBACK").await?;
    if let Reply::Sql {
        sqlstate: Some(code), ..
    } = &answered
        && !code.starts_with("ZF")
    {
        return Err(RunError::Declared {
            at: Place::proof(class.name.as_str()).key("writes").key("forgetful"),
            why: format!(
                "it was answered {code}, and not by the guard; let it be a write that is right but for its token"
            ),
        });
    }
    Ask::new(Kind::Forgotten, class.name.as_str(), half.keys[0].as_str(), NEWER)
        .without_token()
        .record(half, answered);
    Ok(())
}

/// Makes the kit's own tables and tries everything on them.
pub(super) async fn ask(half: &Half<'_>, own: &[Client; 3], applier: &Client) -> Result<(), RunError> {
    for sql in TABLES {
        run(&half.sql, sql).await?;
    }
    let [writer, other, _] = own;
    let ways = ways();
    for way in &ways {
        // A row of each key, from before the table was guarded, and a mark.
        admit(half, writer, way.key).await?;
    }
    admit(half, writer, "beside").await?;
    admit(half, writer, "x\\/y/z").await?;
    for way in &ways {
        way.put(half, writer).await?;
    }
    another_transactions(half, writer, other).await?;
    for way in as_replica() {
        way.put(half, applier).await?;
    }
    Ok(())
}

/// An admission that another transaction holds, not yet committed, is that one's.
async fn another_transactions(half: &Half<'_>, writer: &Client, other: &Client) -> Result<(), RunError> {
    run(other, "BEGIN").await?;
    admit(half, other, "another-transaction").await?;
    way(
        Kind::Forgotten,
        "another-transaction",
        Vec::new(),
        "UPDATE pause_kit.guarded SET amount = 1 WHERE account = 'another-transaction'",
    )
    .put(half, writer)
    .await?;
    run(other, "ROLLBACK").await
}

async fn admit(half: &Half<'_>, sql: &Client, key: &str) -> Result<(), RunError> {
    Ask::new(Kind::Prepare, CLASS, key, NEWER).put(half, sql).await
}

impl Way {
    /// Tries it, records the answer, and rolls back whatever was let through.
    async fn put(&self, half: &Half<'_>, sql: &Client) -> Result<(), RunError> {
        run(sql, "BEGIN").await?;
        for step in &self.before {
            match step {
                Step::Admit(key) => admit(half, sql, key).await?,
                Step::AdmitElsewhere(key) => {
                    Ask::new(Kind::Prepare, ELSEWHERE, key, NEWER)
                        .put(half, sql)
                        .await?;
                }
                // After an admission that was refused there is nothing to go on with.
                Step::Run(statement) => {
                    reply(sql, statement).await?;
                }
            }
        }
        let reply = reply(sql, self.sql).await?;
        run(sql, "ROLLBACK").await?;
        let admitted = self.kind == Kind::Admitted;
        half.recorder.record(
            half.recorder.now(),
            Probe {
                probe: self.kind,
                class: CLASS.to_owned(),
                key: self.key.to_owned(),
                presented: Presented {
                    token: admitted.then(|| NEWER.to_string()),
                    grant: None,
                },
                seen: None,
                id: None,
                reply,
                sqlstate: None,
                detail: None,
            },
        );
        Ok(())
    }
}
