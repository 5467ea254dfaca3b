//! Long histories of a register that guards a row: clients that are never idle, and takeovers among them.

use std::collections::BTreeMap;

use pause_kit::history::{
    Answer, At, Bounds, Change, Clock, Commit, Event, Exercise, GrantRecord, GuardForm, Half, History, Op,
    Presented, Read, Reply, Request, Run, TokenNumber, Work,
};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

const CLASS: &str = "made.batch";
const KEY: &str = "batch-1";

/// A history of so many operations by so many clients, each of which begins the next as soon as the last has ended. Every
/// answer is that of one register, so that some order explains them all.
pub(super) fn history(operations: usize, clients: usize, seed: u64) -> History {
    let mut chance = ChaCha8Rng::seed_from_u64(seed);
    // When each client's next operation begins.
    let mut free: Vec<u64> = (0..clients).map(|_| chance.random_range(10..1_000)).collect();
    let mut planned: Vec<(u64, u64, u64, usize)> = Vec::with_capacity(operations);
    while planned.len() < operations {
        let client = planned.len() % clients;
        let began = free[client] + chance.random_range(1..20);
        let effect = began + chance.random_range(1..500);
        let ended = effect + chance.random_range(1..500);
        free[client] = ended;
        planned.push((effect, began, ended, client));
    }
    planned.sort_unstable();
    let mut events = Vec::with_capacity(2 * operations);
    let mut grants = 1;
    let mut held = vec![1; clients];
    events.push((At::from_nanos(1), grant(1)));
    let mut last: Option<String> = None;
    let mut reached = 0;
    for (number, (_, began, ended, client)) in planned.into_iter().enumerate() {
        if number % 97 == 96 {
            grants += 1;
            events.push((At::from_nanos(1 + grants), grant(grants)));
        }
        // Somebody who has been refused asks for the newest grant; who has not been goes on with the old one.
        let own = held[client];
        let (at, ended) = (At::from_nanos(began), At::from_nanos(ended));
        if chance.random_range(0..3) == 0 {
            events.push((ended, read(client, at, last.as_ref())));
            continue;
        }
        let op = Op::new(format!("{client}-{number}"));
        let id = (chance.random_range(0..4) > 0).then(|| format!("g{own}:{number}"));
        events.push((at, request(&op, client, own, id.clone())));
        let refused = own < reached;
        let detail = refused.then(|| format!("presented {own}, seen {reached}"));
        let reply = Reply::Sql {
            sqlstate: refused.then(|| "ZF001".to_owned()),
            detail,
            tag: (!refused).then(|| "UPDATE 1".to_owned()),
        };
        events.push((
            ended,
            Answer {
                op,
                reply,
                body: None,
            }
            .into(),
        ));
        if refused {
            held[client] = grants;
        } else {
            reached = own;
            last = id.or(last);
            if chance.random_range(0..50) == 0 {
                held[client] = grants;
            }
        }
    }
    History::new(run(), events)
}

/// So many commits of one key in the order of their tokens, a thousand to each grant.
pub(super) fn log(commits: u64) -> History {
    let mut events = Vec::new();
    for order in 1..=commits {
        let number = order.div_ceil(1_000);
        if order % 1_000 == 1 {
            events.push((At::from_nanos(order), grant(number)));
        }
        let change = Change::Write {
            class: CLASS.to_owned(),
            key: KEY.to_owned(),
            id: format!("g{number}:{order}"),
            grant: Some(format!("g{number}")),
            token: Some(TokenNumber::new(number as i64)),
            job: None,
            moves: Vec::new(),
        };
        let commit = Commit {
            order,
            xid: order,
            change,
        };
        events.push((At::from_nanos(order), commit.into()));
    }
    History::new(run(), events)
}

fn run() -> Run {
    Run {
        schema: Run::SCHEMA,
        scenario: "S12".to_owned(),
        class: CLASS.to_owned(),
        key: KEY.to_owned(),
        half: Half::Guarded,
        seed: "1".to_owned(),
        clock: Clock::Monotonic,
        guard: GuardForm::Column,
        exercise: Exercise::Control,
        bounds: Bounds {
            deadline_ns: 2_000_000_000,
            slack_ns: 1_000_000_000,
        },
        stale_grant: None,
        attempts: Vec::new(),
        deed: "settled".to_owned(),
        opening: BTreeMap::new(),
    }
}

fn grant(number: u64) -> Event {
    GrantRecord {
        class: CLASS.to_owned(),
        key: KEY.to_owned(),
        token: TokenNumber::new(number as i64),
        grant: format!("g{number}"),
        holder: format!("H{number}"),
    }
    .into()
}

fn request(op: &Op, client: usize, token: u64, id: Option<String>) -> Event {
    Request {
        op: op.clone(),
        holder: format!("H{client}"),
        work: if id.is_some() { Work::Write } else { Work::Raise },
        class: CLASS.to_owned(),
        key: KEY.to_owned(),
        grant: Some(format!("g{token}")),
        presented: Presented {
            token: Some(token.to_string()),
            grant: Some(format!("g{token}")),
        },
        id,
        sent: None,
    }
    .into()
}

fn read(client: usize, began: At, last: Option<&String>) -> Event {
    Read {
        by: format!("H{client}"),
        class: CLASS.to_owned(),
        key: KEY.to_owned(),
        began,
        ids: last.into_iter().cloned().collect(),
        balances: BTreeMap::new(),
    }
    .into()
}
