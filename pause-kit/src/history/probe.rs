//! Questions to the guard whose right answer is known beforehand.

use serde::{Deserialize, Serialize};

use super::observed::{Presented, Reply, TokenNumber};
use super::run::GuardForm;

/// What is asked of a guard beside the scenario. Each has one right answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// An older token on a key where nothing newer was: must be applied.
    Bystander,
    /// The same key in another class, where nothing newer was: must be applied.
    OtherClass,
    /// The mark's own token and grant once more: must be applied.
    EqualAgain,
    /// A first or larger token that sets the stage for a later probe: must be applied.
    Prepare,
    /// A larger token after a smaller one, wherever text, 32 bits or doubles order them otherwise: must be applied.
    Larger,
    /// The token of a live grant, in a transaction that is rolled back: must be admitted, and is no contact.
    RolledBack,
    /// A smaller token after a larger one that was rolled back: must be applied.
    AfterRollback,
    /// A smaller token after a larger one: must be refused as stale, with both numbers.
    Smaller,
    /// The mark's own token with another grant: must be refused as a collision.
    Collision,
    /// A token outside every registered range: must be refused as of an unknown epoch.
    OutsideRange,
    /// No token: must be refused as missing.
    MissingToken,
    /// A token without a grant id, where the class needs one: must be refused as missing.
    MissingGrant,
    /// A token that is none, 0 or below: must be refused as below 1.
    BelowOne,
    /// Text that is no token: must be refused as malformed.
    Malformed,
    /// A class that nobody declared: must be refused as unknown.
    UnknownClass,
    /// A larger token that only raises the mark, by `fence.raise_mark`: must be applied.
    Raise,
    /// A raise with a smaller token after a larger one: must be refused as stale, with both numbers.
    StaleRaise,
    /// A raise with the mark's own token and another grant: must be refused as a collision.
    CollidingRaise,
    /// A raise with a token outside every registered range: must be refused as of an unknown epoch.
    RaiseOutsideRange,
    /// A raise without a token: must be refused as missing.
    RaiseWithoutToken,
    /// A larger admission while another connection's admission of the same key is not yet committed: must be blocked.
    HeldToTheEnd,
    /// The same without any bound of the caller's own: must be blocked by the guard's bound. The kit cuts it short, with
    /// 57014, once bound and slack have passed; any other question is given far longer before that.
    BoundedWait,
    /// A token of a key that nobody holds while another key is held: must be applied at once.
    Unheld,
    /// Whether a transaction that admitted is bounded while it idles, and has the lock timeout that it had before.
    Bounds,
    /// Whether a transaction that admitted waits for its commit to be durable, although it was told not to.
    Durable,
    /// A write on a guarded table by a transaction that admitted its row's key: must be applied.
    Admitted,
    /// A write on a guarded table, on a key that a newer holder has reached, without an admission: must be refused as missing.
    Forgotten,
    /// The same after an admission of another key: must be refused as of the wrong key.
    WrongKey,
    /// A write without admission on a table whose class only observes, beside another open one: must be applied at once.
    Observed,
    /// The switch of such a class to enforcement while an observed write is not yet committed: must be blocked.
    Switch,
    /// Whether the guard has written down what it let through, and for whom.
    WrittenDown,
    /// One of two batches of keys that are given in opposite orders at the same time: must be applied.
    Crossed,
    /// A batch of keys one of which has a larger mark: must be refused as stale, naming that key.
    StaleBatch,
    /// An admission while an operator has stopped them: must be refused as of a history in doubt.
    Stopped,
    /// A larger admission in a snapshot from before the predecessor's last commit: must be refused, or fail with 40001.
    OldSnapshot,
}

impl ProbeKind {
    /// What every guarded half asks of a guard of this form, whatever its scenario.
    pub fn always_asked(form: GuardForm) -> &'static [ProbeKind] {
        match form {
            // It has no grant ids and no ranges, and it is asked about rows that exist.
            GuardForm::Column => &[ProbeKind::Bystander, ProbeKind::Smaller],
            GuardForm::Mark => &[
                ProbeKind::Bystander,
                ProbeKind::OtherClass,
                ProbeKind::EqualAgain,
                ProbeKind::Prepare,
                ProbeKind::Larger,
                ProbeKind::AfterRollback,
                ProbeKind::Smaller,
                ProbeKind::Collision,
                ProbeKind::OutsideRange,
                ProbeKind::MissingToken,
                ProbeKind::MissingGrant,
                ProbeKind::BelowOne,
                ProbeKind::Malformed,
                ProbeKind::UnknownClass,
                ProbeKind::HeldToTheEnd,
                ProbeKind::Unheld,
                ProbeKind::Bounds,
                ProbeKind::Durable,
                ProbeKind::OldSnapshot,
                ProbeKind::Raise,
                ProbeKind::StaleRaise,
                ProbeKind::CollidingRaise,
                ProbeKind::RaiseOutsideRange,
                ProbeKind::RaiseWithoutToken,
                ProbeKind::Admitted,
                ProbeKind::Forgotten,
                ProbeKind::WrongKey,
                ProbeKind::Observed,
                ProbeKind::Switch,
                ProbeKind::WrittenDown,
                ProbeKind::Crossed,
                ProbeKind::StaleBatch,
                ProbeKind::Stopped,
            ],
        }
    }
}

/// A probe and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probe {
    /// What was asked.
    pub probe: ProbeKind,
    /// The class.
    pub class: String,
    /// The key.
    pub key: String,
    /// What was presented.
    pub presented: Presented,
    /// The mark that a stale refusal must name. `None` where none is expected.
    pub seen: Option<TokenNumber>,
    /// The id of the write that was tried. `None` when only admission was.
    pub id: Option<String>,
    /// What was answered.
    pub reply: Reply,
    /// PostgreSQL's own answer, where the reply came over HTTP and the path showed it.
    pub sqlstate: Option<String>,
    /// The DETAIL that came with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
