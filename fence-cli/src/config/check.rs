//! What parses but cannot be run.

use fence_core::{ClassName, Enforcement};
use pause_kit::target::{ClassProof, Guard, PlaceStep, RequestForm, Target, Template, Variant};

use super::manifest::{Class, Manifest};
use super::{scenarios, targets, tiers};

/// A fault, and where it stands.
#[derive(Debug)]
pub(super) struct Fault {
    /// The way to the value.
    pub(super) at: Vec<Step>,
    /// What is wrong, and the right form.
    pub(super) message: String,
}

/// One step on the way to a value.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Into a table.
    Key(String),
    /// Into an array.
    Index(usize),
}

impl From<&PlaceStep> for Step {
    fn from(step: &PlaceStep) -> Step {
        match step {
            PlaceStep::Key(key) => Step::Key(key.clone()),
            PlaceStep::Index(index) => Step::Index(*index),
        }
    }
}

/// Where a check stands.
#[derive(Clone)]
pub(super) struct At(Vec<Step>);

impl At {
    pub(super) fn key(&self, key: &str) -> At {
        let mut steps = self.0.clone();
        steps.push(Step::Key(key.to_owned()));
        At(steps)
    }

    pub(super) fn index(&self, index: usize) -> At {
        let mut steps = self.0.clone();
        steps.push(Step::Index(index));
        At(steps)
    }

    pub(super) fn fault<T>(self, message: impl Into<String>) -> Result<T, Fault> {
        Err(Fault {
            at: self.0,
            message: message.into(),
        })
    }
}

/// The longest bound of a guard that a scenario waits for.
const BOUND_MAX_MS: u64 = 60_000;

const BEFORE: &[&str] = &["fence", "bin", "prefix", "database_url"];
const RESOURCE: &[&str] = &["fence", "bin", "prefix", "database_url", "port"];
const READY: &[&str] = &[
    "fence",
    "bin",
    "prefix",
    "database_url",
    "resource",
    "key",
    "other",
    "bystander",
    "amount",
    "ttl",
];
const HOLDER: &[&str] = &[
    "fence",
    "bin",
    "prefix",
    "database_url",
    "resource",
    "key",
    "other",
    "bystander",
    "amount",
    "ttl",
    "journal",
];
const WRITE: &[&str] = &["key", "other", "bystander", "amount", "id"];
const READ: &[&str] = &["key", "other", "bystander"];

/// The first fault in what the file says of tiers and classes, whatever it says of proofs.
pub(super) fn declared(manifest: &Manifest) -> Result<(), Fault> {
    tiers::check(manifest, &At(Vec::new()))
}

/// The first fault in the file.
pub(super) fn all(manifest: &Manifest) -> Result<(), Fault> {
    let root = At(Vec::new());
    tiers::check(manifest, &root)?;
    let check = Check { manifest };
    for (name, target) in &manifest.targets {
        check.target(target, &root.key("targets").key(name))?;
    }
    for (name, class) in &manifest.classes {
        check.class(name, class, &root.key("classes").key(name.as_str()))?;
    }
    Ok(())
}

struct Check<'a> {
    manifest: &'a Manifest,
}

impl Check<'_> {
    fn target(&self, target: &Target, at: &At) -> Result<(), Fault> {
        let guard = std::fs::read_dir(&target.guard_sql);
        let has_sql = guard.is_ok_and(|entries| {
            entries.flatten().any(|entry| {
                entry
                    .path()
                    .extension()
                    .is_some_and(|extension| extension == "sql")
            })
        });
        if !has_sql {
            let folder = target.guard_sql.display();
            return at.key("guard_sql").fault(format!(
                "{folder} is no folder that holds the guard's *.sql files"
            ));
        }
        targets::defeat(target, at)?;
        self.steps(&target.setup, BEFORE, &at.key("setup"))?;
        let Some(resource) = &target.resource else {
            return Ok(());
        };
        let at = at.key("resource");
        self.command(&resource.command, RESOURCE, &at.key("command"))?;
        if let Some(worker) = &resource.worker {
            self.command(worker, BEFORE, &at.key("worker"))?;
        }
        match &resource.ready {
            Some(ready) if ready.is_empty() => at
                .key("ready")
                .fault("ready is empty; give the beginning of the line that tells the address"),
            None if !resource.takes_port() => at.fault(
                "nothing says when the resource is ready: give ready, the beginning of the line that tells its address, or \
                 {port} in its command",
            ),
            _ => Ok(()),
        }
    }

    fn class(&self, name: &ClassName, class: &Class, at: &At) -> Result<(), Fault> {
        match (class.enforcement, class.proof_max_age_days) {
            (Enforcement::Advisory, Some(_)) => {
                return at.key("proof_max_age_days").fault(
                    "an advisory class has no proof that could grow old; leave it out, or make the class fenced",
                );
            }
            (_, Some(days)) if !(1..=365).contains(&days) => {
                return at
                    .key("proof_max_age_days")
                    .fault(format!("proof_max_age_days is 1 to 365, got {days}"));
            }
            _ => {}
        }
        match (class.enforcement, class.guard, &class.proof) {
            // A fenced class without a guard or a proof is what `fence register check` is there to find.
            (Enforcement::Fenced, None, Some(_)) => at
                .clone()
                .fault("a class that is proven names its guard: guard = \"mark\" or \"column\""),
            (Enforcement::Advisory, Some(_), _) => at
                .key("guard")
                .fault("an advisory class has no guard; leave it out, or make the class fenced"),
            (Enforcement::Advisory, None, Some(_)) => at
                .key("proof")
                .fault("an advisory class has nothing to prove; leave it out, or make the class fenced"),
            (_, Some(guard), Some(proof)) => self.proof((name, guard), proof, &at.key("proof")),
            (_, _, None) => Ok(()),
        }
    }

    fn proof(&self, class: (&ClassName, Guard), proof: &ClassProof, at: &At) -> Result<(), Fault> {
        let Some(target) = self.manifest.targets.get(&proof.target) else {
            let declared = joined(self.manifest.targets.keys());
            return at.key("target").fault(format!(
                "target \"{}\" is not declared; there are {declared}",
                proof.target
            ));
        };
        targets::reached(proof, target, at)?;
        if !proof.keys.names().eq(["n"]) {
            return at
                .key("keys")
                .fault("keys holds {n} once and no other placeholder, such as \"acct-{n}\"");
        }
        scenarios::check(class, proof, at)?;
        self.steps(&proof.prepare, READY, &at.key("prepare"))?;
        let holder = at.key("holder");
        // The kit's path to a resource that has no process leads nowhere.
        let without = |names: &[&'static str]| -> Vec<&'static str> {
            let has_one = target.resource.is_some();
            let kept = names
                .iter()
                .copied()
                .filter(|name| has_one || *name != "resource");
            kept.collect()
        };
        self.command(&proof.holder.command, &without(READY), &holder.key("command"))?;
        for variant in Variant::ALL {
            let further = proof.holder.with.of(variant).unwrap_or_default();
            let at = holder.key("with").key(variant.as_str());
            for (index, word) in further.iter().enumerate() {
                self.template(word, &without(HOLDER), at.index(index))?;
            }
        }
        if let Some(front) = &proof.front {
            let write = at.key("front").key("write");
            self.request(&front.write, WRITE, &write)?;
            if !front.write.headers.values().any(|value| value.as_str() == "{id}") {
                return write.key("headers").fault(
                    "no header is {id}; a write's id is read from one, such as headers = { Idempotency-Key = \"{id}\" }",
                );
            }
            self.request(&front.raise, READ, &at.key("front").key("raise"))?;
        }
        for (name, bound) in [("deadline_ms", proof.deadline_ms), ("idle_ms", proof.idle_ms)] {
            if !(1..=BOUND_MAX_MS).contains(&bound) {
                let fault = format!("{name} is 1 to {BOUND_MAX_MS} milliseconds, got {bound}");
                return at.key(name).fault(fault);
            }
        }
        if !matches!(proof.writes.table.split_once('.'), Some((schema, table)) if !schema.is_empty() && !table.is_empty())
        {
            let fault = format!(
                "table is schema.table, such as public.transfer, got \"{}\"",
                proof.writes.table
            );
            return at.key("writes").key("table").fault(fault);
        }
        if let Some(sql) = &proof.writes.forgetful {
            let forgetful = at.key("writes").key("forgetful");
            if class.1 != Guard::Mark {
                return forgetful.fault(
                    "forgetful is for the mark guard; a column guard refuses no write that forgets its token",
                );
            }
            self.template(sql, WRITE, forgetful)?;
        }
        let read = at.key("read");
        match (&proof.read.path, &proof.read.id, &proof.read.sql) {
            (Some(path), Some(_), None) => self.template(path, READ, read.key("path"))?,
            (None, None, Some(sql)) => self.template(sql, READ, read.key("sql"))?,
            _ => return read.fault("read has either path and id, or sql"),
        }
        for (index, replacement) in proof.defeat_on_path.iter().enumerate() {
            let at = at.key("defeat_on_path").index(index);
            if replacement.find.is_empty() || replacement.find.len() != replacement.replace.len() {
                return at.fault(format!(
                    "find and replace have one length, at least 1; they have {} and {}",
                    replacement.find.len(),
                    replacement.replace.len()
                ));
            }
        }
        Ok(())
    }

    fn steps(&self, steps: &[pause_kit::target::Step], allowed: &[&str], at: &At) -> Result<(), Fault> {
        for (index, step) in steps.iter().enumerate() {
            let at = at.index(index);
            match (&step.command, &step.sql, &step.request) {
                (Some(command), None, None) => self.command(command, allowed, &at.key("command"))?,
                (None, Some(sql), None) => self.template(sql, allowed, at.key("sql"))?,
                (None, None, Some(request)) if allowed.contains(&"resource") => {
                    self.request(request, allowed, &at.key("request"))?;
                }
                (None, None, Some(_)) => {
                    return at.fault(
                        "setup comes before the resource starts; put a request into a class's prepare",
                    );
                }
                _ => return at.fault("a step is exactly one of command, sql, request"),
            }
        }
        Ok(())
    }

    fn command(&self, command: &[Template], allowed: &[&str], at: &At) -> Result<(), Fault> {
        if command.is_empty() {
            return at
                .clone()
                .fault("a command is a list of a program and its arguments");
        }
        for (index, word) in command.iter().enumerate() {
            self.template(word, allowed, at.index(index))?;
        }
        Ok(())
    }

    fn request(&self, request: &RequestForm, allowed: &[&str], at: &At) -> Result<(), Fault> {
        if request.method.is_empty() || !request.method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            let fault = format!(
                "method is capital letters, such as POST, got \"{}\"",
                request.method
            );
            return at.key("method").fault(fault);
        }
        self.template(&request.path, allowed, at.key("path"))?;
        for (name, value) in &request.headers {
            self.template(value, allowed, at.key("headers").key(name))?;
        }
        match &request.body {
            Some(body) => self.template(body, allowed, at.key("body")),
            None => Ok(()),
        }
    }

    fn template(&self, template: &Template, allowed: &[&str], at: At) -> Result<(), Fault> {
        for name in template.names() {
            if let Some(tier) = name.strip_prefix("etcd.") {
                if !self
                    .manifest
                    .tiers
                    .keys()
                    .any(|declared| declared.as_str() == tier)
                {
                    let declared = joined(self.manifest.tiers.keys());
                    return at.fault(format!(
                        "{{{name}}} names tier \"{tier}\", which is not declared; there are {declared}"
                    ));
                }
                if !allowed.contains(&"database_url") {
                    return at.fault(format!(
                        "{{{name}}} has no value here; there are {}",
                        braced(allowed)
                    ));
                }
            } else if !allowed.contains(&name) {
                return at.fault(format!(
                    "{{{name}}} has no value here; there are {}",
                    braced(allowed)
                ));
            }
        }
        Ok(())
    }
}

pub(crate) fn joined<T: ToString>(names: impl Iterator<Item = T>) -> String {
    let names: Vec<String> = names.map(|name| name.to_string()).collect();
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}

fn braced(names: &[&str]) -> String {
    joined(names.iter().map(|name| format!("{{{name}}}")))
}
