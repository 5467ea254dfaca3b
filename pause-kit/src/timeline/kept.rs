//! Steps of the kit's own: what its path sends, keeps back and sees lie unread, and a stop that it tried in vain.

use super::describe::altered;
use super::moments::Moment;
use super::step::{Head, Lane, State, Step, Tone};
use super::words::actor;
use crate::history::{Alteration, Answerer, Uncommitted, Unheard, Unstopped, Withheld};

/// What the path does when it sends a request itself.
pub(super) fn sent_again(what: &str, how: Alteration, token: &str) -> String {
    match altered(how) {
        Some(how) => format!("The path sends {what} again {how}"),
        None => format!("The path sends {what} again, with {token}"),
    }
}

/// An answer that is held on its way to whoever sent this.
pub(super) fn withheld(moment: &Moment<'_>, answer: &Withheld, what: &str) -> Step {
    let (from, whose) = match answer.by {
        Answerer::Database => (Lane::Mark, "PostgreSQL's answer to the resource for"),
        Answerer::Resource => (Lane::of("R"), "the answer to"),
    };
    let new = |sign, text| Step::new(moment.at, moment.line, format!("{sign} {}", answer.op), text);
    if moment.over {
        let text = format!("The path lets {whose} {what} go");
        let step = new("answer let go", text)
            .end()
            .arrow(Lane::Path, Lane::of("R"), Head::Arrives);
        return step.state(Lane::Path, State::Idle).tone(Tone::Disturbed);
    }
    let step =
        new("answer held", format!("The path holds {whose} {what}")).arrow(from, Lane::Path, Head::Kept);
    let step = step.tone(Tone::Disturbed);
    match answer.released {
        Some(_) => step.state(Lane::Path, State::Holds),
        None => step,
    }
}

/// The COMMIT of this write, held on its way from the resource to PostgreSQL.
pub(super) fn uncommitted(moment: &Moment<'_>, commit: &Uncommitted, what: &str) -> Step {
    let new = |sign, text| Step::new(moment.at, moment.line, format!("{sign} {}", commit.op), text);
    if moment.over {
        return new("commit let go", format!("The path lets the COMMIT of {what} go"))
            .end()
            .arrow(Lane::Path, Lane::Mark, Head::Arrives)
            .state(Lane::Path, State::Idle)
            .tone(Tone::Disturbed);
    }
    new("commit held", format!("The path holds the COMMIT of {what}"))
        .arrow(Lane::of("R"), Lane::Path, Head::Kept)
        .state(Lane::Path, State::Holds)
        .tone(Tone::Disturbed)
}

/// A keepalive that the lock store does not read.
pub(super) fn unheard(moment: &Moment<'_>, one: &Unheard) -> Step {
    let text = format!(
        "A keepalive of {} lies unread in the lock store's socket",
        one.holder
    );
    Step::new(moment.at, moment.line, format!("unheard {}", one.holder), text)
        .arrow(Lane::of(&one.holder), Lane::of(&one.target), Head::Kept)
        .tone(Tone::Disturbed)
}

/// A stop that was tried in vain.
pub(super) fn unstopped(moment: &Moment<'_>, one: &Unstopped) -> Step {
    let text = format!(
        "{} cannot be stopped: one of its tasks stays in state {}",
        actor(&one.target),
        one.state
    );
    Step::new(moment.at, moment.line, format!("unstopped {}", one.target), text)
        .dot(Lane::of(&one.target))
        .tone(Tone::Disturbed)
}
