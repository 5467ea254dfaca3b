//! The evidence of a run, and the histories beside it.

use std::collections::BTreeMap;

use fence_core::{ClassName, Token};
use sha2::{Digest, Sha256};

use super::pair::{Judged, verdict};
use crate::evidence::{
    ClassEvidence, DefeatedHalf, Evidence, GuardDigest, GuardedHalf, HistoryFile, RefusalSeen, SCHEMA,
    ScenarioEvidence, Verdict,
};
use crate::history::{Half as HalfKind, History, TokenNumber};
use crate::plan::Plan;
use crate::scenario::ScenarioId;
use crate::schedule::Slot;
use crate::services::{Nginx, Services};
use crate::target::Proxy;
use crate::timeline::Drawing;

/// What a run found.
#[derive(Debug)]
pub struct Report {
    /// What goes into `evidence.json`.
    pub evidence: Evidence,
    /// The histories that it names.
    pub histories: Vec<HistoryText>,
    prefixed: bool,
}

/// One history as a file.
#[derive(Debug)]
pub struct HistoryText {
    /// The file's name.
    pub name: String,
    /// Its JSON lines.
    pub text: Vec<u8>,
}

impl Report {
    /// The run, ready to be drawn.
    pub fn drawing(&self) -> Drawing {
        let histories = self.histories.iter().filter_map(|history| {
            let read = History::read(history.text.as_slice()).ok()?;
            Some((history.name.clone(), read))
        });
        Drawing::new(self.evidence.clone(), histories.collect())
    }

    pub(super) fn begin(plan: &Plan, services: &Services) -> Report {
        let slots = plan.schedule.slots();
        // A scenario's name is enough for a file's, until two classes go through the same one.
        let prefixed = slots
            .iter()
            .enumerate()
            .any(|(index, slot)| slots[..index].iter().any(|other| other.scenario == slot.scenario));
        Report {
            evidence: Evidence {
                schema: SCHEMA,
                seed: plan.schedule.seed(),
                schedule: plan.schedule.digest(),
                started: plan.started.clone(),
                again: Some(plan.again.clone()),
                versions: versions(plan, services),
                transport: plan.transport,
                guard: GuardDigest {
                    sha256: plan.guard_sha256.clone(),
                },
                classes: Vec::new(),
                scenarios: Vec::new(),
            },
            histories: Vec::new(),
            prefixed,
        }
    }

    pub(super) fn add(&mut self, slot: &Slot, halves: Vec<Judged>) -> &ScenarioEvidence {
        let kept = halves
            .into_iter()
            .map(|half| {
                let history = self.keep(slot, &half);
                (half, history)
            })
            .collect();
        let scenario = assemble(slot.scenario, &slot.class, kept);
        self.evidence.scenarios.push(scenario);
        self.evidence.scenarios.last().expect("just pushed")
    }

    pub(super) fn end(mut self, plan: &Plan) -> Report {
        let scenarios = &mut self.evidence.scenarios;
        scenarios.sort_by(|one, other| (&one.class, one.id).cmp(&(&other.class, other.id)));
        for class in &plan.classes {
            let of_class = scenarios.iter().filter(|scenario| scenario.class == class.name);
            let worst = of_class.map(|scenario| scenario.verdict).max();
            self.evidence.classes.push(ClassEvidence {
                name: class.name.clone(),
                guard: class.guard,
                verdict: worst.unwrap_or(Verdict::Inconclusive),
                proven_by: Some(class.proven_by.clone()),
            });
        }
        self
    }

    fn keep(&mut self, slot: &Slot, half: &Judged) -> HistoryFile {
        let half_name = match half.half {
            HalfKind::Guarded => "on",
            HalfKind::Defeated => "defeated",
        };
        let name = match self.prefixed {
            false => format!("{}.{half_name}.jsonl", slot.scenario),
            true => format!("{}.{}.{half_name}.jsonl", slot.class, slot.scenario),
        };
        let mut text = Vec::new();
        half.history
            .write(&mut text)
            .expect("writing to memory does not fail");
        let sha256 = hex::encode(Sha256::digest(&text));
        self.histories.push(HistoryText {
            name: name.clone(),
            text,
        });
        HistoryFile {
            history: name,
            sha256,
        }
    }
}

/// What the halves of one scenario show together, each with the file that its history stands in.
pub(crate) fn assemble(
    id: ScenarioId,
    class: &ClassName,
    halves: Vec<(Judged, HistoryFile)>,
) -> ScenarioEvidence {
    let (verdict, why) = verdict(id, halves.iter().map(|(half, _)| half));
    let mut scenario = ScenarioEvidence {
        id,
        class: class.clone(),
        verdict,
        why,
        on: None,
        defeated: None,
        stops: Vec::new(),
    };
    for (half, history) in halves {
        let broken = half.broken();
        let violated = (!broken.is_empty()).then_some(broken);
        match half.half {
            HalfKind::Guarded => {
                let refusal = half.judgement.refusal.as_ref();
                scenario.on = Some(GuardedHalf {
                    outcome: half.judgement.outcome(),
                    violated,
                    history,
                    refusal: refusal.map(|refusal| RefusalSeen {
                        presented: refusal.presented.and_then(token),
                        seen: refusal.seen.and_then(token),
                        sqlstate: refusal.sqlstate.clone(),
                        status: refusal.status,
                    }),
                });
            }
            HalfKind::Defeated => {
                scenario.defeated = Some(DefeatedHalf {
                    violated,
                    corruption: half.judgement.corruption.clone(),
                    history,
                });
            }
        }
        scenario.stops.extend(half.stops);
    }
    scenario
}

fn token(number: TokenNumber) -> Option<Token> {
    Token::new(number.number()).ok()
}

fn versions(plan: &Plan, services: &Services) -> BTreeMap<String, String> {
    let mut versions = plan.versions.clone();
    if let Some(postgres) = services.postgres() {
        versions.insert("postgres".to_owned(), postgres.version().to_owned());
    }
    if let Some(etcd) = services.etcds().first() {
        versions.insert("etcd".to_owned(), etcd.version().to_owned());
    }
    if let (Some(Proxy::Nginx), Ok(nginx)) = (plan.transport.through, Nginx::installed()) {
        versions.insert("nginx".to_owned(), nginx);
    }
    if let Ok(kernel) = std::fs::read_to_string("/proc/sys/kernel/osrelease") {
        versions.insert("kernel".to_owned(), kernel.trim().to_owned());
    }
    versions
}
