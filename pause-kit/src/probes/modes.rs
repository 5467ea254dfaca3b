//! A class that only observes, its switch to enforcement, and the operator's way past it.

use tokio_postgres::Client;

use super::asked::{Ask, reply, run};
use super::losses::logged;
use crate::history::ProbeKind as Kind;
use crate::run::RunError;
use crate::scenario::Half;

const CLASS: &str = "pause-kit.observed";
/// How long a question that must be blocked, or not at all, is let wait.
const BLOCKED: &str = "SET lock_timeout = '200ms'";

pub(super) async fn ask(half: &Half<'_>, own: &[Client; 3], as_replica: &Client) -> Result<(), RunError> {
    for sql in [
        format!("SELECT fence.declare('{CLASS}')"),
        "CREATE TABLE pause_kit.watched (account text PRIMARY KEY, amount integer NOT NULL)".to_owned(),
        "INSERT INTO pause_kit.watched VALUES ('one', 0), ('two', 0)".to_owned(),
        format!("SELECT fence.protect('pause_kit.watched', '{CLASS}', 'account', mode => 'observe')"),
    ] {
        run(&half.sql, &sql).await?;
    }
    let [one, two, operator] = own;
    for sql in own {
        run(sql, BLOCKED).await?;
    }
    observed(half, one, two, operator).await?;
    bypassed(half, one).await?;
    standing_by(half, one, as_replica).await?;
    for sql in own {
        run(sql, "RESET lock_timeout").await?;
    }
    Ok(())
}

/// Two late writers at once, neither of whom waits, and both of whom the switch waits for.
async fn observed(half: &Half<'_>, one: &Client, two: &Client, operator: &Client) -> Result<(), RunError> {
    run(one, "BEGIN").await?;
    on(Kind::Observed, "one").with(half, one, &write("one")).await?;
    run(two, "BEGIN").await?;
    on(Kind::Observed, "two").with(half, two, &write("two")).await?;
    let switch = format!("SELECT fence.enforce('{CLASS}')");
    on(Kind::Switch, "one").with(half, operator, &switch).await?;
    reply(one, "COMMIT").await?;
    reply(two, "COMMIT").await?;
    let counted = format!(
        "DO $$ BEGIN ASSERT (SELECT sum(transactions) = 2 FROM fence.observed WHERE class = '{CLASS}'); END $$"
    );
    on(Kind::WrittenDown, "one")
        .with(half, &half.sql, &counted)
        .await?;
    reply(operator, &switch).await?;
    on(Kind::Forgotten, "one").with(half, one, &write("one")).await
}

/// The rest of one transaction, which is written down; no other, and none whose word was taken back.
async fn bypassed(half: &Half<'_>, sql: &Client) -> Result<(), RunError> {
    let bypass = format!("SELECT fence.danger_bypass('{CLASS}', 'a probe of the bypass')");
    run(sql, "BEGIN").await?;
    reply(sql, &bypass).await?;
    on(Kind::Admitted, "one").with(half, sql, &write("one")).await?;
    reply(sql, "SAVEPOINT another_class").await?;
    let guarded = "UPDATE pause_kit.guarded SET amount = 1 WHERE account = 'beside'";
    on(Kind::Forgotten, "beside").with(half, sql, guarded).await?;
    reply(sql, "ROLLBACK TO another_class").await?;
    reply(sql, "COMMIT").await?;
    let log = logged("a probe of the bypass");
    on(Kind::WrittenDown, "one").with(half, &half.sql, &log).await?;
    on(Kind::Forgotten, "one").with(half, sql, &write("one")).await?;
    run(sql, "BEGIN; SAVEPOINT s").await?;
    reply(sql, &bypass).await?;
    reply(sql, "ROLLBACK TO s").await?;
    on(Kind::Forgotten, "one").with(half, sql, &write("one")).await?;
    run(sql, "ROLLBACK").await
}

/// Standing by lets the workers of logical replication through, and nobody else who says that it is one.
async fn standing_by(half: &Half<'_>, sql: &Client, as_replica: &Client) -> Result<(), RunError> {
    reply(
        &half.sql,
        &format!("SELECT fence.danger_relax('{CLASS}', 'standby', 'a probe of standing by')"),
    )
    .await?;
    on(Kind::Forgotten, "one").with(half, sql, &write("one")).await?;
    on(Kind::Forgotten, "two")
        .with(half, as_replica, &write("two"))
        .await?;
    let log = logged("a probe of standing by");
    on(Kind::WrittenDown, "two").with(half, &half.sql, &log).await?;
    reply(&half.sql, &format!("SELECT fence.enforce('{CLASS}')")).await?;
    on(Kind::Forgotten, "two").with(half, sql, &write("two")).await
}

/// Nothing is presented.
fn on(kind: Kind, key: &'static str) -> Ask<'static> {
    Ask::new(kind, CLASS, key, 1).without_token()
}

fn write(key: &str) -> String {
    format!("UPDATE pause_kit.watched SET amount = amount + 1 WHERE account = '{key}'")
}
