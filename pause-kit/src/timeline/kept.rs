//! Steps of the path's own: what it sends, and what it keeps back.

use super::describe::altered;
use super::moments::Moment;
use super::step::{Head, Lane, State, Step, Tone};
use crate::history::{Alteration, Answerer, Withheld};

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
