//! One scenario, judged again.

use std::io::BufReader;

use sha2::{Digest, Sha256};

use super::bundle::Bundle;
use super::doubt::{Doubt, DoubtKind};
use super::header::differences;
use crate::evidence::{HistoryFile, RefusalSeen, ScenarioEvidence, StopEvidence, Verdict};
use crate::history::{Event, GuardForm, Half, History, Stop};
use crate::run::{Judged, assemble};
use crate::stopper::StoppedBy;

/// The verdict that the histories bear out, unless something is doubtful, and what is.
pub(super) fn judge_again(bundle: &Bundle, claimed: &ScenarioEvidence) -> (Option<Verdict>, Vec<Doubt>) {
    let mut review = Review {
        bundle,
        claimed,
        doubts: Vec::new(),
    };
    let on = review.half(Half::Guarded, claimed.on.as_ref().map(|half| &half.history));
    let twin = claimed.defeated.as_ref().map(|half| &half.history);
    match (claimed.id.is_control(), twin) {
        (false, twin) => {
            let twin = review.half(Half::Defeated, twin);
            if let (Some(on), Some(twin)) = (on, twin) {
                review.same_schedule(&on, &twin);
                review.judge(vec![on, twin]);
            }
        }
        (true, None) => review.judge(Vec::from_iter(on)),
        (true, Some(file)) => {
            let line = review.bundle.lines.of(&[&quoted("history", &file.history)]);
            review.say(line, DoubtKind::TwinOfControl);
        }
    }
    let verdict = review.doubts.is_empty().then_some(claimed.verdict);
    (verdict, review.doubts)
}

/// A history that could be read, and the file that it stands in.
struct Found {
    history: History,
    file: HistoryFile,
}

struct Review<'a> {
    bundle: &'a Bundle,
    claimed: &'a ScenarioEvidence,
    doubts: Vec<Doubt>,
}

impl Review<'_> {
    /// Reads a half's history and looks whether it is the one that is meant.
    fn half(&mut self, half: Half, file: Option<&HistoryFile>) -> Option<Found> {
        let Some(file) = file else {
            let line = self.bundle.lines.of_scenario(self.claimed);
            self.say(line, DoubtKind::HalfMissing { half: name(half) });
            return None;
        };
        let history = self.read(file)?;
        let run = history.run();
        let listed = self.bundle.evidence.classes.iter();
        let form = listed.filter(|listed| listed.name == self.claimed.class);
        let form = form.map(|listed| format!("{:?}", GuardForm::from(listed.guard)));
        let said = [
            ("the guard's form", form.collect(), format!("{:?}", run.guard)),
            ("the scenario", self.claimed.id.to_string(), run.scenario.clone()),
            ("the class", self.claimed.class.to_string(), run.class.clone()),
            ("the half", name(half).to_owned(), name(run.half).to_owned()),
            (
                "the seed",
                self.bundle.evidence.seed.to_string(),
                run.seed.clone(),
            ),
        ];
        for (field, claimed, found) in said {
            if claimed != found {
                self.say_of(file, Some(1), DoubtKind::differs(field, claimed, found));
            }
        }
        for (field, demanded, found) in differences(self.claimed.id, &history) {
            let kind = DoubtKind::Header {
                field,
                demanded,
                found,
            };
            self.say_of(file, Some(1), kind);
        }
        self.stops(half, file, &history);
        Some(Found {
            history,
            file: file.clone(),
        })
    }

    fn read(&mut self, file: &HistoryFile) -> Option<History> {
        let listed = self.bundle.lines.of(&[&quoted("history", &file.history)]);
        let bare = std::path::Path::new(&file.history).file_name();
        if bare.is_none_or(|bare| bare != file.history.as_str()) {
            let name = file.history.clone();
            self.say(listed, DoubtKind::NoFileName { name });
            return None;
        }
        let bytes = match std::fs::read(self.bundle.folder.join(&file.history)) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.say_of(file, None, DoubtKind::Read(error));
                return None;
            }
        };
        let found = hex::encode(Sha256::digest(&bytes));
        if found != file.sha256 {
            let listed = file.sha256.clone();
            self.say_of(file, None, DoubtKind::Digest { listed, found });
        }
        match History::read(BufReader::new(bytes.as_slice())) {
            Ok(history) => Some(history),
            Err(error) => {
                self.say_of(file, Some(error.line()), DoubtKind::Malformed(error));
                None
            }
        }
    }

    /// A pair shares everything that was not left to the guard.
    fn same_schedule(&mut self, on: &Found, defeated: &Found) {
        let (guarded, twin) = (on.history.run(), defeated.history.run());
        let shared = [
            (
                "the guard's form",
                format!("{:?}", guarded.guard),
                format!("{:?}", twin.guard),
            ),
            (
                "what it went through",
                format!("{:?}", guarded.exercise),
                format!("{:?}", twin.exercise),
            ),
            (
                "the attempts and what is expected of them",
                format!("{:?}", guarded.attempts),
                format!("{:?}", twin.attempts),
            ),
            (
                "the bounds",
                format!("{:?}", guarded.bounds),
                format!("{:?}", twin.bounds),
            ),
            ("the deed", guarded.deed.clone(), twin.deed.clone()),
        ];
        for (field, claimed, found) in shared {
            if claimed != found {
                let kind = DoubtKind::differs(format!("{field} of the guarded half"), claimed, found);
                self.say_of(&defeated.file, Some(1), kind);
            }
        }
    }

    /// Judges the halves and compares every word of `evidence.json` on them.
    fn judge(&mut self, halves: Vec<Found>) {
        if halves.is_empty() {
            return;
        }
        let (id, class) = (self.claimed.id, &self.claimed.class);
        let halves = halves.into_iter();
        let halves = halves.map(|found| (Judged::again(found.history), found.file));
        let again = assemble(id, class, halves.collect());
        if let (Some(claimed), Some(found)) = (&self.claimed.on, &again.on) {
            let history = quoted("history", &claimed.history.history);
            let line = |review: &Self, part: &str| {
                let lines = &review.bundle.lines;
                lines.of(&[&history, part]).or_else(|| lines.of(&[&history]))
            };
            if claimed.outcome != found.outcome {
                let kind = DoubtKind::differs("the outcome", shown(&claimed.outcome), shown(&found.outcome));
                self.say(line(self, ""), kind);
            }
            for (field, claimed, found) in refusals(claimed.refusal.as_ref(), found.refusal.as_ref()) {
                if claimed != found {
                    let at = line(self, &format!("\"{field}\":"));
                    let kind = DoubtKind::differs(format!("the refusal's {field}"), claimed, found);
                    self.say(at, kind);
                }
            }
            if claimed.violated != found.violated {
                let (claimed, found) = (broken(&claimed.violated), broken(&found.violated));
                self.say(line(self, ""), DoubtKind::differs("what broke", claimed, found));
            }
        }
        if let (Some(claimed), Some(found)) = (&self.claimed.defeated, &again.defeated) {
            let line = self
                .bundle
                .lines
                .of(&[&quoted("history", &claimed.history.history)]);
            if claimed.violated != found.violated {
                let (claimed, found) = (broken(&claimed.violated), broken(&found.violated));
                let kind = DoubtKind::differs("what broke without the guard", claimed, found);
                self.say(line, kind);
            }
            if claimed.corruption != found.corruption {
                let (claimed, found) = (shown(&claimed.corruption), shown(&found.corruption));
                self.say(line, DoubtKind::differs("the corruption", claimed, found));
            }
        }
        // A half that was over before its end is inconclusive for a reason that stands in no history.
        let given_up = self.claimed.verdict == Verdict::Inconclusive
            && matches!(again.verdict, Verdict::Proven | Verdict::Held);
        if self.claimed.verdict != again.verdict && !given_up {
            let line = self.bundle.lines.of_scenario(self.claimed);
            self.say(
                line,
                DoubtKind::Verdict {
                    claimed: self.claimed.verdict,
                    found: again.verdict,
                    why: again.why,
                },
            );
        }
    }

    /// The stops that are listed are those in the history.
    fn stops(&mut self, half: Half, file: &HistoryFile, history: &History) {
        let listed = self.claimed.stops.iter();
        let mut listed: Vec<String> = listed
            .filter(|stop| stop.half == short(half))
            .map(listed_stop)
            .collect();
        let seen = history.events().filter_map(|(_, _, event)| match event {
            Event::Stop(stop) => Some(seen_stop(stop)),
            _ => None,
        });
        let mut seen: Vec<String> = seen.collect();
        listed.sort();
        seen.sort();
        if listed != seen {
            let line = self
                .bundle
                .lines
                .of(&[&quoted("history", &file.history), "\"stops\":"]);
            let kind = DoubtKind::differs("its stops", listed.join("; "), seen.join("; "));
            self.say(line, kind);
        }
    }

    /// Doubts something in `evidence.json`.
    fn say(&mut self, line: Option<usize>, kind: DoubtKind) {
        let doubt = self.bundle.doubt(Some(self.claimed.id), line, kind);
        self.doubts.push(doubt);
    }

    /// Doubts a history.
    fn say_of(&mut self, file: &HistoryFile, line: Option<usize>, kind: DoubtKind) {
        self.doubts.push(Doubt {
            scenario: Some(self.claimed.id),
            file: self.bundle.folder.join(&file.history),
            line,
            kind,
        });
    }
}

type Field = (&'static str, String, String);

fn refusals(claimed: Option<&RefusalSeen>, found: Option<&RefusalSeen>) -> [Field; 4] {
    let field = |name, of: fn(&RefusalSeen) -> Option<String>| {
        let shown = |refusal: Option<&RefusalSeen>| shown(&refusal.and_then(of));
        (name, shown(claimed), shown(found))
    };
    [
        field("presented", |refusal| {
            refusal.presented.map(|token| token.to_string())
        }),
        field("seen", |refusal| refusal.seen.map(|token| token.to_string())),
        field("sqlstate", |refusal| refusal.sqlstate.clone()),
        field("status", |refusal| {
            refusal.status.map(|status| status.to_string())
        }),
    ]
}

fn listed_stop(stop: &StopEvidence) -> String {
    let cpu = (stop.cpu_before, stop.cpu_after);
    stop_in_words(&stop.target, stop.pid, stop.tasks as u64, cpu, stop.by)
}

fn seen_stop(stop: &Stop) -> String {
    let cpu = (stop.cpu_before, stop.cpu_after);
    stop_in_words(&stop.target, stop.pid, stop.tasks.into(), cpu, stop.by)
}

fn stop_in_words(target: &str, pid: u32, tasks: u64, (before, after): (u64, u64), by: StoppedBy) -> String {
    let by = by.as_str();
    format!("{target} (pid {pid}, {tasks} tasks, cpu {before} to {after} ns, by {by})")
}

fn broken(violated: &Option<Vec<crate::evidence::InvariantBroken>>) -> String {
    let all = violated.iter().flatten();
    let all: Vec<String> = all
        .map(|broken| format!("{} ({}, lines {:?})", broken.name, broken.why, broken.lines))
        .collect();
    match all.is_empty() {
        true => "nothing".to_owned(),
        false => all.join("; "),
    }
}

fn shown(value: &Option<String>) -> String {
    value.clone().unwrap_or_else(|| "nothing".to_owned())
}

fn quoted(name: &str, value: &str) -> String {
    format!("\"{name}\": \"{value}\"")
}

fn name(half: Half) -> &'static str {
    match half {
        Half::Guarded => "guarded",
        Half::Defeated => "defeated",
    }
}

fn short(half: Half) -> &'static str {
    match half {
        Half::Guarded => "on",
        Half::Defeated => "defeated",
    }
}
