//! What may go wrong, one thing at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::project::{Failure, Project, TODAY};
use super::proofs::of_proofs;

/// One thing that is wrong.
pub struct Fault {
    /// What, in words.
    pub name: String,
    /// The classes that must be named, and no others.
    pub classes: BTreeSet<String>,
    /// The day of the check.
    pub today: &'static str,
    spoil: Box<Spoil>,
}

type Spoil = dyn Fn(&Project) -> Result<(), Failure> + Send + Sync;

impl Fault {
    /// A copy of the project with this fault.
    ///
    /// # Errors
    ///
    /// When the copy cannot be made or has not what is to be spoilt.
    pub fn in_copy_of(&self, project: &Project) -> Result<Project, Failure> {
        let copy = project.again()?;
        (self.spoil)(&copy)?;
        Ok(copy)
    }
}

pub(super) const EVIDENCE: &str = "fence-evidence/evidence.json";
const REGISTER: &str = "risk-register.toml";
pub(super) const FENCED: &[&str] = &["paydb.account", "paydb.settlement"];
const WEBHOOK: &[&str] = &["paydb.webhook"];

/// Every fault that can be made in this project, whose evidence is good.
///
/// # Errors
///
/// When its evidence cannot be read.
pub fn faults(project: &Project) -> Result<Vec<Fault>, Failure> {
    let evidence: Value = serde_json::from_str(&fs::read_to_string(project.path().join(EVIDENCE))?)?;
    let mut faults = of_registers();
    faults.extend(of_age());
    faults.extend(of_files(project, &evidence)?);
    faults.extend(of_words(&evidence)?);
    faults.extend(of_proofs(project)?);
    Ok(faults)
}

pub(super) fn fault(
    name: impl Into<String>,
    classes: &[&str],
    spoil: impl Fn(&Project) -> Result<(), Failure> + Send + Sync + 'static,
) -> Fault {
    Fault {
        name: name.into(),
        classes: classes.iter().map(|class| (*class).to_owned()).collect(),
        today: TODAY,
        spoil: Box::new(spoil),
    }
}

pub(super) fn replace(project: &Project, file: &str, from: &str, to: &str) -> Result<(), Failure> {
    project.edit(file, |text| Ok(text.replacen(from, to, 1)))
}

fn of_registers() -> Vec<Fault> {
    let webhook = "[classes.\"paydb.webhook\"]\npurpose = \"correctness\"\nenforcement = ";
    vec![
        fault("the review of the webhook class is overdue", WEBHOOK, |project| {
            replace(
                project,
                REGISTER,
                "review_by = 2027-04-30",
                "review_by = 2026-11-28",
            )
        }),
        fault("the webhook class is off the register", WEBHOOK, |project| {
            project.edit(REGISTER, |text| {
                Ok(text.split("[[risk]]").next().unwrap_or_default().to_owned())
            })
        }),
        fault("there is no register", WEBHOOK, |project| {
            Ok(fs::remove_file(project.path().join(REGISTER))?)
        }),
        fault("the webhook class is called fenced", WEBHOOK, move |project| {
            let (from, to) = (format!("{webhook}\"advisory\""), format!("{webhook}\"fenced\""));
            replace(project, "fence.toml", &from, &to)
        }),
        fault(
            "the webhook class is called fenced and taken off the register",
            WEBHOOK,
            move |project| {
                fs::write(project.path().join(REGISTER), "")?;
                let (from, to) = (format!("{webhook}\"advisory\""), format!("{webhook}\"fenced\""));
                replace(project, "fence.toml", &from, &to)
            },
        ),
        fault(
            "the register names a class that does not exist",
            &["paydb.refund"],
            |project| {
                project.edit(REGISTER, |text| {
                    let (_, risk) = text.split_once("[[risk]]").ok_or("there is no risk")?;
                    Ok(format!(
                        "{text}\n[[risk]]{}",
                        risk.replace("paydb.webhook", "paydb.refund")
                    ))
                })
            },
        ),
    ]
}

fn of_age() -> Vec<Fault> {
    let dated = |day: &'static str| {
        move |project: &Project| {
            replace(
                project,
                EVIDENCE,
                &format!("\"started\": \"{TODAY}"),
                &format!("\"started\": \"{day}"),
            )
        }
    };
    let mut yesterday = fault("the check is made the day before the proof", FENCED, |_| Ok(()));
    yesterday.today = "2026-11-28";
    let mut later = fault("the check is made 31 days after the proof", FENCED, |_| Ok(()));
    later.today = "2026-12-30";
    vec![
        fault("there is no evidence", FENCED, |project| {
            Ok(fs::remove_dir_all(project.path().join("fence-evidence"))?)
        }),
        fault("the proof is dated tomorrow", FENCED, dated("2026-11-30")),
        fault(
            "the proof is dated in another century",
            FENCED,
            dated("2126-11-29"),
        ),
        fault("the proof is 31 days old", FENCED, dated("2026-10-29")),
        fault("the proof has no date", FENCED, dated("soon")),
        yesterday,
        later,
    ]
}

/// The last line is cut from each file in turn; each history is written otherwise, removed, exchanged for its twin, or cut and
/// listed so.
fn of_files(project: &Project, evidence: &Value) -> Result<Vec<Fault>, Failure> {
    let mut classes: BTreeMap<String, String> = BTreeMap::new();
    for scenario in scenarios(evidence)? {
        for half in halves(scenario) {
            let file = text_of(&scenario[half]["history"])?;
            classes.insert(file.to_owned(), text_of(&scenario["class"])?.to_owned());
        }
    }
    let mut faults = Vec::new();
    for item in fs::read_dir(project.path().join("fence-evidence"))? {
        let name = item?.file_name().to_string_lossy().into_owned();
        let path = format!("fence-evidence/{name}");
        let cut = move |text: &str| {
            let kept = text.trim_end().rfind('\n').map_or(0, |end| end + 1);
            text[..kept].to_owned()
        };
        let Some(class) = classes.get(&name) else {
            faults.push(fault(
                format!("the last line is cut from {name}"),
                FENCED,
                move |project| project.edit(&path, |text| Ok(cut(text))),
            ));
            continue;
        };
        let class = [class.as_str()];
        let file = path.clone();
        faults.push(fault(
            format!("the last line is cut from {name}"),
            &class,
            move |project| project.edit(&file, |text| Ok(cut(text))),
        ));
        let file = path.clone();
        let listed = name.clone();
        faults.push(fault(
            format!("the last line is cut from {name}, and its digest listed anew"),
            &class,
            move |project| {
                project.edit(&file, |text| Ok(cut(text)))?;
                relist(project, &listed)
            },
        ));
        let file = path.clone();
        // Every word of it is as it was: only the digest can tell.
        faults.push(fault(
            format!("{name} has one more space"),
            &class,
            move |project| project.edit(&file, |text| Ok(text.replacen(',', ", ", 1))),
        ));
        let file = path.clone();
        faults.push(fault(format!("{name} is missing"), &class, move |project| {
            Ok(fs::remove_file(project.path().join(&file))?)
        }));
        let twin = match name.strip_suffix(".on.jsonl") {
            // A control has no twin: another's stands for it.
            Some(scenario) if !classes.contains_key(&format!("{scenario}.defeated.jsonl")) => {
                "S02.on.jsonl".into()
            }
            Some(scenario) => format!("{scenario}.defeated.jsonl"),
            None => name.replace(".defeated.jsonl", ".on.jsonl"),
        };
        faults.push(fault(
            format!("{name} is its twin, and its digest listed anew"),
            &class,
            move |project| {
                let folder = project.path().join("fence-evidence");
                fs::copy(folder.join(&twin), folder.join(&name))?;
                relist(project, &name)
            },
        ));
    }
    Ok(faults)
}

/// Words of evidence.json that its histories do not bear out.
fn of_words(evidence: &Value) -> Result<Vec<Fault>, Failure> {
    let mut faults = Vec::new();
    for scenario in scenarios(evidence)? {
        let id = text_of(&scenario["id"])?;
        let class = [text_of(&scenario["class"])?];
        let history = text_of(&scenario["on"]["history"])?;
        let refusal = &scenario["on"]["refusal"];
        // Only a stale one has both numbers, and one at the door has no code of the database's.
        for number in ["presented", "seen"] {
            let Some(old) = refusal[number].as_str() else {
                continue;
            };
            let (from, to) = (
                format!("\"{number}\": \"{old}\""),
                format!("\"{number}\": \"{}\"", old.parse::<u64>()? + 1),
            );
            let anchor = format!("\"{history}\"");
            faults.push(fault(
                format!("the number {number} of {id}'s refusal is one higher"),
                &class,
                move |project| after(project, &anchor, &from, &to),
            ));
        }
        if !refusal.is_null() {
            let anchor = format!("\"{history}\"");
            let code = format!("\"sqlstate\": {}", refusal["sqlstate"]);
            faults.push(fault(
                format!("another code of {id}'s refusal"),
                &class,
                move |project| after(project, &anchor, &code, "\"sqlstate\": \"ZF002\""),
            ));
        }
        // S07 stops nothing: it holds bytes.
        if scenario["stops"]
            .as_array()
            .is_some_and(|stops| !stops.is_empty())
        {
            let anchor = format!("\"{history}\"");
            faults.push(fault(
                format!("another CPU time at a stop of {id}"),
                &class,
                move |project| after(project, &anchor, "\"cpu_before\": ", "\"cpu_before\": 1"),
            ));
        }
        let histories = halves(scenario)
            .iter()
            .map(|half| text_of(&scenario[half]["history"]));
        let all = histories.map(|history| Ok(history?.to_owned()));
        let all: Vec<String> = all.collect::<Result<_, Failure>>()?;
        // A void run expects none.
        let outcome = scenario["on"]["outcome"].clone();
        if !outcome.is_null() {
            // All else that is said of it stays true: only the verdict is no longer borne out.
            faults.push(fault(
                format!("the halves of {id} expected another outcome, and their digests are listed anew"),
                &class,
                move |project| {
                    for history in &all {
                        let file = format!("fence-evidence/{history}");
                        project.edit(&file, |text| {
                            let (before, rest) = text
                                .split_once("\"expected\":\"")
                                .ok_or("no outcome is expected")?;
                            let (old, rest) = rest.split_at_checked(3).ok_or("no outcome is expected")?;
                            let other = if old == "CON" { "REF" } else { "CON" };
                            Ok(format!("{before}\"expected\":\"{other}{rest}"))
                        })?;
                        relist(project, history)?;
                    }
                    Ok(())
                },
            ));
        }
        let verdict = text_of(&scenario["verdict"])?.to_owned();
        let anchor = format!("\"id\": \"{id}\"");
        let claimed = anchor.clone();
        faults.push(fault(
            format!("another outcome of {id}"),
            &class,
            move |project| {
                let from = format!("\"outcome\": {outcome}");
                let other = if outcome == "UNK" { "REF" } else { "UNK" };
                after(project, &claimed, &from, &format!("\"outcome\": \"{other}\""))
            },
        ));
        faults.push(fault(
            format!("{id} is said to be violated"),
            &class,
            move |project| {
                after(
                    project,
                    &anchor,
                    &format!("\"verdict\": \"{verdict}\""),
                    "\"verdict\": \"violated\"",
                )
            },
        ));
    }
    faults.push(fault("another seed", FENCED, |project| {
        replace(project, EVIDENCE, "\"seed\": 7", "\"seed\": 8")
    }));
    faults.push(fault("a form of evidence that is not known", FENCED, |project| {
        replace(project, EVIDENCE, "\"schema\": 2", "\"schema\": 3")
    }));
    Ok(faults)
}

/// Replaces the first `from` after `anchor` in evidence.json.
fn after(project: &Project, anchor: &str, from: &str, to: &str) -> Result<(), Failure> {
    project.edit(EVIDENCE, |text| {
        let (before, rest) = text
            .split_once(anchor)
            .ok_or(format!("evidence.json has no {anchor}"))?;
        Ok(format!("{before}{anchor}{}", rest.replacen(from, to, 1)))
    })
}

/// Lists a history with the digest that it has now, as somebody who covers up would.
fn relist(project: &Project, history: &str) -> Result<(), Failure> {
    let bytes = fs::read(project.path().join("fence-evidence").join(history))?;
    let digest = hex::encode(Sha256::digest(&bytes));
    project.edit(EVIDENCE, |text| {
        let anchor = format!("\"{history}\"");
        let (before, rest) = text
            .split_once(&anchor)
            .ok_or(format!("evidence.json has no {anchor}"))?;
        let old = rest.split('"').nth(3).ok_or("no digest is listed")?;
        Ok(format!("{before}{anchor}{}", rest.replacen(old, &digest, 1)))
    })
}

fn scenarios(evidence: &Value) -> Result<&Vec<Value>, Failure> {
    evidence["scenarios"]
        .as_array()
        .ok_or_else(|| "evidence.json has no scenarios".into())
}

/// The halves that a scenario has.
fn halves(scenario: &Value) -> &'static [&'static str] {
    match scenario["defeated"].is_null() {
        true => &["on"],
        false => &["on", "defeated"],
    }
}

fn text_of(value: &Value) -> Result<&str, Failure> {
    value.as_str().ok_or_else(|| format!("{value} is no text").into())
}
