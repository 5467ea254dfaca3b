//! What was done to holders, resource and lock store, and to what they said, each in a sentence.

use super::attempt::Answered;
use super::story::{Teller, Told};
use super::words::{actor, count, length};
use crate::history::{Answerer, At, Event, Exercise};
use crate::judge::Said;

impl Teller<'_, '_> {
    /// Who was stopped, held or killed.
    pub(super) fn disturbed(&self) -> Vec<Told> {
        let events = self.facts.events.iter();
        let sentence = |(_, at, event): &(usize, At, &Event)| match event {
            Event::Stop(stop) => {
                let until = match stop.resumed {
                    Some(resumed) => format!("for {}", length(resumed.since(stop.asked))),
                    None => "and never resumed".to_owned(),
                };
                let place = match self.is_open(&stop.target, *at) {
                    true => " inside its open transaction",
                    false => "",
                };
                Some(format!("{} was stopped {until}{place}.", actor(&stop.target)))
            }
            Event::Hold(hold) => {
                let (_, request) = self.facts.request(&hold.op)?;
                let until = hold.released.map_or("and never let go".to_owned(), |end| {
                    format!("for {}", length(end.since(*at)))
                });
                if hold.byte == 0 {
                    let until = hold.released.map_or("and never arrived", |_| until.as_str());
                    let holder = &request.holder;
                    return Some(format!(
                        "{holder} sent its write; all of it was held on its way {until}."
                    ));
                }
                let were = if hold.byte == 1 { "was" } else { "were" };
                Some(format!(
                    "{} sent its write; {} of it {were} let through, and the rest was held on its way {until}.",
                    request.holder,
                    count(usize::try_from(hold.byte).unwrap_or(usize::MAX), "byte")
                ))
            }
            Event::Withheld(answer) => {
                let (_, request) = self.facts.request(&answer.op)?;
                let holder = &request.holder;
                let committed = self.facts.run.exercise == Exercise::LostAnswers;
                Some(match (answer.by, committed) {
                    (Answerer::Database, false) => format!(
                        "{holder} sent its write, and its token passed the door; PostgreSQL had begun the resource's \
                         transaction, and its answer was held on its way."
                    ),
                    (Answerer::Database, true) => format!(
                        "{holder} sent its write; it was committed, and PostgreSQL's answer was held on its way."
                    ),
                    (Answerer::Resource, _) => format!(
                        "{holder} sent its write; it was committed and answered, and the answer was held on its way."
                    ),
                })
            }
            Event::Unanswered(lost) if self.facts.run.exercise == Exercise::LostAnswers => {
                let (_, request) = self.facts.request(&lost.op)?;
                Some(format!("{} was cut off without an answer.", request.holder))
            }
            Event::Uncommitted(commit) => {
                let (_, request) = self.facts.request(&commit.op)?;
                Some(format!(
                    "{} sent its write; it was made, and the resource's COMMIT was held on its way.",
                    request.holder
                ))
            }
            Event::Unstopped(one) => Some(format!(
                "{} was to be stopped and could not be, so that the run is void, as it must be.",
                actor(&one.target)
            )),
            Event::Unheard(one) => Some(format!(
                "A keepalive of {}'s came to lie unread in its socket.",
                one.holder
            )),
            Event::Queued(queued) => {
                let (_, request) = self.facts.request(&queued.op)?;
                let whose = match queued.target.as_str() {
                    "R" => "the resource's".to_owned(),
                    other => format!("{other}'s"),
                };
                Some(format!(
                    "{}'s write came to lie unread in {whose} socket.",
                    request.holder
                ))
            }
            Event::Restarted(again) if again.target.starts_with('H') => Some(format!(
                "{} was started again with what it had put on disk.",
                actor(&again.target)
            )),
            Event::Restarted(again) => Some(format!("{} was started again.", actor(&again.target))),
            Event::Killed(killed) => Some(format!("{} was killed.", actor(&killed.target))),
            Event::DbAnswer(answer) if self.facts.run.exercise == Exercise::CommitFailed => {
                let (_, request) = self.facts.request(answer.op.as_ref()?)?;
                // What follows in a failed transaction is only an echo.
                let state = answer.sqlstate.as_deref().filter(|state| *state != "25P02")?;
                let holder = &request.holder;
                Some(format!(
                    "A statement failed ({state}) in {holder}'s transaction, of which {holder} heard nothing."
                ))
            }
            Event::Started(started) => Some(format!("{} was started.", actor(&started.target))),
            Event::Answer(answer) if self.facts.said(&answer.op) == Some(Said::Deferred) => {
                let (_, request) = self.facts.request(&answer.op)?;
                Some(format!(
                    "{} sent its write; the resource accepted it, to make it later.",
                    request.holder
                ))
            }
            Event::Answer(answer) if self.facts.is_uncommitted(&answer.op) => {
                let (_, request) = self.facts.request(&answer.op)?;
                let words = Answered::of(self.facts, &answer.op, self.tokens).words;
                Some(format!(
                    "The COMMIT was let go, and {}'s write came to this: {words}.",
                    request.holder
                ))
            }
            Event::Answer(answer) if self.facts.is_repeated(&answer.op) => {
                let (_, request) = self.facts.request(&answer.op)?;
                Some(format!("{} sent its write and was answered.", request.holder))
            }
            _ => None,
        };
        let told = |one: &(usize, At, &Event)| Some((one.1, sentence(one)?));
        events.filter_map(told).collect()
    }
}
