//! Whether a class can go through the scenarios that it names.

use fence_core::ClassName;
use pause_kit::scenario::ScenarioId;
use pause_kit::target::{ClassProof, GateName, Guard, Variant};

use super::check::{At, Fault, joined};

/// The first scenario that the class cannot go through, and what it lacks.
pub(super) fn check((name, guard): (&ClassName, Guard), proof: &ClassProof, at: &At) -> Result<(), Fault> {
    let listed = at.key("scenarios");
    if proof.scenarios.is_empty() {
        return listed.fault("scenarios is empty; name at least one");
    }
    for (index, scenario) in proof.scenarios.iter().enumerate() {
        let at = listed.index(index);
        if proof.scenarios[..index].contains(scenario) {
            return at.fault(format!("{scenario} is named twice"));
        }
        let with = &proof.holder.with;
        let missing = scenario
            .variants()
            .iter()
            .find(|variant| with.of(**variant).is_none());
        if let Some(variant) = missing {
            let words = match variant {
                Variant::Again => "\"--writes\", \"2\"",
                Variant::Journal => "\"--journal\", \"{journal}\"",
                Variant::Unraised => "\"--read-first\"",
                Variant::Sweep => "\"--writes\", \"9999\", \"--at-once\"",
                Variant::Later => "\"--later\"",
                Variant::Http2 => "\"--http2\"",
            };
            let variant = variant.as_str();
            return at.fault(format!(
                "{scenario} needs the holder of class \"{name}\" in another form, and its holder's with has no \
                 \"{variant}\"; give the arguments that it takes, such as with.{variant} = [{words}]"
            ));
        }
        if scenario.needs_mark() && guard != Guard::Mark {
            return at.fault(format!(
                "{scenario} is about the mark guard, and class \"{name}\" has another"
            ));
        }
        if scenario.needs_front() && proof.front.is_none() {
            return at.fault(format!("{scenario} goes through the resource: it needs a front"));
        }
        if *scenario == ScenarioId::S26 && (proof.front.is_some() || proof.defeat_on_path.is_empty()) {
            return at.fault(
                "S26 has the holder write to the database itself: it has no front, and needs defeat_on_path",
            );
        }
        if *scenario == ScenarioId::S53 && proof.front.is_some() {
            return at.fault("S53 has the holder write to the database itself: it has no front");
        }
        let offered = &proof.holder.gates;
        if let Some(gate) = scenario.gates().iter().find(|gate| !offered.contains(gate)) {
            return at.fault(format!(
                "{scenario} keeps the holder of class \"{name}\" at the gate \"{gate}\", which its holder's gates do not \
                 list; offer it and list it, such as gates = [{}]",
                gates(offered.iter().chain([gate]))
            ));
        }
    }
    if proof.scenarios.iter().all(|scenario| scenario.is_control()) {
        return listed.fault(
            "only controls are named, which prove nothing by themselves; name a scenario with a twin",
        );
    }
    Ok(())
}

fn gates<'a>(gates: impl Iterator<Item = &'a GateName>) -> String {
    joined(gates.map(|gate| format!("\"{gate}\"")))
}
