//! Long checks of the `fence` command, each printing its figure as its last line and failing when short.

mod browser;
mod dist;
mod false_alarms;
mod family;
mod http;
mod interrupt;
mod kit_judge;
mod kit_killed;
mod kit_mutants;
mod kit_random;
mod kit_stop;
mod load;
mod lock;
mod lock_conformance;
mod lock_losses;
mod mutants;
mod newer_etcd;
mod pg_bypass;
mod pg_cost;
mod pg_matrix;
mod pg_mutants;
mod pg_owner;
mod pg_scale;
mod prove;
mod register;
mod release_check;
mod run;
mod seeds;
mod storm;
mod targets;
mod timeline;

use std::process::ExitCode;

/// What went wrong with a check that could not be finished or that fell short.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The figure of a check, printed as its last line.
pub(crate) struct Figure {
    /// The figure in words.
    pub(crate) line: String,
    /// Whether it reaches its bar, and every leg was run.
    pub(crate) reached: bool,
}

type Check = fn() -> Result<Figure, Failure>;

const CHECKS: &[(&str, &str, Check)] = &[
    (
        "prove",
        "fence prove: every scenario proven and every control held within 60 s, each twin corrupting, nothing left behind",
        prove::prove,
    ),
    (
        "unfenced",
        "fence prove --danger-unfenced: exits 1 and names each corruption",
        prove::unfenced,
    ),
    (
        "mutants",
        "every broken guard under tests/mutants is called violated, by the invariant it names",
        mutants::mutants,
    ),
    (
        "interrupt",
        "after INT, TERM and KILL, to the process and to its group, everything is gone in time",
        interrupt::interrupt,
    ),
    (
        "seeds",
        "twenty seeds: twenty schedules, all proven; one seed twice: one schedule",
        seeds::seeds,
    ),
    (
        "false-alarms",
        "a hundred seeds of the guarded halves alone: nothing violated, nothing void",
        false_alarms::false_alarms,
    ),
    (
        "register",
        "the registers are in order after a proof, and each fault made in them is named by its class",
        register::register,
    ),
    (
        "release-check",
        "whether this commit has a whole proof of its own, on etcd 3.6 and PostgreSQL 18, in fence-evidence or the next argument",
        release_check::release_check,
    ),
    (
        "timeline",
        "the page of a proven and of a violated run in Chromium: no request, no error, nothing overlapping, by keyboard",
        timeline::timeline,
    ),
    (
        "targets",
        "the examples in other languages: proven, and violated without their one line of fencing",
        targets::targets,
    ),
    (
        "load",
        "paydb under 8 connections for 10 s: statuses counted, ledger and balances exact",
        load::load,
    ),
    (
        "lock-conformance",
        "the suite of lock stores on every store and version, each leg printed, and on stores that are wrong on purpose",
        lock_conformance::lock_conformance,
    ),
    (
        "lock-storm",
        "10,000 kills, stops, lapses and releases over 50 locks on each store, judged from a record of their own",
        lock::storm::lock_storm,
    ),
    (
        "lock-deadline",
        "1,000 stops past the lease at random moments: no token read after its deadline, no late write let in",
        lock::deadline::lock_deadline,
    ),
    (
        "lock-renewal",
        "10,000 holds on one session: the keepalive messages of one lease, read at the server",
        lock::renewal::lock_renewal,
    ),
    (
        "lock-speed",
        "three etcd members: acquire and release beside etcd's own mutex, many keys at once, hand-over, PostgreSQL beside it",
        lock::speed::lock_speed,
    ),
    (
        "kit-judge",
        "the judge beside Porcupine: alike on Jepsen's logs of etcd and on every history of a proof, and quicker",
        kit_judge::kit_judge,
    ),
    (
        "kit-minimum",
        "the whole set by twenty seeds, guarded and defeated: everything as its row says, each within 60 s",
        seeds::kit_minimum,
    ),
    (
        "kit-mutants",
        "every known way to break a guard, and thirty ways to break a good history: each found by what was named beforehand",
        kit_mutants::kit_mutants,
    ),
    (
        "kit-random",
        "3,000 guarded halves by seeds, or as many as the next argument says: none violated, voids drawn again, and the bound",
        kit_random::kit_random,
    ),
    (
        "kit-stop",
        "a thousand stops of 16 threads that never rest: none counts on for 1 s, and how soon each stop is confirmed",
        kit_stop::kit_stop,
    ),
    (
        "kit-killed",
        "fence prove killed at 50 random moments: after 5 s nothing of its own runs or stands stopped",
        kit_killed::kit_killed,
    ),
    (
        "lock-losses",
        "what becomes of an etcd that loses history, and of one that does not, with and without a witness, as a table",
        lock_losses::lock_losses,
    ),
    (
        "pg-bypass",
        "every way of writing round the guard, as application role and as owner: refused, or named by doctor in that state",
        pg_bypass::pg_bypass,
    ),
    (
        "pg-matrix",
        "the suite for drivers on 2 drivers, PostgreSQL 15 and 18, 3 isolation levels, direct and behind PgBouncer: 24 legs",
        pg_matrix::pg_matrix,
    ),
    (
        "pg-mutants",
        "every broken variant of the installed SQL under tests/mutants/sql is called violated, by the invariant it names",
        pg_mutants::pg_mutants,
    ),
    (
        "pg-cost",
        "the guards of PostgreSQL against the bare write and other ways: statements, round trips, WAL, throughput",
        pg_cost::pg_cost,
    ),
    (
        "pg-scale",
        "a guarded write with a million keys against one with a thousand, and guarding a table of a million rows",
        pg_scale::pg_scale,
    ),
    (
        "pg-owner",
        "the tests of the PostgreSQL guards, installed and run by a database owner who is no superuser",
        pg_owner::pg_owner,
    ),
    (
        "pg-storm",
        "8 writers, 4 of them stale, 100,000 guarded writes over few keys at every isolation level: nothing late, sums exact",
        storm::storm,
    ),
    (
        "http-scenarios",
        "12 scenarios against paydb in HTTP/1.1 and HTTP/2, direct and through nginx, guarded and defeated: each leg printed",
        http::scenarios,
    ),
    (
        "http-corpus",
        "300 malformed or ambiguous requests as raw bytes, 50 valid ones among them; 10 million headers and keys at random",
        http::corpus,
    ),
    (
        "http-openapi",
        "Schemathesis with a valid token: no 5xx, no undocumented answer, 60 % of the operations reach 2xx",
        http::openapi,
    ),
    (
        "http-cost",
        "the HTTP guard's instructions, allocations and time for a request, and a service's throughput with and without it",
        http::cost,
    ),
    (
        "http-storm",
        "8 clients, 4 stale, 200,000 requests over 3 replicas, one restarted every second: nothing late, lost or done twice",
        http::storm,
    ),
    (
        "dist",
        "the static fence of ./dev dist: complete, the same twice, runs in an empty root and proves",
        dist::dist,
    ),
];

/// Runs the check that the first argument names.
pub fn main() -> ExitCode {
    if let Some(ended) = lock::process() {
        return ended;
    }
    let name = std::env::args().nth(1).unwrap_or_else(|| "list".into());
    if name == "list" {
        for (name, what, _) in CHECKS {
            println!("{name:<16} {what}");
        }
        return ExitCode::SUCCESS;
    }
    let Some((_, _, check)) = CHECKS.iter().find(|(known, ..)| *known == name) else {
        let names: Vec<&str> = CHECKS.iter().map(|(name, ..)| *name).collect();
        eprintln!("measure: no check '{name}'; there are {}", names.join(", "));
        return ExitCode::from(2);
    };
    match check() {
        Ok(figure) => {
            println!("{name}: {}", figure.line);
            if figure.reached {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            println!("{name}: not measured: {error}");
            ExitCode::FAILURE
        }
    }
}
