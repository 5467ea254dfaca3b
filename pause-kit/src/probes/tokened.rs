//! The column guard on a table of the kit's own.

use tokio_postgres::Client;

use super::asked::{Ask, run};
use crate::history::ProbeKind as Kind;
use crate::run::RunError;
use crate::scenario::Half;

const CLASS: &str = "pause-kit.column";

/// The trigger that keeps a token from falling, on every way to the row, and the function that says why a row was not written.
pub(super) async fn ask(half: &Half<'_>, sql: &Client, as_replica: &Client) -> Result<(), RunError> {
    for statement in [
        "SELECT fence.declare('pause-kit.column')",
        "CREATE TABLE pause_kit.tokened (id text, region text, token bigint NOT NULL DEFAULT 0, PRIMARY KEY (id, region))
             PARTITION BY LIST (region)",
        "CREATE TABLE pause_kit.tokened_eu PARTITION OF pause_kit.tokened FOR VALUES IN ('eu')",
        "CREATE TABLE pause_kit.tokened_us PARTITION OF pause_kit.tokened FOR VALUES IN ('us')",
        "INSERT INTO pause_kit.tokened VALUES ('row', 'eu', 20), ('replica', 'eu', 20)",
        "SELECT fence.protect_column('pause_kit.tokened', 'pause-kit.column', 'id', 'token')",
    ] {
        run(&half.sql, statement).await?;
    }
    let on = |kind, token| Ask::new(kind, CLASS, "row", token);
    let set = |token: i64, further: &str| {
        format!("UPDATE pause_kit.tokened SET token = {token}{further} WHERE id = 'row'")
    };
    on(Kind::Smaller, 19)
        .meets(20)
        .with(half, sql, &set(19, ""))
        .await?;
    on(Kind::EqualAgain, 20).with(half, sql, &set(20, "")).await?;
    on(Kind::Larger, 21).with(half, sql, &set(21, "")).await?;
    on(Kind::Smaller, 20)
        .meets(21)
        .with(half, sql, &set(20, ", region = 'us'"))
        .await?;
    on(Kind::EqualAgain, 21)
        .with(half, sql, &set(21, ", region = 'us'"))
        .await?;
    on(Kind::Smaller, 20)
        .meets(21)
        .with(
            half,
            sql,
            "UPDATE pause_kit.tokened_us SET token = 20 WHERE id = 'row'",
        )
        .await?;
    Ask::new(Kind::Smaller, CLASS, "replica", 19)
        .meets(20)
        .with(
            half,
            as_replica,
            "UPDATE pause_kit.tokened SET token = 19 WHERE id = 'replica'",
        )
        .await?;
    let explain = |token: i64| {
        format!("SELECT fence.explain_column('pause_kit.tokened', 'id', 'token', 'row', {token})")
    };
    on(Kind::Smaller, 20)
        .meets(21)
        .with(half, sql, &explain(20))
        .await?;
    on(Kind::EqualAgain, 21).with(half, sql, &explain(21)).await?;
    on(Kind::Larger, 22).with(half, sql, &explain(22)).await
}
