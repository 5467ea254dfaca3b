//! Whether a target can be defeated, and asked what a class asks of it.

use pause_kit::scenario::ScenarioId;
use pause_kit::target::{ClassProof, Defeat, Target};

use super::check::{At, Fault};

/// How the guard is defeated: in one way.
pub(super) fn defeat(target: &Target, at: &At) -> Result<(), Fault> {
    let file = match (&target.defeat_sql, target.defeat) {
        (Some(file), None) => file,
        (None, Some(Defeat::FresherToken)) => return Ok(()),
        (Some(_), Some(_)) => {
            return at
                .key("defeat")
                .fault("the guard is defeated in one way: either defeat_sql or defeat, not both");
        }
        (None, None) => {
            return at.clone().fault(
                "nothing says how the guard is defeated: defeat_sql = \"FILE\", or defeat = \"fresher-token\" where \
                 holders write through a front",
            );
        }
    };
    if !file.is_file() {
        let file = file.display();
        return at.key("defeat_sql").fault(format!(
            "{file} is no file; it holds the SQL that makes the guard admit everything"
        ));
    }
    if file.starts_with(&target.guard_sql) {
        return at.key("defeat_sql").fault(
            "what defeats the guard stands inside guard_sql; put it elsewhere, or it would be installed",
        );
    }
    Ok(())
}

/// Whether what the proof asks of the resource can be asked.
pub(super) fn reached(proof: &ClassProof, target: &Target, at: &At) -> Result<(), Fault> {
    let resource = match target.resource {
        Some(_) => None,
        None => Some(format!(
            "needs a process of the resource: give target \"{}\" a [targets.{}.resource]",
            proof.target, proof.target
        )),
    };
    if let Some(needs) = resource {
        if proof.front.is_some() {
            return at.key("front").fault(format!("a front {needs}"));
        }
        if proof.read.path.is_some() {
            let read = at.key("read").key("path");
            return read.fault(format!("a read by path {needs}, or read by sql"));
        }
        if let Some(index) = proof.prepare.iter().position(|step| step.request.is_some()) {
            let step = at.key("prepare").index(index);
            return step.fault(format!("a request {needs}, or prepare by sql"));
        }
    }
    let worker = target
        .resource
        .as_ref()
        .and_then(|resource| resource.worker.as_ref());
    let later = proof.scenarios.iter().position(|one| one.needs_worker());
    if let (None, Some(index)) = (worker, later) {
        return at.key("scenarios").index(index).fault(format!(
            "{} has a worker of the resource make the write; give target \"{}\" one, such as resource.worker = \
             [\"{{bin}}/jobs\", \"{{database_url}}\"]",
            proof.scenarios[index], proof.target
        ));
    }
    // In these the token has left the path before the late write's successor is granted.
    let gone = [
        ScenarioId::S05,
        ScenarioId::S24,
        ScenarioId::S25,
        ScenarioId::S29,
        ScenarioId::S33,
    ];
    let late = proof.scenarios.iter().position(|one| gone.contains(one));
    if let (Some(Defeat::FresherToken), Some(index)) = (target.defeat, late) {
        return at.key("scenarios").index(index).fault(format!(
            "in {} the late write's token has left the path before its successor is granted, so that no fresher one can be \
             given to it; leave {} out, or give target \"{}\" a defeat_sql",
            proof.scenarios[index], proof.scenarios[index], proof.target
        ));
    }
    if target.defeat == Some(Defeat::FresherToken) && proof.front.is_none() {
        return at.key("target").fault(format!(
            "target \"{}\" is defeated by a fresher Fencing-Token, but holders of this class have no front through \
             which to send one; give the target a defeat_sql",
            proof.target
        ));
    }
    Ok(())
}
