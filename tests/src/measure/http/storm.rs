//! Clients with live and with stale tokens, over replicas that are stopped and killed all the while.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use reqwest::{Client, StatusCode};
use serde_json::json;

use super::super::{Failure, Figure};
use super::audit::{Found, audit};
use super::bed::{Bed, Replica, header};
use super::{is_trial, seed};

const REPLICAS: usize = 3;
/// As many clients that hold a lock as such that do not any more.
const CLIENTS: u64 = 4;
const REQUESTS: u64 = 200_000;
pub(super) const BALANCE: i64 = 1_000_000_000;

pub(in super::super) fn storm() -> Result<Figure, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run())
}

async fn run() -> Result<Figure, Failure> {
    let seed = seed()?;
    println!("seed {seed}");
    let requests = if is_trial() { 4_000 } else { REQUESTS };
    let (bed, first) = Bed::new(CLIENTS, BALANCE).await?;
    let mut replicas = vec![first];
    while replicas.len() < REPLICAS {
        replicas.push(bed.replica().await?);
    }
    let addresses = replicas.iter().map(|replica| replica.address.clone()).collect();
    let storm = Arc::new(Storm {
        addresses: Mutex::new(addresses),
        raised: (0..CLIENTS).map(|_| AtomicU64::new(0)).collect(),
        completed: Mutex::default(),
        left: AtomicU64::new(requests),
        sent: AtomicU64::new(0),
        over: AtomicBool::new(false),
    });
    let began = Instant::now();
    let mut clients = Vec::new();
    for account in 0..CLIENTS {
        clients.push(tokio::spawn(rightful(Arc::clone(&storm), account, seed)));
    }
    for number in 0..CLIENTS {
        clients.push(tokio::spawn(stale(Arc::clone(&storm), number, seed)));
    }
    let chaos = restart(&bed, &storm, replicas);
    let storming = async {
        let mut told = Told::default();
        for client in clients {
            told.add(client.await??);
        }
        storm.over.store(true, Ordering::SeqCst);
        Ok::<_, Failure>(told)
    };
    let (told, restarts) = tokio::join!(storming, chaos);
    let (told, restarts) = (told?, restarts?);
    let found = audit(&bed, &told).await?;
    let took = began.elapsed().as_secs();
    let sent = storm.sent.load(Ordering::SeqCst);
    Ok(Figure {
        line: format!(
            "seed {seed}: {sent} requests by {} clients over {REPLICAS} replicas, {restarts} restarts, {} acknowledged, {} of {} late \
             writes applied, {} acknowledged effects lost, {} keys with two effects, {} out of order, {} balances wrong, {} answers \
             that changed, {} unknown and resolved, {} unexpected answers, {took} s",
            2 * CLIENTS,
            told.acknowledged.len(),
            found.late,
            told.late,
            found.lost,
            found.twice,
            found.out_of_order,
            found.balances,
            told.changed,
            told.unknown,
            told.unexpected,
        ),
        reached: sent >= requests
            && told.late * 4 >= requests
            && restarts as u64 >= took / 3
            && told.unknown > 0
            && found == Found::default()
            && told.changed + told.unexpected == 0,
    })
}

/// What all clients share.
struct Storm {
    addresses: Mutex<Vec<String>>,
    /// For each account the newest token whose raise was acknowledged.
    raised: Vec<AtomicU64>,
    /// Requests of grants that are over by now, and what they were answered.
    completed: Mutex<HashMap<u64, (u64, String, String)>>,
    left: AtomicU64,
    sent: AtomicU64,
    over: AtomicBool,
}

impl Storm {
    /// Whether there is one more request to be made.
    fn next(&self) -> bool {
        let fewer = |left: u64| left.checked_sub(1);
        self.left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fewer)
            .is_ok()
    }

    fn address(&self, random: &mut ChaCha8Rng) -> String {
        let addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        addresses[random.random_range(0..addresses.len())].clone()
    }

    /// Sends a request to some replica. Nothing is an answer that never came.
    async fn post(
        &self,
        http: &Client,
        random: &mut ChaCha8Rng,
        request: &Request,
    ) -> Option<(StatusCode, String)> {
        self.sent.fetch_add(1, Ordering::SeqCst);
        let url = format!(
            "http://{}/accounts/acct-{}/{}",
            self.address(random),
            request.account + 1,
            request.what
        );
        let mut sending = http.post(url).header("Fencing-Token", header(request.token));
        if let Some(key) = &request.key {
            let to = format!("acct-{}", (request.account + 1) % CLIENTS + 1);
            let body = json!({"to": to, "amount": 1, "reference": "storm"});
            sending = sending.header("Idempotency-Key", key).json(&body);
        }
        let answer = sending.send().await.ok()?;
        let status = answer.status();
        Some((status, answer.text().await.ok()?))
    }
}

struct Request {
    account: u64,
    token: u64,
    what: &'static str,
    key: Option<String>,
}

/// What clients were told.
#[derive(Default)]
pub(super) struct Told {
    /// The keys that were answered 201.
    pub(super) acknowledged: Vec<String>,
    /// The keys that were presented under a token below an acknowledged one.
    pub(super) stale_keys: Vec<String>,
    late: u64,
    changed: u64,
    unknown: u64,
    unexpected: u64,
}

impl Told {
    fn add(&mut self, other: Told) {
        self.acknowledged.extend(other.acknowledged);
        self.stale_keys.extend(other.stale_keys);
        self.late += other.late;
        self.changed += other.changed;
        self.unknown += other.unknown;
        self.unexpected += other.unexpected;
    }

    fn unexpected(&mut self, what: &str, answer: &(StatusCode, String)) {
        self.unexpected += 1;
        if self.unexpected < 5 {
            println!("unexpected: {what} answered {} {}", answer.0, answer.1);
        }
    }
}

/// Holds one account's lock, under a new grant every now and then, and asks again until each request is answered for good.
async fn rightful(storm: Arc<Storm>, account: u64, seed: u64) -> Result<Told, Failure> {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ account);
    let http = client()?;
    let mut told = Told::default();
    let mut token = 100;
    let mut number = 0;
    let mut last: Option<(String, String)> = None;
    while storm.next() {
        if number % 40 == 0 {
            token += 1;
            let raise = Request {
                account,
                token,
                what: "fence",
                key: None,
            };
            let answer = until_answered(&storm, &http, &mut random, &raise, &mut told).await?;
            if answer.0 != 204 {
                told.unexpected("raise", &answer);
            }
            storm.raised[account as usize].store(token, Ordering::SeqCst);
            if let Some((key, body)) = last.take() {
                let mut completed = storm.completed.lock().unwrap_or_else(PoisonError::into_inner);
                completed.insert(account, (token - 1, key, body));
            }
        }
        number += 1;
        let key = format!("g{token}:{number}");
        let request = Request {
            account,
            token,
            what: "transfers",
            key: Some(key.clone()),
        };
        let answer = until_answered(&storm, &http, &mut random, &request, &mut told).await?;
        if answer.0 == 201 {
            last = Some((key.clone(), answer.1));
            told.acknowledged.push(format!("{account}/{key}"));
        } else {
            told.unexpected("transfer", &answer);
        }
    }
    Ok(told)
}

/// The same request, to whichever replica, until an answer says what became of it.
async fn until_answered(
    storm: &Storm,
    http: &Client,
    random: &mut ChaCha8Rng,
    request: &Request,
    told: &mut Told,
) -> Result<(StatusCode, String), Failure> {
    let give_up = Instant::now() + Duration::from_secs(120);
    while Instant::now() < give_up {
        match storm.post(http, random, request).await {
            Some(answer) if !answer.0.is_server_error() => return Ok(answer),
            Some(answer) if answer.0 == 503 => {}
            _ => told.unknown += 1,
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Err(format!(
        "{} of acct-{} was not answered in 120 s",
        request.what,
        request.account + 1
    )
    .into())
}

/// Presents tokens that are below an acknowledged one by then, for new requests; and now and then one that was completed.
async fn stale(storm: Arc<Storm>, number: u64, seed: u64) -> Result<Told, Failure> {
    let mut random = ChaCha8Rng::seed_from_u64(seed ^ (number << 8) ^ 0xdead);
    let http = client()?;
    let mut told = Told::default();
    let mut made = 0;
    while !storm.over.load(Ordering::SeqCst) {
        let account = random.random_range(0..CLIENTS);
        let newest = storm.raised[account as usize].load(Ordering::SeqCst);
        if newest == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        }
        if !storm.next() {
            break;
        }
        let before = {
            let completed = storm.completed.lock().unwrap_or_else(PoisonError::into_inner);
            completed.get(&account).cloned()
        };
        if let Some((token, key, body)) = before.filter(|_| made % 20 == 19) {
            made += 1;
            let request = Request {
                account,
                token,
                what: "transfers",
                key: Some(key),
            };
            match storm.post(&http, &mut random, &request).await {
                Some((status, text)) if status == 201 => told.changed += u64::from(text != body),
                Some(answer) if !answer.0.is_server_error() => told.unexpected("replay", &answer),
                _ => {}
            }
            continue;
        }
        made += 1;
        let token = newest - random.random_range(1..=20);
        let key = format!("stale{number}:{made}");
        told.stale_keys.push(format!("{account}/{key}"));
        let request = Request {
            account,
            token,
            what: "transfers",
            key: Some(key),
        };
        match storm.post(&http, &mut random, &request).await {
            Some((status, _)) if status == 412 => told.late += 1,
            Some(answer) if !answer.0.is_server_error() => told.unexpected("late write", &answer),
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
    Ok(told)
}

/// Ends a replica every second, by SIGTERM and by SIGKILL in turns, and starts another in its place.
async fn restart(bed: &Bed, storm: &Storm, mut replicas: Vec<Replica>) -> Result<usize, Failure> {
    let mut restarts = 0;
    let mut next = Instant::now() + Duration::from_secs(1);
    while !storm.over.load(Ordering::SeqCst) {
        if Instant::now() < next {
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        }
        next = Instant::now() + Duration::from_secs(1);
        let place = restarts % REPLICAS;
        if restarts % 2 == 0 {
            replicas[place].child.terminate().await?;
            replicas[place].child.exited().await?;
        } else {
            replicas[place].child.kill().await?;
        }
        replicas[place] = bed.replica().await?;
        let mut addresses = storm.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        addresses[place] = replicas[place].address.clone();
        restarts += 1;
    }
    for replica in &replicas {
        replica.child.terminate().await?;
        replica.child.exited().await?;
    }
    Ok(restarts)
}

fn client() -> Result<Client, Failure> {
    // Nothing is sent twice by the client itself.
    Ok(Client::builder()
        .no_proxy()
        .retry(reqwest::retry::never())
        .timeout(Duration::from_secs(30))
        .build()?)
}
