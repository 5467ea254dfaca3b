//! The suite of fence-lock on every store and every version of its server, and on the stores that are wrong on purpose.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use pause_kit::services::locate;

use super::newer_etcd::etcd_36;
use super::run::root;
use super::{Failure, Figure};

/// The wrong stores that the suite must fail, each by its own case.
const WRONG: usize = 10;

/// One store on one version.
struct Leg {
    name: &'static str,
    /// The test that plays it.
    test: &'static str,
    /// What its line must begin with: the store, and the version that was really run.
    says: &'static str,
    /// The variable that names the server's programs, and where they are; none for the machine's own.
    server: Option<Server>,
}

#[derive(Clone)]
struct Server {
    variable: &'static str,
    /// Or why there is none.
    programs: Result<PathBuf, String>,
}

pub(crate) fn lock_conformance() -> Result<Figure, Failure> {
    // The tests find the reaper among the programs built the same way.
    let reaper = cargo(&["build", "--package", "pause-kit", "--bins"]).status()?;
    let built = tests(&["--no-run"]).status()?;
    if !reaper.success() || !built.success() {
        return Err("the tests of fence-lock do not build".into());
    }
    let (mut held, mut short) = (0, 0);
    let legs = legs();
    for leg in &legs {
        match play(leg)? {
            Ok(line) => {
                held += 1;
                println!("{}: {line}", leg.name);
            }
            Err(why) => {
                short += 1;
                println!("{}: {why}", leg.name);
            }
        }
    }
    let found = wrong_stores()?;
    println!("{found} of {WRONG} wrong stores were failed by the case named beforehand");
    Ok(Figure {
        line: format!(
            "{held} of {} stores and versions conform, {found} of {WRONG} wrong stores found",
            legs.len()
        ),
        reached: short == 0 && found == WRONG,
    })
}

fn legs() -> Vec<Leg> {
    let etcd_36 = Server {
        variable: "FENCE_ETCD",
        programs: etcd_36(),
    };
    let postgres_18 = Server {
        variable: "FENCE_PG_BIN",
        programs: locate::postgres_18().map_err(|error| error.to_string()),
    };
    let leg = |name, test, says, server| Leg {
        name,
        test,
        says,
        server,
    };
    let (etcd, secure, woken, polling, pooled) = (
        "the_store_on_etcd_conforms",
        "the_store_on_etcd_conforms_under_tls_with_a_user",
        "the_store_on_postgresql_conforms",
        "the_store_on_postgresql_conforms_when_it_polls",
        "the_store_on_postgresql_conforms_behind_a_pooler",
    );
    vec![
        leg("memory", "the_store_in_memory_conforms", "memory:", None),
        leg("etcd 3.4", etcd, "etcd 3.4.", None),
        leg("etcd 3.6", etcd, "etcd 3.6.", Some(etcd_36.clone())),
        leg("etcd 3.4, TLS", secure, "etcd 3.4.", None),
        leg("etcd 3.6, TLS", secure, "etcd 3.6.", Some(etcd_36)),
        leg("PostgreSQL 15, woken", woken, "PostgreSQL 15.", None),
        leg("PostgreSQL 15, polling", polling, "PostgreSQL 15.", None),
        leg("PostgreSQL 15, pooled", pooled, "PostgreSQL 15.", None),
        leg(
            "PostgreSQL 18, woken",
            woken,
            "PostgreSQL 18.",
            Some(postgres_18.clone()),
        ),
        leg(
            "PostgreSQL 18, polling",
            polling,
            "PostgreSQL 18.",
            Some(postgres_18.clone()),
        ),
        leg(
            "PostgreSQL 18, pooled",
            pooled,
            "PostgreSQL 18.",
            Some(postgres_18),
        ),
    ]
}

/// Plays a leg: the line that says how it went, or why it fell short.
fn play(leg: &Leg) -> Result<Result<String, String>, Failure> {
    let mut command = tests(&[]);
    if let Some(server) = &leg.server {
        match &server.programs {
            Ok(programs) => command.env(server.variable, programs),
            Err(why) => return Ok(Err(format!("not run: {why}"))),
        };
    }
    let output = command
        .args(["--", "--exact", "--nocapture"])
        .arg(format!("conformance::{}", leg.test))
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Ok(Err(format!("does not conform\n{text}{errors}")));
    }
    let line = text.lines().find(|line| line.ends_with(" cases held"));
    Ok(match line {
        Some(line) if line.starts_with(leg.says) => Ok(line.to_owned()),
        Some(line) => Err(format!("not run: another version was played: {line}")),
        None => Err("not run: the test said nothing".to_owned()),
    })
}

/// How many wrong stores the suite has failed; each in a line of its own.
fn wrong_stores() -> Result<usize, Failure> {
    let output = tests(&["--", "--exact", "--nocapture"])
        .arg("conformance::wrong::the_suite_fails_every_wrong_store_by_the_case_named_beforehand")
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let found: Vec<&str> = text
        .lines()
        .filter(|line| line.contains(": failed by "))
        .collect();
    for line in &found {
        println!("wrong store {line}");
    }
    if !output.status.success() {
        println!("{text}{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(found.len())
}

/// The tests of fence-lock.
fn tests(arguments: &[&str]) -> Command {
    let mut command = cargo(&["test", "--package", "fence-lock", "--test", "it"]);
    command.args(arguments);
    command
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
