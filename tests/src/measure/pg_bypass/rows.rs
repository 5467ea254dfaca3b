//! Statements that write the rows of the guarded table itself.

use std::pin::pin;

use futures_util::SinkExt;

use super::bed::{Answer, Bed, admit, connect, said};
use super::finding;
use crate::measure::Failure;

const BOTH: &[&str] = &["acct-1", "acct-2"];

pub(super) async fn insert(bed: &Bed<'_>) -> Result<(), Failure> {
    let sql = "INSERT INTO payment VALUES (3, 'acct-1', 5)";
    bed.refused(&[], sql, "ZF002").await?;
    bed.refused(&["acct-2"], sql, "ZF006").await?;
    bed.control(&["acct-1"], sql).await?;
    // An admission that was rolled back, or that another transaction had, is none.
    let replayed = format!("SAVEPOINT s; {}; ROLLBACK TO s; {sql}", admit("acct-1"));
    bed.refused(&[], &replayed, "ZF002").await?;
    let in_pieces = format!("{}; COMMIT; BEGIN; {sql}", admit("acct-1"));
    bed.refused(&[], &in_pieces, "ZF002").await
}

pub(super) async fn update(bed: &Bed<'_>) -> Result<(), Failure> {
    let sql = "UPDATE payment SET amount = 0 WHERE id = 1";
    bed.refused(&[], sql, "ZF002").await?;
    bed.refused(&["acct-2"], sql, "ZF006").await?;
    bed.control(&["acct-1"], sql).await?;
    // One row of many is enough.
    let all = "UPDATE payment SET amount = amount + 1";
    bed.refused(&["acct-1"], all, "ZF006").await?;
    bed.control(BOTH, all).await
}

pub(super) async fn update_of_the_key(bed: &Bed<'_>) -> Result<(), Failure> {
    let sql = "UPDATE payment SET account = 'acct-2' WHERE id = 1";
    bed.refused(&[], sql, "ZF002").await?;
    bed.refused(&["acct-1"], sql, "ZF006").await?;
    bed.refused(&["acct-2"], sql, "ZF006").await?;
    bed.control(BOTH, sql).await
}

pub(super) async fn delete(bed: &Bed<'_>) -> Result<(), Failure> {
    let sql = "DELETE FROM payment WHERE id = 1";
    bed.refused(&[], sql, "ZF002").await?;
    bed.refused(&["acct-2"], sql, "ZF006").await?;
    bed.control(&["acct-1"], sql).await?;
    // Gone and back again with other content is two writes.
    let swapped = "DELETE FROM payment WHERE id = 2; INSERT INTO payment VALUES (2, 'acct-2', 999)";
    bed.refused(&["acct-1"], swapped, "ZF006").await
}

pub(super) async fn truncate(bed: &Bed<'_>) -> Result<(), Failure> {
    bed.owner(
        "CREATE TABLE batch (id integer PRIMARY KEY); INSERT INTO batch VALUES (1);
               ALTER TABLE payment ADD batch integer REFERENCES batch",
    )
    .await?;
    if bed.role == super::Role::Application {
        bed.refused(&[], "TRUNCATE payment", "42501").await?;
        // The right to it is one more than an application needs, and does not help.
        bed.owner(&format!("GRANT TRUNCATE ON payment, batch TO {}", bed.app()))
            .await?;
        bed.finds(finding::TRUNCATE_GRANT, "public.payment").await?;
    }
    for sql in [
        "TRUNCATE payment",
        "TRUNCATE batch CASCADE",
        "TRUNCATE ONLY payment RESTART IDENTITY",
    ] {
        bed.refused(&[], sql, "ZF002").await?;
        // It names no key, so that no admission covers it.
        bed.refused(BOTH, sql, "ZF002").await?;
    }
    // It is the guard that refuses, not a missing right: beside the guarded table it goes through.
    bed.owner("ALTER TABLE payment DROP batch").await?;
    bed.control(&[], "TRUNCATE batch").await
}

pub(super) async fn copy(bed: &Bed<'_>) -> Result<(), Failure> {
    for (keys, code) in [
        (&[][..], Some("ZF002")),
        (&["acct-2"][..], Some("ZF006")),
        (&["acct-1"][..], None),
    ] {
        let before = bed.rows().await?;
        let answer = copied(bed, keys).await?;
        bed.count();
        let same = bed.rows().await? == before;
        match (answer, code) {
            (Answer::Refused(error), Some(code)) if error.code().code() == code && same => {
                bed.say(code.to_owned());
            }
            (Answer::Applied, None) if !same => bed.say("applied when admitted".to_owned()),
            (Answer::Refused(error), _) => {
                return Err(
                    format!("COPY after {keys:?}: {} {}", error.code().code(), error.message()).into(),
                );
            }
            (Answer::Applied, _) => return Err(format!("COPY after {keys:?} went through").into()),
        }
    }
    Ok(())
}

/// Copies a row of `acct-1` in, and commits.
async fn copied(bed: &Bed<'_>, keys: &[&str]) -> Result<Answer, Failure> {
    let client = connect(bed.url()).await?;
    client.batch_execute("BEGIN").await?;
    for key in keys {
        let admitted = client.batch_execute(&admit(key)).await;
        admitted.map_err(|error| said(&error))?;
    }
    let sink = client
        .copy_in("COPY payment FROM STDIN WITH (FORMAT csv)")
        .await?;
    let mut sink = pin!(sink);
    sink.send(bytes::Bytes::from_static(b"7,acct-1,5\n")).await?;
    let copied = sink.finish().await;
    match copied {
        Ok(_) => match client.batch_execute("COMMIT").await {
            Ok(()) => Ok(Answer::Applied),
            Err(error) => Answer::of(error),
        },
        Err(error) => Answer::of(error),
    }
}

pub(super) async fn merge(bed: &Bed<'_>) -> Result<(), Failure> {
    let merged = |id: u8, amount: u8| {
        format!(
            "MERGE INTO payment p USING (VALUES ({id}, 'acct-1', {amount})) AS s (id, account, amount) ON p.id = s.id
             WHEN MATCHED AND s.amount > 90 THEN DELETE
             WHEN MATCHED THEN UPDATE SET amount = s.amount
             WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.account, s.amount)"
        )
    };
    let (updates, inserts, deletes) = (merged(1, 7), merged(3, 7), merged(1, 99));
    for sql in [&updates, &inserts, &deletes] {
        bed.refused(&[], sql, "ZF002").await?;
        bed.refused(&["acct-2"], sql, "ZF006").await?;
        bed.control(&["acct-1"], sql).await?;
    }
    Ok(())
}

pub(super) async fn on_conflict(bed: &Bed<'_>) -> Result<(), Failure> {
    let sql =
        "INSERT INTO payment VALUES (1, 'acct-1', 5) ON CONFLICT (id) DO UPDATE SET amount = excluded.amount";
    bed.refused(&[], sql, "ZF002").await?;
    bed.refused(&["acct-2"], sql, "ZF006").await?;
    bed.control(&["acct-1"], sql).await?;
    // The row that is there is another key's than the one that was to be inserted.
    let theirs =
        "INSERT INTO payment VALUES (2, 'acct-1', 5) ON CONFLICT (id) DO UPDATE SET amount = excluded.amount";
    bed.refused(&["acct-1"], theirs, "ZF006").await?;
    // The row moves to the key that was to be inserted.
    let moves = "INSERT INTO payment VALUES (2, 'acct-1', 5) ON CONFLICT (id) DO UPDATE SET account = excluded.account";
    bed.refused(&["acct-1"], moves, "ZF006").await?;
    bed.refused(&["acct-2"], moves, "ZF006").await?;
    bed.control(BOTH, moves).await
}

pub(super) async fn writable_cte(bed: &Bed<'_>) -> Result<(), Failure> {
    for sql in [
        "WITH w AS (INSERT INTO payment VALUES (3, 'acct-1', 5) RETURNING id) SELECT count(*) FROM w",
        "WITH w AS (UPDATE payment SET amount = 0 WHERE account = 'acct-1' RETURNING id) SELECT count(*) FROM w",
        "WITH w AS (DELETE FROM payment WHERE account = 'acct-1' RETURNING *)
         INSERT INTO payment SELECT id + 10, account, 999 FROM w",
    ] {
        bed.refused(&[], sql, "ZF002").await?;
        bed.refused(&["acct-2"], sql, "ZF006").await?;
        bed.control(&["acct-1"], sql).await?;
    }
    // An admission inside the writing statement is none: its snapshot is older than what it waited for.
    let inside = format!(
        "WITH a AS MATERIALIZED ({}) UPDATE payment SET amount = 0 WHERE account = 'acct-1' AND EXISTS (SELECT FROM a)",
        admit("acct-1")
    );
    bed.refused(&[], &inside, "ZF002").await?;
    bed.control(&["acct-1"], &inside).await
}
