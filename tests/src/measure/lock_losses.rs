//! What becomes of a lock store in etcd that loses history, and of one that has nothing but troubles: the tests of fence-lock
//! on both versions, as a table.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::newer_etcd::etcd_36;
use super::run::root;
use super::{Failure, Figure};

/// How many ordinary restarts are played in each leg.
const RESTARTS: &str = "100";

/// The cases, and on how many members each is played.
const CASES: &[(&str, &[&str])] = &[
    ("snapshot restored, same flags", &["1", "3"]),
    ("snapshot restored, other flags", &["1", "3"]),
    (RAISED, &["1", "3"]),
    ("directory emptied", &["1", "3"]),
    ("data directory put back", &["1", "3"]),
    ("force-new-cluster from a lagging member", &["1", "3"]),
    ("leader killed", &["1", "3"]),
    ("leader stopped and resumed", &["1", "3"]),
    ("minority cut off", &["3"]),
    ("member behind", &["3"]),
    ("ordinary restarts", &["1", "3"]),
];

/// The case that etcd 3.4 has no flag for.
const RAISED: &str = "snapshot restored, --bump-revision";

/// What a leg of one case showed, as the test printed it.
struct Row {
    expected: String,
    got: String,
}

pub(crate) fn lock_losses() -> Result<Figure, Failure> {
    // The tests find the reaper among the programs built the same way.
    let reaper = cargo(&["build", "--package", "pause-kit", "--bins"]).status()?;
    let built = cargo(&["test", "--package", "fence-lock", "--test", "it", "--no-run"]).status()?;
    if !reaper.success() || !built.success() {
        return Err("the tests of fence-lock do not build".into());
    }
    let (mut as_expected, mut asked) = (0, 0);
    for (version, program) in [("3.4", None), ("3.6", Some(etcd_36()))] {
        let rows = match program {
            Some(Err(why)) => {
                println!("etcd {version}: not run: {why}");
                BTreeMap::new()
            }
            Some(Ok(program)) => play(version, Some(program))?,
            None => play(version, None)?,
        };
        for (case, counts) in CASES {
            if *case == RAISED && version == "3.4" {
                println!("etcd 3.4 | - | {case} | there is no such flag");
                continue;
            }
            for members in *counts {
                let mut line = format!("etcd {version} | {members} | {case}");
                for leg in ["without", "with a witness"] {
                    asked += 1;
                    let row = rows.get(&((*members).to_owned(), (*case).to_owned(), leg.to_owned()));
                    let (expected, got) = match row {
                        Some(row) => (row.expected.as_str(), row.got.as_str()),
                        None => ("", "not run"),
                    };
                    as_expected += usize::from(expected == got);
                    line.push_str(&format!(" | {leg}: expected {expected}, got {got}"));
                }
                println!("{line}");
            }
        }
    }
    Ok(Figure {
        line: format!(
            "{as_expected} of {asked} legs end as expected, {RESTARTS} ordinary restarts in each of theirs"
        ),
        reached: as_expected == asked,
    })
}

/// Plays every case on one version. The rows of a case whose test failed are left out, and what it said is printed.
fn play(version: &str, program: Option<PathBuf>) -> Result<BTreeMap<(String, String, String), Row>, Failure> {
    let mut command = cargo(&["test", "--package", "fence-lock", "--test", "it", "--"]);
    command.args(["losses::", "--nocapture", "--test-threads=2"]);
    command.env("FENCE_RESTARTS", RESTARTS);
    if let Some(program) = program {
        command.env("FENCE_ETCD", program);
    }
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut rows = BTreeMap::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("losses: etcd ")) {
        let parts: Vec<&str> = line.split(" | ").collect();
        let [found, members, case, leg, expected, got] = parts[..] else {
            continue;
        };
        if !found.starts_with(version) {
            return Err(format!("etcd {found} was played, not {version}").into());
        }
        let row = Row {
            expected: expected.trim_start_matches("expected ").to_owned(),
            got: got.trim_start_matches("got ").to_owned(),
        };
        rows.insert((members.to_owned(), case.to_owned(), leg.to_owned()), row);
    }
    if !output.status.success() {
        println!("{text}{}", String::from_utf8_lossy(&output.stderr));
        // A row is printed before what comes after the loss is looked at.
        rows.clear();
    }
    Ok(rows)
}

fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command
        .args(arguments)
        .env("CARGO_TERM_COLOR", "never")
        .env("RUST_BACKTRACE", "0")
        .current_dir(root())
        .stdin(Stdio::null());
    command
}
