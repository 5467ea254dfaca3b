//! What an answer means for the one who asked.

use crate::history::{Probe, Reply};

/// The meaning of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// Done, and committed.
    Accepted,
    /// The stored answer of an earlier request with this id: nothing was done now.
    Stored,
    /// Accepted for later, with 202: nothing is written yet, and what comes of it reading back tells.
    Deferred,
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
    HistoryInDoubt,
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
            "ZF008" => Fence::HistoryInDoubt,
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
            Fence::HistoryInDoubt => "history in doubt",
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
    /// The meaning of an answer. `behind` is the error that the database was seen to answer to the resource meanwhile, which
    /// tells what a status means whose body does not.
    pub(crate) fn of(reply: &Reply, behind: Option<&str>) -> Said {
        match reply {
            Reply::Http {
                status,
                problem,
                stored,
            } => of_http(*status, problem.as_deref(), *stored, behind),
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

/// The meaning of the answer to a probe.
pub(crate) fn of_probe(probe: &Probe) -> Said {
    Said::of(&probe.reply, probe.sqlstate.as_deref())
}

fn of_http(status: u16, problem: Option<&str>, stored: bool, behind: Option<&str>) -> Said {
    if (200..300).contains(&status) {
        return match (stored, status) {
            (true, _) => Said::Stored,
            (false, 202) => Said::Deferred,
            (false, _) => Said::Accepted,
        };
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
        // Without a type that is known, a status is believed with the code that belongs to it.
        (_, 400..) => of_plain(status, behind),
        _ => Said::Unknown,
    }
}

/// The meaning of a status whose body does not say which refusal it is.
fn of_plain(status: u16, behind: Option<&str>) -> Said {
    match (status, behind.and_then(Fence::of_sqlstate), behind) {
        (412, Some(fence @ (Fence::Stale | Fence::Collision)), _)
        | (428, Some(fence @ Fence::Missing), _)
        | (400, Some(fence @ Fence::Malformed), _)
        | (409, Some(fence @ Fence::UnknownEpoch), _) => Said::Fenced(fence),
        // It asks for a precondition, and there is no other than the token.
        (428, None, _) => Said::Fenced(Fence::Missing),
        (503, None, Some("55P03")) => Said::Blocked,
        (503, None, Some("40001" | "40P01")) => Said::Failed,
        (400..500, ..) => Said::Declined,
        _ => Said::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(status: u16, behind: Option<&str>) -> Said {
        of_http(status, None, false, behind)
    }

    #[test]
    fn a_plain_status_is_a_refusal_of_the_fence_only_with_the_code_that_belongs_to_it() {
        assert_eq!(plain(412, Some("ZF001")), Said::Fenced(Fence::Stale));
        assert_eq!(plain(412, Some("ZF004")), Said::Fenced(Fence::Collision));
        assert_eq!(plain(428, Some("ZF002")), Said::Fenced(Fence::Missing));
        assert_eq!(plain(428, None), Said::Fenced(Fence::Missing));
        assert_eq!(plain(409, Some("ZF005")), Said::Fenced(Fence::UnknownEpoch));
        assert_eq!(plain(503, Some("55P03")), Said::Blocked);
        for (status, behind) in [
            (412, None),
            (412, Some("ZF005")),
            (409, Some("ZF001")),
            (409, Some("23505")),
            (403, Some("ZF001")),
        ] {
            assert_eq!(plain(status, behind), Said::Declined, "{status} {behind:?}");
        }
        for (status, behind) in [(500, Some("ZF001")), (503, None), (500, None)] {
            assert_eq!(plain(status, behind), Said::Unknown, "{status} {behind:?}");
        }
    }

    #[test]
    fn a_type_that_is_known_needs_no_code_and_a_success_is_one_whatever_the_code() {
        let stale = of_http(412, Some("urn:fence:stale"), false, None);
        assert_eq!(stale, Said::Fenced(Fence::Stale));
        assert_eq!(plain(201, Some("ZF001")), Said::Accepted);
    }

    #[test]
    fn what_is_accepted_for_later_is_not_done_and_its_stored_answer_does_nothing_either() {
        assert_eq!(plain(202, None), Said::Deferred);
        assert_eq!(of_http(202, None, true, None), Said::Stored);
    }
}
