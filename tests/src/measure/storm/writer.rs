//! The writers: four that hold what they write, and four that write under grants that others have long superseded.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tokio::sync::Semaphore;
use tokio_postgres::Client;

use super::guarded::{self, Came, LEVELS, Write};
use super::judge::{Attempt, Deed, Outcome};
use super::store::{Grant, Resource, Store, token};

/// What all writers share.
#[derive(Debug)]
pub(crate) struct Storm {
    pub(crate) store: Store,
    pub(crate) seed: u64,
    /// The client's own sequence: each beginning and each end of an attempt takes a number of it.
    pub(crate) moments: AtomicU64,
    /// How many stale attempts may begin: they keep step with the rightful ones.
    pub(crate) step: Semaphore,
    /// Whether a stale write presents the newest grant's token, because its guard cannot be taken away by SQL.
    pub(crate) fresher: bool,
}

/// Stale attempts for each three rightful ones.
pub(crate) const STALE_OF_THREE: u64 = 2;

/// How often a whole transaction is tried.
const TRIES: usize = 100;

/// Between two tries it pauses for 64 ms at most.
const LONGEST_PAUSE_LOG2: usize = 6;

/// One task with its connection.
pub(crate) struct Writer<'a> {
    storm: &'a Storm,
    client: Client,
    rng: ChaCha8Rng,
    name: String,
    made: Vec<Attempt>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(storm: &'a Storm, client: Client, number: u64) -> Self {
        Writer {
            storm,
            client,
            rng: ChaCha8Rng::seed_from_u64(storm.seed.wrapping_add(number)),
            name: format!("w{number}"),
            made: Vec::new(),
        }
    }

    /// So many writes, nearly all under grants that are held; now and then it takes a lock from another.
    pub(crate) async fn rightful(mut self, writes: u64) -> Vec<Attempt> {
        let mut held: Vec<Grant> = Vec::new();
        let mut written = 0;
        while written < writes {
            // What a holder knows of its own loss comes late: it looks here, and writes some time after.
            held.retain(|grant| self.storm.store.is_newest(grant));
            if held.is_empty() || self.rng.random_ratio(1, 25) {
                let resource = Resource(self.rng.random_range(0..Resource::ALL));
                let grant = self.storm.store.take(resource);
                held.retain(|other| other.resource != resource);
                // Fence, then read. The column guard has nothing to raise: its first write reads what it changes.
                if resource.is_column() || self.raise(&grant).await {
                    held.push(grant);
                }
                continue;
            }
            let grant = held[self.rng.random_range(0..held.len())].clone();
            if !self.write(&grant, grant.token()).await {
                held.retain(|other| other.place != grant.place);
            }
            written += 1;
            let gained = written * STALE_OF_THREE / 3 - (written - 1) * STALE_OF_THREE / 3;
            self.storm.step.add_permits(usize::try_from(gained).unwrap_or(0));
        }
        self.made
    }

    /// So many writes under superseded grants: most begun after a newer grant's write was acknowledged, some in the middle of
    /// the change.
    pub(crate) async fn stale(mut self, writes: u64) -> Vec<Attempt> {
        let mut written = 0;
        while written < writes {
            let Ok(permit) = self.storm.step.acquire().await else {
                break;
            };
            permit.forget();
            written += 1;
            let grant = loop {
                let resource = Resource(self.rng.random_range(0..Resource::ALL));
                let candidates = match self.rng.random_ratio(1, 10) {
                    true => self.storm.store.last_two(resource).into_iter().skip(1).collect(),
                    false => self.storm.store.outdated(resource),
                };
                if !candidates.is_empty() {
                    break candidates[self.rng.random_range(0..candidates.len())].clone();
                }
                // Nothing of it is superseded yet; another may be.
                tokio::task::yield_now().await;
            };
            if !grant.resource.is_column() && self.rng.random_ratio(1, 20) {
                self.raise(&grant).await;
            }
            let newest = self.storm.store.last_two(grant.resource);
            let presented = match (self.storm.fresher && grant.resource.is_column(), newest.first()) {
                (true, Some(newest)) => token(newest.place),
                _ => grant.token(),
            };
            self.write(&grant, presented).await;
        }
        self.made
    }

    /// Raises the mark, and says whether it is raised.
    async fn raise(&mut self, grant: &Grant) -> bool {
        self.attempt(grant, Deed::Raise, grant.token()).await
    }

    /// Writes, presenting `token`, and says whether that is committed.
    async fn write(&mut self, grant: &Grant, token: u64) -> bool {
        let amount = self.rng.random_range(1..1000);
        let applied = self.attempt(grant, Deed::Write { amount }, token).await;
        if applied {
            self.storm.store.acknowledged(grant);
        }
        applied
    }

    /// Tries a transaction until it is decided, and records what it came to.
    async fn attempt(&mut self, grant: &Grant, deed: Deed, token: u64) -> bool {
        let level = LEVELS[self.rng.random_range(0..LEVELS.len())];
        let reads = self.rng.random();
        let entry = format!("{}:{}:{}", grant.id(), self.name, self.made.len());
        let began = self.storm.moments.fetch_add(1, Ordering::SeqCst);
        let mut retried: Vec<String> = Vec::new();
        let outcome = loop {
            let came = match deed {
                Deed::Raise => guarded::raise(&self.client, grant, level).await,
                Deed::Write { amount } => {
                    let write = Write {
                        entry: &entry,
                        amount,
                        token,
                        level,
                        reads,
                    };
                    guarded::write(&self.client, grant, &write).await
                }
            };
            match came {
                Came::Applied => break Outcome::Applied,
                Came::Stale(detail) => break Outcome::Stale { detail },
                Came::Failed(why) => break Outcome::Failed(why),
                Came::Again(code, words) if retried.len() + 1 == TRIES => {
                    break Outcome::Failed(format!("{code} {TRIES} times, the last time: {words}"));
                }
                Came::Again(code, _) => retried.push(code),
            }
            // Whoever is in the way is given time to end: longer each time, and not the same for all.
            let most = 1 << retried.len().min(LONGEST_PAUSE_LOG2);
            let pause = self.rng.random_range(0..=most);
            tokio::time::sleep(Duration::from_millis(pause)).await;
        };
        let ended = self.storm.moments.fetch_add(1, Ordering::SeqCst);
        let applied = outcome == Outcome::Applied;
        self.made.push(Attempt {
            resource: grant.resource,
            place: grant.place,
            entry,
            deed,
            level,
            retried,
            began,
            ended,
            outcome,
        });
        applied
    }
}
