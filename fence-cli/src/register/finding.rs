//! What is not in order, in words: the class, the place, and the next step.

use std::path::{Path, PathBuf};

use fence_core::{ClassName, Day, Disorder, ProofOutcome};
use pause_kit::timeline;
use serde::Serialize;

use super::calendar::written;
use super::evidence::{Nothing, Seen, Something};
use super::file::{RegisterFile, RiskLines};
use super::now::Now;
use crate::config::{Manifest, Step};
use crate::exit;

/// Something that is not in order.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    /// The class.
    pub(super) class: ClassName,
    /// The file to look at.
    pub(super) file: PathBuf,
    /// The line in it, from 1, where there is one.
    pub(super) line: Option<usize>,
    /// What is not in order.
    pub(super) what: String,
    /// What to run or change.
    pub(super) next: String,
}

/// What findings are told from.
pub(super) struct Ground<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) register: &'a RegisterFile,
    pub(super) seen: &'a Seen,
    pub(super) now: &'a Now,
    pub(super) today: Day,
}

const PROVE: &str = "run `fence prove`";

/// Every finding, in the order of the classes.
pub(super) fn findings(ground: &Ground<'_>, disorders: Vec<(ClassName, Disorder)>) -> Vec<Finding> {
    let other_guard = disorders
        .iter()
        .any(|(_, disorder)| matches!(disorder, Disorder::OtherGuard { .. }));
    let mut found: Vec<Finding> = disorders
        .into_iter()
        .filter_map(|(class, disorder)| ground.told(class, disorder))
        .collect();
    if let Seen::Something(something) = ground.seen {
        found.extend(ground.doubts(something));
        found.extend(ground.guard_forms(something));
        found.extend(ground.changes(something));
        if !other_guard {
            found.extend(ground.guards(something));
        }
        if something.doubts.values().all(Vec::is_empty) {
            found.extend(page(something));
        }
    }
    found.sort_by(|one, other| one.class.cmp(&other.class));
    found
}

impl Ground<'_> {
    /// A disorder in words. Nothing for what the doubts tell better.
    fn told(&self, class: ClassName, disorder: Disorder) -> Option<Finding> {
        let today = written(self.today);
        let (place, what, next) = match disorder {
            Disorder::NoDemand => (
                self.declared(&class, &["enforcement"]),
                "it is called fenced, and nothing says how that is proven".to_owned(),
                format!("write its guard and [classes.\"{class}\".proof] and {PROVE}, or call it advisory"),
            ),
            Disorder::NoProof => match self.seen {
                Seen::Nothing(Nothing { file, line, what }) => (
                    (file.clone(), *line),
                    format!("there is no proof of it: {what}"),
                    PROVE.to_owned(),
                ),
                Seen::Something(something) => (
                    (something.bundle.file(), something.bundle.line_of("classes")),
                    "there is no proof of it: the evidence does not speak of it".to_owned(),
                    PROVE.to_owned(),
                ),
            },
            Disorder::FromTheFuture { made_on } => (
                self.evidence("started"),
                format!("its proof is dated {}, and today is {today}", written(made_on)),
                format!("look at the clock of the machine that proved it, then {PROVE}"),
            ),
            Disorder::Stale { age, max_age } => (
                self.evidence("started"),
                format!("its proof is {age} old, and may be {max_age} old"),
                PROVE.to_owned(),
            ),
            Disorder::OtherGuard { proven, now } => {
                let (folder, place) = self.guard_sql(&class);
                let what = format!(
                    "{folder} is not the guard that was proven: its SHA-256 is {now}, proven was {proven}"
                );
                (place, what, format!("{PROVE}, or put the proven SQL back"))
            }
            Disorder::ScenarioMissing { scenario } => (
                self.scenario(&class, &scenario),
                format!("{scenario} is declared for it, and the evidence does not have it"),
                PROVE.to_owned(),
            ),
            Disorder::OnlyControls => (
                self.declared(&class, &["proof", "scenarios"]),
                "only controls were run, which prove nothing by themselves".to_owned(),
                format!("declare a scenario that has a twin, then {PROVE}"),
            ),
            Disorder::NotProven {
                outcome: ProofOutcome::NotBorneOut,
                ..
            } => return None,
            Disorder::NotProven { scenario, outcome } => {
                let verdict = match outcome {
                    ProofOutcome::Violated => "violated",
                    _ => "inconclusive",
                };
                let (place, why) = self.listed(&class, &scenario);
                let next =
                    format!("run `fence prove --class {class} --scenario {scenario}` and read what it says");
                (place, format!("{scenario} is {verdict}{why}"), next)
            }
            Disorder::NotOnRegister => (
                self.declared(&class, &["enforcement"]),
                "a double holder corrupts, nothing refuses it, and it is not on the register".to_owned(),
                format!(
                    "fence it, or write a [[risk]] for it into {}",
                    self.register.path.display()
                ),
            ),
            Disorder::ReviewPassed { review_by } => (
                self.risk(&class, |lines| lines.review_by),
                format!(
                    "its review was due by {}, and today is {today}",
                    written(review_by)
                ),
                "review it with its owner, then set accepted_on and review_by anew".to_owned(),
            ),
            Disorder::AcceptedInTheFuture { accepted_on } => (
                self.risk(&class, |lines| lines.accepted_on),
                format!(
                    "its risk was accepted on {}, and today is {today}",
                    written(accepted_on)
                ),
                "correct accepted_on".to_owned(),
            ),
            Disorder::Unknown => (
                self.risk(&class, |lines| lines.class),
                "it is on the register, and fence.toml declares no such class".to_owned(),
                "correct its name, or take it off the register".to_owned(),
            ),
            Disorder::RegisteredThoughFenced => (
                self.risk(&class, |lines| lines.class),
                "it is on the register, and fence.toml calls it fenced".to_owned(),
                "take it off the register once it is proven, or call it advisory".to_owned(),
            ),
            Disorder::RegisteredThoughEfficiency => (
                self.risk(&class, |lines| lines.class),
                "it is on the register, and a double holder of it only wastes work".to_owned(),
                "take it off the register, or correct its purpose".to_owned(),
            ),
        };
        let (file, line) = place;
        Some(Finding {
            class,
            file,
            line,
            what,
            next,
        })
    }

    /// What the histories do not bear out.
    fn doubts(&self, something: &Something) -> Vec<Finding> {
        let classes = something.doubts.iter();
        let all = classes.flat_map(|(class, doubts)| doubts.iter().map(move |doubt| (class, doubt)));
        all.map(|(class, doubt)| {
            let scenario = doubt.scenario.map(|id| format!("{id}: ")).unwrap_or_default();
            Finding {
                class: class.clone(),
                file: doubt.file.clone(),
                line: doubt.line,
                what: format!("{scenario}{}", exit::chain(&doubt.kind)),
                next: format!("believe nothing of it; {PROVE}"),
            }
        })
        .collect()
    }

    /// Classes that were proven with another form of guard than fence.toml now gives them.
    fn guard_forms(&self, something: &Something) -> Vec<Finding> {
        let listed = something.bundle.evidence().classes.iter();
        let other = listed.filter_map(|listed| {
            let guard = self.manifest.classes.get(&listed.name)?.guard?;
            (guard != listed.guard).then(|| {
                let (file, line) = self.declared(&listed.name, &["guard"]);
                let form = |guard| format!("{guard:?}").to_lowercase();
                let (proven, now) = (form(listed.guard), form(guard));
                Finding {
                    class: listed.name.clone(),
                    file,
                    line,
                    what: format!("it was proven with the {proven} guard, and has the {now} guard"),
                    next: PROVE.to_owned(),
                }
            })
        });
        other.collect()
    }

    /// Classes of which something else is declared now than when they were proven.
    fn changes(&self, something: &Something) -> Vec<Finding> {
        let evidence = something.bundle.evidence();
        let mut found = Vec::new();
        for class in something.proofs.keys() {
            let Some(now) = self.now.of.get(class) else {
                continue;
            };
            let Some(proven) = evidence.proven_by(class) else {
                found.push(self.finding(
                    class,
                    self.evidence("classes"),
                    "the evidence does not say how it was proven, so that nobody can tell what has changed since"
                        .to_owned(),
                ));
                continue;
            };
            let defeat_sql = (proven.defeat_sql != now.defeat_sql).then_some("defeat SQL");
            let declared = (proven.declared != now.declared).then_some("fence.toml");
            let changed: Vec<&str> = defeat_sql.into_iter().chain(declared).collect();
            if !changed.is_empty() {
                let what = changed.join(", ");
                found.push(self.finding(
                    class,
                    self.declared(class, &["proof"]),
                    format!("how it is proven has changed since the proof: {what}"),
                ));
            }
        }
        found
    }

    /// A digest of all guards that is not that of the classes' own: each class is named.
    fn guards(&self, something: &Something) -> Vec<Finding> {
        let proven = &something.bundle.evidence().guard.sha256;
        let now = &self.now.guards;
        if proven == now {
            return Vec::new();
        }
        let what = format!("the SHA-256 of all guards is {now}; listed is {proven}");
        let classes = something
            .proofs
            .keys()
            .filter(|class| self.now.of.contains_key(*class));
        classes
            .map(|class| self.finding(class, self.evidence("guard"), what.clone()))
            .collect()
    }

    /// A finding that a new proof ends.
    fn finding(&self, class: &ClassName, place: (PathBuf, Option<usize>), what: String) -> Finding {
        let (file, line) = place;
        Finding {
            class: class.clone(),
            file,
            line,
            what,
            next: PROVE.to_owned(),
        }
    }

    fn declared(&self, class: &ClassName, way: &[&str]) -> (PathBuf, Option<usize>) {
        let mut steps = vec![Step::Key("classes".to_owned()), Step::Key(class.to_string())];
        steps.extend(way.iter().map(|key| Step::Key((*key).to_owned())));
        self.in_manifest(&steps)
    }

    fn scenario(&self, class: &ClassName, scenario: &str) -> (PathBuf, Option<usize>) {
        let mut steps: Vec<Step> = ["classes", class.as_str(), "proof", "scenarios"]
            .iter()
            .map(|key| Step::Key((*key).to_owned()))
            .collect();
        let proof = self
            .manifest
            .classes
            .get(class)
            .and_then(|class| class.proof.as_ref());
        let declared = proof.map(|proof| proof.scenarios.as_slice()).unwrap_or_default();
        let place = declared.iter().position(|declared| declared.as_str() == scenario);
        steps.extend(place.map(Step::Index));
        self.in_manifest(&steps)
    }

    fn in_manifest(&self, steps: &[Step]) -> (PathBuf, Option<usize>) {
        let (file, line) = self.manifest.place(steps);
        (file.to_owned(), Some(line))
    }

    fn risk(&self, class: &ClassName, line: fn(RiskLines) -> usize) -> (PathBuf, Option<usize>) {
        let lines = self.register.lines_of(class);
        (self.register.path.clone(), lines.map(line))
    }

    fn evidence(&self, member: &str) -> (PathBuf, Option<usize>) {
        match self.seen {
            Seen::Something(something) => (something.bundle.file(), something.bundle.line_of(member)),
            Seen::Nothing(nothing) => (nothing.file.clone(), nothing.line),
        }
    }

    /// Where a scenario's verdict stands, and why it is that.
    fn listed(&self, class: &ClassName, scenario: &str) -> ((PathBuf, Option<usize>), String) {
        let Seen::Something(something) = self.seen else {
            return (self.evidence("scenarios"), String::new());
        };
        let bundle = &something.bundle;
        let all = bundle.evidence().scenarios.iter();
        let mut listed = all.filter(|one| one.class == *class && one.id.as_str() == scenario);
        let Some(listed) = listed.next() else {
            return (self.evidence("scenarios"), String::new());
        };
        let why = listed.why.iter().map(|why| format!(", because {why}"));
        ((bundle.file(), bundle.line_of_scenario(listed)), why.collect())
    }

    /// The folder of the class's guard, and where fence.toml names it.
    fn guard_sql(&self, class: &ClassName) -> (String, (PathBuf, Option<usize>)) {
        let proof = self
            .manifest
            .classes
            .get(class)
            .and_then(|class| class.proof.as_ref());
        let Some(proof) = proof else {
            return (String::new(), self.declared(class, &[]));
        };
        let steps = ["targets", proof.target.as_str(), "guard_sql"].map(|key| Step::Key(key.to_owned()));
        let folder = self.manifest.targets.get(&proof.target);
        let folder = folder.map(|target| shortened(&target.guard_sql, &self.manifest.folder));
        (folder.unwrap_or_default(), self.in_manifest(&steps))
    }
}

/// A page beside the evidence that is not whole, or of other evidence: each class whose proof it would picture is named.
fn page(something: &Something) -> Vec<Finding> {
    let bundle = &something.bundle;
    let what = match timeline::is_whole_beside(bundle) {
        Ok(true) => return Vec::new(),
        Ok(false) => "it is not the whole page of this evidence".to_owned(),
        Err(error) => format!("it cannot be read: {}", exit::chain(&error)),
    };
    let file = bundle.file().with_file_name(timeline::FILE);
    let folder = file.parent().unwrap_or(Path::new("."));
    let next = format!(
        "remove it, or draw it again with `fence timeline {}`",
        folder.display()
    );
    let finding = |class: &ClassName| Finding {
        class: class.clone(),
        file: file.clone(),
        line: None,
        what: what.clone(),
        next: next.clone(),
    };
    something.proofs.keys().map(finding).collect()
}

/// A path without the folder that everybody knows.
pub(super) fn shortened(path: &Path, folder: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).display().to_string()
}
