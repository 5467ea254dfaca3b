//! The kit's scenarios that are about HTTP, on every way to paydb.

use serde_json::Value;

use super::super::run::{evidence, finish, scenarios as of};
use super::super::{Failure, Figure};

/// The scenarios, an outcome that an attempt of each has with the guard in force, and what is left out in its twin.
const SCENARIOS: [(&str, &str, Twin); 12] = [
    ("S05", "REF", Twin::Corrupts),
    ("S08", "REF", Twin::Corrupts),
    ("S09", "REF", Twin::Corrupts),
    ("S24", "REF", Twin::Corrupts),
    ("S28", "UNK", Twin::Absent),
    ("S29", "REF", Twin::Corrupts),
    ("S33", "REF", Twin::Corrupts),
    ("S34", "REF", Twin::Corrupts),
    ("S35", "REF", Twin::Corrupts),
    ("S37", "LEG", Twin::Absent),
    ("S67", "CLO", Twin::Corrupts),
    ("S69", "CLO", Twin::Corrupts),
];

/// What the same schedule must show without the guard.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Twin {
    Corrupts,
    /// It is a control.
    Absent,
}

const WAYS: [(&str, Option<&str>); 4] = [
    ("http1", None),
    ("http2", None),
    ("http1", Some("nginx")),
    ("http2", Some("nginx")),
];

const CLASS: &str = "paydb.account";

/// Each scenario on each way, guarded and defeated: those that are not played count as legs that failed.
pub(crate) fn scenarios() -> Result<Figure, Failure> {
    let played = played()?;
    let (mut good, mut all) = (0, 0);
    for (http, through) in WAYS {
        let found = run(&played, http, through)?;
        for (id, outcome, twin) in SCENARIOS {
            let scenario = found.iter().find(|one| one["id"] == id);
            for (half, missing) in halves(scenario, outcome, twin) {
                all += 1;
                good += u32::from(missing.is_none());
                let way = format!("{http} {}", through.unwrap_or("direct"));
                println!(
                    "{id} {way:<12} {half:<8} {}",
                    missing.as_deref().unwrap_or("as it must be")
                );
            }
        }
    }
    Ok(Figure {
        line: format!(
            "{good} of {all} legs as they must be: 12 scenarios, HTTP/1.1 and HTTP/2, direct and through nginx, guarded and defeated"
        ),
        reached: good == all,
    })
}

/// The scenarios that paydb is declared to go through.
fn played() -> Result<Vec<&'static str>, Failure> {
    let declared = std::fs::read_to_string(super::super::run::root().join("fence.toml"))?;
    let (_, of_class) = declared
        .split_once(&format!("[classes.\"{CLASS}\".proof]"))
        .ok_or("fence.toml declares no proof of paydb.account")?;
    let line = of_class.lines().find(|line| line.starts_with("scenarios = "));
    let line = line.ok_or("no scenarios are declared")?;
    let ids = SCENARIOS.iter().map(|(id, ..)| *id);
    Ok(ids.filter(|id| line.contains(&format!("\"{id}\""))).collect())
}

/// One run on one way. Its scenarios, or none where it went another way than it was told.
fn run(played: &[&str], http: &str, through: Option<&str>) -> Result<Vec<Value>, Failure> {
    let out = tempfile::tempdir()?;
    let folder = out.path().join("evidence").display().to_string();
    let mut arguments = vec!["--class", CLASS, "--transport", http, "--out", &folder];
    arguments.extend(through.into_iter().flat_map(|proxy| ["--through", proxy]));
    arguments.extend(played.iter().flat_map(|id| ["--scenario", *id]));
    let run = finish(&arguments)?;
    if run.exit != Some(0) || !run.left.is_empty() {
        println!("{}{}", run.text(), run.left.join("\n"));
    }
    let Ok(evidence) = evidence(out.path().join("evidence").as_ref()) else {
        return Ok(Vec::new());
    };
    let transport = &evidence["transport"];
    if !run.left.is_empty() || transport["http"] != http || transport["through"].as_str() != through {
        println!("left behind, or another way: {transport}");
        return Ok(Vec::new());
    }
    Ok(of(&evidence)?.clone())
}

/// The legs of one scenario on one way, and what is wrong with each.
fn halves(scenario: Option<&Value>, outcome: &str, twin: Twin) -> Vec<(&'static str, Option<String>)> {
    let guarded = match scenario {
        None => Some("not run".to_owned()),
        Some(one) => {
            let verdict = one["verdict"].as_str().unwrap_or_default();
            let wanted = if twin == Twin::Absent { "held" } else { "proven" };
            let seen = one["on"]["outcome"].as_str().unwrap_or_default();
            let as_it_must_be = verdict == wanted
                && seen
                    .split("; ")
                    .any(|one| one.split(" x").next() == Some(outcome));
            (!as_it_must_be).then(|| format!("{verdict}, {seen}: {}", one["why"]))
        }
    };
    let mut legs = vec![("guarded", guarded)];
    if twin == Twin::Corrupts {
        let violated = scenario.map(|one| one["defeated"]["violated"].is_array());
        let missing = match violated {
            None => Some("not run".to_owned()),
            Some(false) => Some("nothing broke".to_owned()),
            Some(true) => None,
        };
        legs.push(("defeated", missing));
    }
    legs
}
