//! What every driver of the guards has to do, as a suite that runs against a real database.
//!
//! It is for whoever puts the guards behind another driver or a wrapper of one: implement [`Driver`], and [`run`] asks for each
//! outcome: the admitted and the refused, several keys and none, batches, one flight, what is left behind on a connection, and
//! races that end in exact sums. [`Sqlx`] and [`TokioPostgres`] are this crate's own.
//!
//! ```no_run
//! # async fn check(url: &str) -> Result<(), Box<dyn std::error::Error>> {
//! use fence_pg::conformance::{Sqlx, run};
//! use fence_pg::Isolation;
//!
//! // A database of its own, that the role owns, and in which the guard is installed.
//! let report = run(async || Sqlx::connect(url).await, Isolation::RepeatableRead).await?;
//! println!("{} cases", report.cases.len());
//! # Ok(())
//! # }
//! ```

mod bed;
mod column;
mod driver;
mod left_behind;
mod many;
mod mark;
mod once;
mod race;
mod requests;
mod sqlx;
mod tokio_postgres;

use std::error::Error;

use crate::isolation::Isolation;

pub use driver::{Driver, End};

pub use self::sqlx::Sqlx;
pub use self::tokio_postgres::TokioPostgres;

use bed::Bed;

/// A suite that was passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What each case showed.
    pub cases: Vec<&'static str>,
}

/// A driver that does not do what the guards promise, or could not be asked.
#[derive(Debug, thiserror::Error)]
#[error("{case}: {what}")]
pub struct Nonconformance {
    /// What the case was to show.
    pub case: &'static str,
    /// What was found instead.
    pub what: String,
}

/// What a case gives.
type Shown = Result<(), String>;

/// Runs every case at an isolation level. `connect` makes a new connection, as whoever owns the database; behind a pooler the
/// pool has four connections or more.
///
/// The database is the suite's own: it makes tables and classes in it whose names begin with `conformance`, and the table of
/// completed requests.
///
/// # Errors
///
/// [`Nonconformance`], the first that is found.
pub async fn run<D: Driver, E: Error>(
    connect: impl AsyncFn() -> Result<D, E>,
    isolation: Isolation,
) -> Result<Report, Nonconformance> {
    let mut cases = Vec::new();
    let bed = Bed::make(connect, isolation)
        .await
        .map_err(|what| Nonconformance {
            case: "the suite's own tables",
            what,
        })?;
    macro_rules! case {
        ($what:literal, $case:path) => {
            if let Err(what) = $case(&bed).await {
                return Err(Nonconformance { case: $what, what });
            }
            cases.push($what);
        };
    }
    case!(
        "the older claim is refused with both numbers, and writes nothing",
        mark::order
    );
    case!(
        "an equal token goes on with its own grant and collides with another",
        mark::equal_tokens
    );
    case!("each other refusal is told apart", mark::refusals);
    case!("an admission counts once it is committed", mark::contact);
    case!("raising the mark shuts the older claim out", mark::raise);
    case!(
        "a failed statement is never taken for a commit",
        mark::failed_statement
    );
    case!(
        "a constraint that fails at COMMIT is never taken for a commit",
        mark::deferred
    );
    case!(
        "a held key is answered as blocked within its bound",
        mark::blocked
    );
    case!(
        "a claim that waited is admitted, or tried again above READ COMMITTED",
        mark::waited
    );
    case!("several claims are admitted together", many::together);
    case!(
        "of several claims none is admitted, and every stale one is named",
        many::all_or_none
    );
    case!(
        "the same claim twice counts once, and no claim is no admission",
        many::duplicates
    );
    case!(
        "one flight applies, and says how many rows it touched",
        once::applied
    );
    case!("one flight is refused, and writes nothing", once::refused);
    case!(
        "one flight does not take the end of another transaction for its own",
        once::ended_inside
    );
    case!(
        "a request that comes again is answered again, and any other is fenced first",
        requests::again
    );
    case!(
        "the key of another request is told, and its claim admitted",
        requests::reused
    );
    case!(
        "two copies at once have one effect and one answer",
        requests::both
    );
    case!(
        "a copy that waited behind a newer holder is answered as its first copy was",
        requests::overtaken
    );
    case!(
        "no admission is left for the connection's next user",
        left_behind::admission
    );
    case!("a lost answer is resolved by reading back", left_behind::resolved);
    case!("a row takes the newer token and refuses the older", column::order);
    case!("an absent row is told from a stale one", column::absent);
    case!("a key in another spelling is the wrong key", column::other_key);
    case!(
        "a row that was replaced meanwhile is tried again",
        column::replaced
    );
    case!(
        "a batch is updated whole, or not at all, and names its rows",
        column::batch
    );
    case!("a batch row by row says what each one came to", column::each);
    case!(
        "a batch of nothing is nothing, and the same row twice is one",
        column::degenerate
    );
    case!("a race over few keys ends in exact sums", race::marks);
    case!("a race over few rows ends in exact sums", race::rows);
    case!("no transaction is left open", left_behind::transactions);
    Ok(Report { cases })
}
