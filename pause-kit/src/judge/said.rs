//! What an answer means for the one who asked.

use crate::history::Reply;

/// The meaning of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Done, and committed.
    Accepted,
    /// The stored answer of an earlier request with this id: nothing was done now.
    Stored,
    /// Refused by the fence.
    Fenced(Fence),
    /// Refused for a reason of the resource's own. The admission may have been committed.
    Declined,
    /// Blocked: an older holder's transaction was in the way. Nothing was done.
    Blocked,
    /// Failed, and nothing was done.
    Failed,
    /// It may or may not have been done.
    Unknown,
}

/// Why the fence refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fence {
    Stale,
    Missing,
    Malformed,
    Collision,
    UnknownEpoch,
    WrongKey,
    UnknownClass,
}

impl Fence {
    pub(crate) fn of_sqlstate(sqlstate: &str) -> Option<Fence> {
        Some(match sqlstate {
            "ZF001" => Fence::Stale,
            "ZF002" => Fence::Missing,
            "ZF003" => Fence::Malformed,
            "ZF004" => Fence::Collision,
            "ZF005" => Fence::UnknownEpoch,
            "ZF006" => Fence::WrongKey,
            "ZF007" => Fence::UnknownClass,
            _ => return None,
        })
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Fence::Stale => "stale",
            Fence::Missing => "missing",
            Fence::Malformed => "malformed",
            Fence::Collision => "collision",
            Fence::UnknownEpoch => "unknown epoch",
            Fence::WrongKey => "wrong key",
            Fence::UnknownClass => "unknown class",
        }
    }
}

/// SQLSTATEs after which an attempt says nothing about the fence: it was cut short, blocked, or asked to be repeated.
pub(crate) fn is_cut_short(sqlstate: &str) -> bool {
    matches!(
        sqlstate,
        "40001" | "40P01" | "55P03" | "57014" | "25P02" | "25P03" | "25P04"
    ) || ["08", "53", "57P", "58"]
        .iter()
        .any(|class| sqlstate.starts_with(class))
}

impl Said {
    pub(crate) fn of(reply: &Reply) -> Said {
        match reply {
            Reply::Http {
                status,
                problem,
                stored,
            } => of_http(*status, problem.as_deref(), *stored),
            Reply::Sql { sqlstate, tag, .. } => Said::of_sql(sqlstate.as_deref(), tag.as_deref()),
        }
    }

    /// The meaning of a transaction's last word, or of a statement that stands alone.
    pub(crate) fn of_sql(sqlstate: Option<&str>, tag: Option<&str>) -> Said {
        match (sqlstate, tag) {
            (Some("55P03"), _) => Said::Blocked,
            // Class 08 is made up by drivers when the connection goes.
            (Some(state), _) if state.starts_with("08") => Said::Unknown,
            (Some(state), _) => Fence::of_sqlstate(state).map_or(Said::Failed, Said::Fenced),
            // The COMMIT of a failed transaction is answered ROLLBACK, and a write that found no row counts zero.
            (None, Some("ROLLBACK" | "UPDATE 0" | "DELETE 0" | "INSERT 0 0" | "MERGE 0")) => Said::Failed,
            (None, Some(_)) => Said::Accepted,
            (None, None) => Said::Unknown,
        }
    }
}

fn of_http(status: u16, problem: Option<&str>, stored: bool) -> Said {
    if (200..300).contains(&status) {
        return if stored { Said::Stored } else { Said::Accepted };
    }
    // A problem's type is a URI whose last part names it.
    let name = problem
        .and_then(|uri| uri.rsplit([':', '/', '#']).next())
        .unwrap_or_default();
    match (name, status) {
        ("stale", _) => Said::Fenced(Fence::Stale),
        ("collision", _) => Said::Fenced(Fence::Collision),
        ("unknown-epoch", _) => Said::Fenced(Fence::UnknownEpoch),
        ("missing-token" | "missing-grant", _) => Said::Fenced(Fence::Missing),
        ("malformed" | "more-than-one", _) => Said::Fenced(Fence::Malformed),
        ("blocked", 503) => Said::Blocked,
        ("retryable" | "unavailable", 503) => Said::Failed,
        (_, 400..500) => Said::Declined,
        _ => Said::Unknown,
    }
}
