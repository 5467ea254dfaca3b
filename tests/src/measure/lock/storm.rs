//! Kills, stops, lapses and releases, seeded, on each store, judged from a record that shares nothing with the holders.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pause_kit::services::{Child, Services};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tokio::task::JoinSet;

use super::judge::{Change, Told, Verdict, judge};
use super::keeper::KEYS;
use super::revisions::Revisions;
use super::{KEEPER, block_on, new_etcd, new_postgres, rows, seed, services, this_program, trial};
use crate::measure::{Failure, Figure};

const EVENTS: usize = 10_000;
const HAND_OVERS: usize = 5_000;
const ENDS: usize = 1_000;

/// Processes at any time.
const KEEPERS: usize = 12;

/// How long a storm may last in all: a store that grants nothing any more is not waited for.
const LONGEST: Duration = Duration::from_secs(1800);

pub(crate) fn lock_storm() -> Result<Figure, Failure> {
    block_on(run())
}

async fn run() -> Result<Figure, Failure> {
    let (events, seed) = (trial()?.unwrap_or(EVENTS), seed()?);
    let services = Arc::new(services(true, &["storm"]).await?);
    let endpoint = services.etcd("storm").ok_or("no etcd")?.endpoint();
    let record = Revisions::watch(&endpoint).await?;
    new_etcd(&endpoint).await?;
    let (told, driven) = storm(&services, &endpoint, events, seed).await?;
    let on_etcd = told_of("etcd", &record.end().await?, &told, driven);

    let postgres = services.postgres().ok_or("no PostgreSQL")?;
    let database = postgres.create_database("storm", "storm_owner").await?;
    new_postgres(database.as_str()).await?;
    rows::begin(database.as_str()).await?;
    let (told, driven) = storm(&services, database.as_str(), events, seed).await?;
    let on_postgres = told_of("PostgreSQL", &rows::end(database.as_str()).await?, &told, driven);

    let both = [&on_etcd, &on_postgres];
    let least = |count: fn(&Outcome) -> usize| both.map(count).into_iter().min().unwrap_or(0);
    let reached = both.iter().all(|outcome| outcome.verdict.holds())
        && least(|outcome| outcome.events) >= EVENTS
        && least(|outcome| outcome.verdict.hand_overs) >= HAND_OVERS
        && least(|outcome| outcome.verdict.gone_as_told + outcome.verdict.released_as_told) >= ENDS;
    let faults: usize = both
        .iter()
        .map(|outcome| outcome.verdict.two_live + outcome.verdict.disorder)
        .sum();
    let misjudged: usize = both.iter().map(|outcome| outcome.verdict.misjudged).sum();
    Ok(Figure {
        line: format!(
            "{KEYS} keys on each store, seed {seed}: {} and {} events, {} and {} hand-overs, {faults} grants beside a live one or \
             out of order, {misjudged} ends told otherwise than they were caused",
            on_etcd.events, on_postgres.events, on_etcd.verdict.hand_overs, on_postgres.verdict.hand_overs
        ),
        reached,
    })
}

struct Outcome {
    events: usize,
    verdict: Verdict,
}

/// What was done to the processes.
#[derive(Clone, Copy, Debug, Default)]
struct Driven {
    kills: usize,
    stops: usize,
}

fn told_of(store: &str, changes: &[Change], told: &HashMap<String, (i64, Told)>, driven: Driven) -> Outcome {
    let verdict = judge(changes, told);
    let events = verdict.released + verdict.gone + driven.kills + driven.stops;
    println!("{store}: {events} events ({driven:?}); {verdict:?}");
    Outcome { events, verdict }
}

/// Drives processes until there were so many events, then ends them all.
async fn storm(
    services: &Arc<Services>,
    address: &str,
    events: usize,
    seed: u64,
) -> Result<(HashMap<String, (i64, Told)>, Driven), Failure> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut running = Vec::new();
    for _ in 0..KEEPERS {
        running.push(start(services, address, &mut rng).await?);
    }
    let mut ended = Vec::new();
    let mut resuming: JoinSet<()> = JoinSet::new();
    let (mut driven, began) = (Driven::default(), Instant::now());
    while said(&running) + said(&ended) + driven.kills + driven.stops < events {
        if began.elapsed() > LONGEST {
            return Err("the storm did not end".into());
        }
        tokio::time::sleep(Duration::from_millis(rng.random_range(20..200))).await;
        let chosen = rng.random_range(0..KEEPERS);
        if rng.random_range(0..2) == 0 {
            let fresh = start(services, address, &mut rng).await?;
            let killed = std::mem::replace(&mut running[chosen], fresh);
            killed.kill().await?;
            ended.push(killed);
            driven.kills += 1;
        } else {
            // One that is stopped already is another's business.
            let Ok(stopped) = running[chosen].stop().await else {
                continue;
            };
            let past_the_lease = Duration::from_millis(rng.random_range(500..4000));
            resuming.spawn(async move {
                tokio::time::sleep(past_the_lease).await;
                drop(stopped);
            });
            driven.stops += 1;
        }
    }
    // Whatever runs on is let run on, and its end is as told.
    while resuming.join_next().await.is_some() {}
    for keeper in &running {
        keeper.kill().await?;
    }
    ended.extend(running);
    // The last leases end, so that the record has every end.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let mut told = HashMap::new();
    for keeper in &ended {
        read(&std::fs::read_to_string(keeper.stdout())?, &mut told)?;
    }
    Ok((told, driven))
}

async fn start(services: &Services, address: &str, rng: &mut ChaCha8Rng) -> Result<Child, Failure> {
    let spec = this_program(KEEPER, "keeper")?.args([address.to_owned(), rng.random::<u64>().to_string()]);
    Ok(services.spawn(spec).await?)
}

/// How many holds these processes have ended by themselves.
fn said(keepers: &[Child]) -> usize {
    let of = |keeper: &Child| {
        let text = std::fs::read_to_string(keeper.stdout()).unwrap_or_default();
        text.lines()
            .filter(|line| {
                line.starts_with("released ") || line.starts_with("lapsing ") || line.starts_with("lost ")
            })
            .count()
    };
    keepers.iter().map(of).sum()
}

/// What one process said of its grants. It was killed at the end, if not before.
fn read(text: &str, told: &mut HashMap<String, (i64, Told)>) -> Result<(), Failure> {
    // A line that was cut by a kill says nothing.
    for line in text
        .split_inclusive('\n')
        .filter_map(|line| line.strip_suffix('\n'))
    {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["granted", _, token, grant] => {
                told.insert(grant.to_owned(), (token.parse()?, Told::Gone));
            }
            [word, grant] => {
                let (_, end) = told.get_mut(grant).ok_or("a grant that was never told of")?;
                *end = match word {
                    "releasing" => Told::Either,
                    "released" => Told::Released,
                    "lapsing" | "lost" => Told::Gone,
                    _ => return Err(format!("a keeper said {line:?}").into()),
                };
            }
            _ => return Err(format!("a keeper said {line:?}").into()),
        }
    }
    Ok(())
}
