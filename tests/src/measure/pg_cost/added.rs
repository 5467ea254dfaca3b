//! What a guard adds to a write: statements and flights on the wire, bytes of WAL, row versions.

use std::time::Duration;

use tokio_postgres::Client;

use super::bed::{ACCOUNTS, Bed, Length, TOKEN};
use super::forms::Form;
use super::relay::Relay;
use crate::measure::Failure;

/// Transactions of the shorter and of the longer run: what connecting adds is in both.
const SHORT: u32 = 20;
const LONG: u32 = 220;
/// Writes whose WAL is weighed, each to a row of its own.
const WRITES: i64 = 2_000;

/// Statements and flights of one write, as they were seen on the wire.
pub(crate) async fn on_the_wire(bed: &Bed, form: Form) -> Result<(f64, f64), Failure> {
    let relay = Relay::start(bed.postgres.port(), Duration::ZERO)?;
    let mut counted = Vec::new();
    for transactions in [SHORT, LONG] {
        let (statements, flights) = relay.counted();
        bed.pgbench(
            relay.port,
            &form.script(ACCOUNTS),
            1,
            Length::Transactions(transactions),
        )
        .await?;
        let (more_statements, more_flights) = relay.counted();
        counted.push((more_statements - statements, more_flights - flights));
    }
    let each = |short: u64, long: u64| (long as f64 - short as f64) / f64::from(LONG - SHORT);
    Ok((each(counted[0].0, counted[1].0), each(counted[0].1, counted[1].1)))
}

/// A write whose WAL is weighed: its name and its transaction, with `$ID` for the row.
pub(crate) struct Weighed {
    pub(crate) name: &'static str,
    pub(crate) bytes: f64,
    pub(crate) marks: f64,
    pub(crate) rows: f64,
    pub(crate) hot: f64,
}

/// The bytes of WAL and the row versions of one write of each kind, on a server that writes no full pages.
pub(crate) async fn in_the_wal(bed: &Bed) -> Result<Vec<Weighed>, Failure> {
    let newer = TOKEN + 1;
    let older = TOKEN - 1;
    let column = |token: i64| {
        format!(
            "UPDATE by_column SET balance = balance + 1, fence_token = {token} WHERE id = $ID AND fence_token <= {token}"
        )
    };
    let admit =
        |token: i64, grant: &str| format!("SELECT fence.admit('bank.account', '$ID', {token}, '{grant}')");
    let bare = "UPDATE account SET balance = balance + 1 WHERE id = $ID";
    let enforced = "UPDATE enforced SET balance = balance + 1 WHERE id = $ID";
    let mut weighed = Vec::new();
    for (name, transaction) in [
        ("bare", bare.to_owned()),
        ("column, token stays", column(TOKEN)),
        ("column, refused", column(older)),
        ("column, token moves", column(newer)),
        ("mark, token stays", format!("{}; {bare}", admit(TOKEN, "g"))),
        (
            "mark enforced, token stays",
            format!("{}; {enforced}", admit(TOKEN, "g")),
        ),
        ("mark, refused", admit(older, "f")),
        ("mark, token moves", format!("{}; {bare}", admit(newer, "h"))),
    ] {
        weighed.push(weigh(bed, name, &transaction).await?);
    }
    Ok(weighed)
}

async fn weigh(bed: &Bed, name: &'static str, transaction: &str) -> Result<Weighed, Failure> {
    // Every row of every table anew, so that each write finds its row as the others did.
    bed.vacuum("FULL").await?;
    bed.superuser().await?.batch_execute("CHECKPOINT").await?;
    let client = bed.client().await?;
    // What a first write does to a session and to a page is not the write's own.
    write(&client, transaction, ACCOUNTS).await?;
    let counter = bed.client().await?;
    let (marks, rows, hot) = updates(&client, &counter).await?;
    let before = position(&counter).await?;
    for id in 1..=WRITES {
        write(&client, transaction, id).await?;
    }
    let after = position(&counter).await?;
    let (more_marks, more_rows, more_hot) = updates(&client, &counter).await?;
    let each = |count: i64| count as f64 / WRITES as f64;
    Ok(Weighed {
        name,
        bytes: each(after - before),
        marks: each(more_marks - marks),
        rows: each(more_rows - rows),
        hot: each(more_hot - hot),
    })
}

/// One transaction; a refusal rolls it back.
async fn write(client: &Client, transaction: &str, id: i64) -> Result<(), Failure> {
    let sql = transaction.replace("$ID", &id.to_string());
    match client.batch_execute(&sql).await {
        Err(error) if error.code().is_none_or(|code| code.code() != "ZF001") => Err(error.into()),
        _ => Ok(()),
    }
}

/// How many bytes of records the WAL holds so far.
async fn position(client: &Client) -> Result<i64, Failure> {
    let sql = "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint";
    Ok(without_page_headers(client.query_one(sql, &[]).await?.get(0)))
}

/// A position in the WAL less the headers before it, which are nobody's record: 24 bytes on each page of 8 KiB, 16 more on
/// the first page of each segment of 16 MiB.
fn without_page_headers(position: i64) -> i64 {
    let begun = |size: i64| (position + size - 1) / size;
    position - 24 * begun(8 << 10) - 16 * begun(16 << 20)
}

/// Row versions written so far: of marks, of accounts, and how many of all did not touch an index.
async fn updates(writer: &Client, counter: &Client) -> Result<(i64, i64, i64), Failure> {
    writer
        .batch_execute("SELECT pg_stat_force_next_flush(); SELECT 1")
        .await?;
    let sql = "SELECT sum(n_tup_upd) FILTER (WHERE relname = 'high_water')::bigint,
                      sum(n_tup_upd) FILTER (WHERE schemaname = 'public')::bigint,
                      sum(n_tup_hot_upd)::bigint
               FROM pg_stat_user_tables";
    let row = counter.query_one(sql, &[]).await?;
    Ok((row.get(0), row.get(1), row.get(2)))
}

#[cfg(test)]
mod tests {
    use super::without_page_headers;

    #[test]
    fn records_as_long_as_a_page_holds_count_for_what_they_are() {
        let start = 5 * (16 << 20);
        // The first page of a segment, whole, then one further page, whole.
        assert_eq!(
            without_page_headers(start + 8192) - without_page_headers(start),
            8192 - 40
        );
        assert_eq!(
            without_page_headers(start + 16384) - without_page_headers(start + 8192),
            8192 - 24
        );
        assert_eq!(
            without_page_headers(start + 9000) - without_page_headers(start + 8300),
            700
        );
    }
}
