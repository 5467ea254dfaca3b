//! paydb under load, with valid tokens: what was answered against what is in the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use fence_core::{Epoch, Revision, Token};
use pause_kit::reaper::ReaperCommand;
use pause_kit::services::{ProcessSpec, Services, ServicesConfig};
use reqwest::Client;
use serde_json::{Value, json};

use super::run::root;
use super::{Failure, Figure};

const CONNECTIONS: u64 = 8;
const ACCOUNTS: u64 = 100;
const LENGTH: Duration = Duration::from_secs(10);
const BALANCE: i64 = 1_000_000;

pub(crate) fn load() -> Result<Figure, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(run())
}

async fn run() -> Result<Figure, Failure> {
    let config = ServicesConfig {
        reaper: ReaperCommand::find()?,
        postgres: true,
        etcd: Vec::new(),
    };
    let services = Services::start(config).await?;
    let postgres = services.postgres().ok_or("no PostgreSQL")?;
    let database = postgres.create_database("paydb", "paydb").await?;
    let paydb = services
        .spawn(
            ProcessSpec::new("paydb", root().join("target/release/paydb")).args([
                "--listen",
                "127.0.0.1:0",
                "--database-url",
                database.as_str(),
            ]),
        )
        .await?;
    let line = paydb.wait_line("listening on ", Duration::from_secs(30)).await?;
    let base = format!("http://{}", line.trim_start_matches("listening on "));
    let (client, connection) = tokio_postgres::connect(database.as_str(), tokio_postgres::NoTls).await?;
    let connection = tokio::spawn(connection);
    client
        .batch_execute("SELECT fence.register_epoch('entity', 1)")
        .await?;
    drop(client);
    connection.await??;

    let setup = Client::new();
    for account in 0..ACCOUNTS {
        let body = json!({"id": name(account), "balance": BALANCE});
        setup
            .post(format!("{base}/accounts"))
            .json(&body)
            .send()
            .await?
            .error_for_status()?;
    }
    let until = Instant::now() + LENGTH;
    let tasks: Vec<_> = (0..CONNECTIONS)
        .map(|task| tokio::spawn(pay(base.clone(), task, until)))
        .collect();
    let mut answered: BTreeMap<String, u16> = BTreeMap::new();
    for task in tasks {
        answered.extend(task.await??);
    }
    compare(&setup, &base, &answered).await
}

/// One connection: transfers one after the other, each from an account whose holder it speaks for.
async fn pay(base: String, task: u64, until: Instant) -> Result<Vec<(String, u16)>, Failure> {
    // One connection, kept alive; 0 stands for a request without an answer.
    let client = Client::builder()
        .pool_max_idle_per_host(1)
        .timeout(Duration::from_secs(60))
        .build()?;
    let mut answered = Vec::new();
    let mut draw = task + 1;
    for number in 0u64.. {
        if Instant::now() >= until {
            break;
        }
        // A full-period generator: every pair of accounts comes up, the same in each run.
        draw = draw
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let from = (draw >> 33) % ACCOUNTS;
        let to = (from + 1 + (draw >> 17) % (ACCOUNTS - 1)) % ACCOUNTS;
        let token = Token::mint(Epoch::FIRST, Revision::new(1000 + from)?);
        let key = format!("grant-{from}:{task}-{number}");
        let answer = client
            .post(format!("{base}/accounts/{}/transfers", name(from)))
            .header("Fencing-Token", format!("\"{token}\";grant=\"grant-{from}\""))
            .header("Idempotency-Key", &key)
            .json(&json!({"to": name(to), "amount": 1 + draw % 5, "reference": "load"}))
            .send()
            .await;
        let status = match answer {
            Ok(answer) => {
                let status = answer.status().as_u16();
                answer.bytes().await.map_or(0, |_| status)
            }
            Err(_) => 0,
        };
        answered.push((key, status));
    }
    Ok(answered)
}

/// Every 2xx stands in the ledger, every other does not, and the balances are the fold of the ledger.
async fn compare(client: &Client, base: &str, answered: &BTreeMap<String, u16>) -> Result<Figure, Failure> {
    let mut ledger = BTreeSet::new();
    let mut balances = BTreeMap::new();
    let mut shown = BTreeMap::new();
    for account in 0..ACCOUNTS {
        let url = format!("{base}/accounts/{}", name(account));
        let balance: Value = client.get(&url).send().await?.error_for_status()?.json().await?;
        shown.insert(name(account), balance["balance"].as_i64().ok_or("no balance")?);
        let transfers: Vec<Value> = client
            .get(format!("{url}/transfers"))
            .send()
            .await?
            .error_for_status()?
            .json()
            .await?;
        for transfer in transfers {
            let amount = transfer["amount"].as_i64().ok_or("no amount")?;
            *balances.entry(name(account)).or_insert(BALANCE) -= amount;
            *balances
                .entry(transfer["to"].as_str().ok_or("no receiver")?.to_owned())
                .or_insert(BALANCE) += amount;
            let key = transfer["idempotency_key"].as_str().ok_or("no key")?.to_owned();
            if !ledger.insert(key.clone()) {
                return Err(format!("{key} stands in the ledger twice").into());
            }
        }
    }
    let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
    for status in answered.values() {
        *statuses.entry(*status).or_default() += 1;
    }
    let good: BTreeSet<String> = answered
        .iter()
        .filter(|(_, status)| (200..300).contains(*status))
        .map(|(key, _)| key.clone())
        .collect();
    let lost = good.difference(&ledger).count();
    let extra = ledger.difference(&good).count();
    let wrong = shown
        .iter()
        .filter(|(account, shown)| balances.get(*account).unwrap_or(&BALANCE) != *shown)
        .count();
    for (status, count) in &statuses {
        println!("{count} answered {status}");
    }
    let share = good.len() as f64 / answered.len().max(1) as f64 * 100.0;
    Ok(Figure {
        line: format!(
            "{} transfers in {} s, {share:.2} % answered 2xx, {lost} of them not in the ledger, {extra} others in it, {wrong} of {ACCOUNTS} balances wrong",
            answered.len(),
            LENGTH.as_secs()
        ),
        reached: share >= 95.0 && answered.len() > 100 && lost == 0 && extra == 0 && wrong == 0,
    })
}

fn name(account: u64) -> String {
    format!("acct-{account}")
}
