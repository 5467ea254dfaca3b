//! A history as a whole, and cut wherever nothing is in flight.

use super::Answer;
use super::memory::{Exact, Fingerprints, Memory};
use super::search::{Budget, Search};
use super::subject::{Span, Subject};

/// For one part of several: beyond it the rest is looked at as one, which needs not every state that the part can end in.
const PART: Budget = Budget {
    bytes: 8 << 20,
    looks: 4_000_000,
};

/// For the last part, or for the rest.
const REST: Budget = Budget {
    bytes: 64 << 20,
    looks: 60_000_000,
};

/// How often each operation of a whole history is looked at, on the average, before the history is cut.
const LOOKS_EACH: usize = 40;

/// Whether some order of the operations explains them all. They stand in the order of their beginnings.
pub(crate) fn explain<S: Subject>(mut subject: S, spans: &[Span]) -> Answer {
    // Where there are many orders one is soon found. Where there are few or none, parts keep the search small.
    let budget = Budget {
        looks: LOOKS_EACH * spans.len(),
        ..REST
    };
    let starts = [subject.first()];
    let whole = Search::<S, Fingerprints>::new(&mut subject, spans, 0..spans.len());
    let answer = match of_ends(whole.ends(&starts, false, budget).as_deref()) {
        Answer::Unknown => explain_parts::<S, Fingerprints>(&mut subject, spans),
        answer => answer,
    };
    match answer {
        Answer::Unexplained => explain_parts::<S, Exact<S::State>>(&mut subject, spans),
        answer => answer,
    }
}

fn explain_parts<S: Subject, M: Memory<S::State>>(subject: &mut S, spans: &[Span]) -> Answer {
    let mut starts = vec![subject.first()];
    let mut from = 0;
    let mut answer = Answer::Explained;
    for to in cuts(spans) {
        let is_last = to == spans.len();
        let budget = if is_last { REST } else { PART };
        let ends = Search::<S, M>::new(subject, spans, from..to).ends(&starts, !is_last, budget);
        let ends = match ends {
            None if !is_last => {
                let rest = Search::<S, M>::new(subject, spans, from..spans.len());
                answer = of_ends(rest.ends(&starts, false, REST).as_deref());
                break;
            }
            ends => ends,
        };
        answer = of_ends(ends.as_deref());
        // Where the last part is explained, the subject is not asked again.
        let (Answer::Explained, Some(ends), false) = (answer, ends, is_last) else {
            break;
        };
        starts = ends;
        (from..to).for_each(|number| subject.note(number, true));
        from = to;
    }
    (0..from).for_each(|number| subject.note(number, false));
    answer
}

fn of_ends<S>(ends: Option<&[S]>) -> Answer {
    match ends {
        None => Answer::Unknown,
        Some([]) => Answer::Unexplained,
        Some(_) => Answer::Explained,
    }
}

/// The numbers before which everything earlier has ended, and the end.
fn cuts(spans: &[Span]) -> Vec<usize> {
    let mut cuts = Vec::new();
    // `None` once something may take effect for ever.
    let mut all_ended = spans.first().and_then(|span| span.ended);
    for (number, span) in spans.iter().enumerate().skip(1) {
        if all_ended.is_some_and(|end| end < span.began) {
            cuts.push(number);
        }
        all_ended = all_ended.zip(span.ended).map(|(one, other)| one.max(other));
    }
    if !spans.is_empty() {
        cuts.push(spans.len());
    }
    cuts
}
