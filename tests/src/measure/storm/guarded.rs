//! Guarded writes as plain SQL, over one connection.

use tokio_postgres::{Client, SimpleQueryMessage};

use super::store::Grant;

/// The table of each guard, and its rows.
pub(crate) const TABLES: &str = "
    SELECT fence.declare('storm.account', 'entity');
    SELECT fence.declare('storm.batch', 'entity');
    SELECT fence.register_epoch('entity', 1);
    CREATE TABLE balance (account text PRIMARY KEY, total bigint NOT NULL);
    CREATE TABLE entry (id text PRIMARY KEY, account text NOT NULL, token bigint NOT NULL, amount bigint NOT NULL);
    INSERT INTO balance SELECT 'acct-' || n, 0 FROM generate_series(0, 7) n;
    CREATE TABLE batch (id bigint PRIMARY KEY, total bigint NOT NULL, entry text NOT NULL, fence_token bigint NOT NULL DEFAULT 0);
    INSERT INTO batch SELECT n, 0, '' FROM generate_series(0, 7) n;
    SELECT fence.protect('balance', 'storm.account', 'account');
    SELECT fence.protect('entry', 'storm.account', 'account');
    SELECT fence.protect_column('batch', 'storm.batch', 'id', 'fence_token');
";

/// An isolation level, as BEGIN names it.
pub(crate) type Level = &'static str;

pub(crate) const LEVELS: [Level; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

/// What one transaction came to.
#[derive(Debug)]
pub(crate) enum Came {
    /// The server said that it is committed.
    Applied,
    /// ZF001, with its DETAIL.
    Stale(String),
    /// The whole transaction may be tried again: the code, and the server's words.
    Again(String, String),
    /// Anything else.
    Failed(String),
}

/// What is written, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write<'w> {
    /// Its id.
    pub(crate) entry: &'w str,
    pub(crate) amount: i64,
    /// What it presents.
    pub(crate) token: u64,
    pub(crate) level: Level,
    /// Whether the sum is read, sent to the client and written from there, which takes a second flight.
    pub(crate) reads: bool,
}

/// Raises the mark, in a transaction of its own.
pub(crate) async fn raise(client: &Client, grant: &Grant, level: Level) -> Came {
    let text = format!(
        "BEGIN ISOLATION LEVEL {level}; SELECT fence.raise_mark('storm.account', 'acct-{}', {}, '{}'); COMMIT",
        grant.resource.number(),
        grant.token(),
        grant.id()
    );
    finish(client, flight(client, &text).await.map(drop)).await
}

/// Writes under a grant.
pub(crate) async fn write(client: &Client, grant: &Grant, write: &Write<'_>) -> Came {
    let written = match grant.resource.is_column() {
        true => batch(client, grant.resource.number(), write).await,
        false => account(client, grant, write).await,
    };
    finish(client, written).await
}

async fn account(client: &Client, grant: &Grant, write: &Write<'_>) -> Result<(), Trouble> {
    let Write {
        entry,
        amount,
        token,
        level,
        reads,
    } = write;
    let (number, id) = (grant.resource.number(), grant.id());
    let admit = format!(
        "BEGIN ISOLATION LEVEL {level}; SELECT fence.admit('storm.account', 'acct-{number}', {token}, '{id}');"
    );
    let put = |total: String| {
        format!(
            "UPDATE balance SET total = {total} WHERE account = 'acct-{number}';
             INSERT INTO entry VALUES ('{entry}', 'acct-{number}', {token}, {amount}); COMMIT"
        )
    };
    if !reads {
        let text = format!("{admit}{}", put(format!("total + {amount}")));
        return touched(&flight(client, &text).await?, 2);
    }
    let read = format!("{admit} SELECT total FROM balance WHERE account = 'acct-{number}'");
    let total = number_in(&flight(client, &read).await?)?;
    touched(&flight(client, &put((total + amount).to_string())).await?, 2)
}

async fn batch(client: &Client, number: usize, write: &Write<'_>) -> Result<(), Trouble> {
    let Write {
        entry,
        amount,
        token,
        level,
        reads,
    } = write;
    let put = |total: String| {
        format!(
            "UPDATE batch SET total = {total}, entry = '{entry}', fence_token = {token}
             WHERE id = {number} AND fence_token <= {token};
             SELECT fence.explain_column('batch', 'id', 'fence_token', '{number}', {token}); COMMIT"
        )
    };
    if !reads {
        let text = format!(
            "BEGIN ISOLATION LEVEL {level}; {}",
            put(format!("total + {amount}"))
        );
        return touched(&flight(client, &text).await?, 1);
    }
    let claim = format!(
        "BEGIN ISOLATION LEVEL {level};
         UPDATE batch SET fence_token = {token} WHERE id = {number} AND fence_token <= {token} RETURNING total;
         SELECT fence.explain_column('batch', 'id', 'fence_token', '{number}', {token})"
    );
    let total = number_in(&flight(client, &claim).await?)?;
    touched(&flight(client, &put((total + amount).to_string())).await?, 1)
}

/// Why a transaction was not committed.
enum Trouble {
    Server(tokio_postgres::Error),
    /// Nothing failed, and yet it is not what was asked for.
    Odd(String),
}

/// One round trip. After a failed statement the server skips the rest, COMMIT included.
async fn flight(client: &Client, text: &str) -> Result<Vec<SimpleQueryMessage>, Trouble> {
    client.simple_query(text).await.map_err(Trouble::Server)
}

/// The one number that was read: in the first column of the first row that is one.
fn number_in(answers: &[SimpleQueryMessage]) -> Result<i64, Trouble> {
    let mut numbers = answers.iter().filter_map(|answer| match answer {
        SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
        _ => None,
    });
    numbers
        .next()
        .ok_or_else(|| Trouble::Odd("nothing was read".into()))
}

/// Whether the writes among the statements touched so many rows in all; each SELECT of a function counts its one row.
fn touched(answers: &[SimpleQueryMessage], rows: u64) -> Result<(), Trouble> {
    let read = answers
        .iter()
        .filter(|answer| matches!(answer, SimpleQueryMessage::Row(_)))
        .count() as u64;
    let counted: u64 = answers
        .iter()
        .map(|answer| match answer {
            SimpleQueryMessage::CommandComplete(rows) => *rows,
            _ => 0,
        })
        .sum();
    if counted == read + rows {
        return Ok(());
    }
    Err(Trouble::Odd(format!(
        "{} rows instead of {rows} were written",
        counted.saturating_sub(read)
    )))
}

/// What it came to; the connection is left without a transaction.
async fn finish(client: &Client, written: Result<(), Trouble>) -> Came {
    let Err(trouble) = written else {
        return Came::Applied;
    };
    if let Err(error) = client.batch_execute("ROLLBACK").await {
        return Came::Failed(format!("ROLLBACK failed: {error}"));
    }
    let error = match trouble {
        Trouble::Odd(what) => return Came::Failed(what),
        Trouble::Server(error) => error,
    };
    let Some(answer) = error.as_db_error() else {
        return Came::Failed(error.to_string());
    };
    match answer.code().code() {
        "ZF001" => Came::Stale(answer.detail().unwrap_or_default().to_owned()),
        code @ ("40001" | "55P03") => Came::Again(code.to_owned(), answer.message().to_owned()),
        code => Came::Failed(format!("{code}: {}", answer.message())),
    }
}
