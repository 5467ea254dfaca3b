//! What the tests stand on: databases, replicas, requests.

use std::time::{Duration, Instant};

use pause_kit::gates::{Gate, Gates};
use pause_kit::reaper::Ended;
use pause_kit::services::{Child, DatabaseUrl, ProcessSpec, TestServices, for_tests};
use reqwest::{Client, Response};
use serde_json::{Value, json};
use tokio_postgres::NoTls;

pub(crate) const PAYDB: &str = env!("CARGO_BIN_EXE_paydb");
pub(crate) const WORKER: &str = env!("CARGO_BIN_EXE_paydb-worker");

/// How long anything may take that is waited for.
pub(crate) const SOON: Duration = Duration::from_secs(30);

/// A token of epoch 1, by its small number.
pub(crate) fn token(number: i64) -> i64 {
    (1 << 48) + number
}

/// One test's database, with paydb's schema once a replica has started on it.
pub(crate) struct Bench {
    pub(crate) services: &'static TestServices,
    pub(crate) database: DatabaseUrl,
}

impl Bench {
    pub(crate) async fn new() -> Bench {
        let services = for_tests().await;
        let database = services.fresh_database().await;
        Bench { services, database }
    }

    /// A replica on a database that is ready for transfers: epoch 1 is registered, and `acct-1` and `acct-2` hold 1000.
    pub(crate) async fn ready() -> (Bench, Paydb) {
        let bench = Bench::new().await;
        let paydb = bench.paydb().await;
        bench
            .sql("SELECT fence.register_epoch('entity', 1); SELECT fence.register_epoch('coord', 1)")
            .await;
        for account in ["acct-1", "acct-2"] {
            let made = paydb
                .post("/accounts", json!({"id": account, "balance": 1000}))
                .await;
            assert_eq!(made.status(), 201);
        }
        (bench, paydb)
    }

    /// Starts a replica and waits until it listens.
    pub(crate) async fn paydb(&self) -> Paydb {
        self.paydb_at(self.database.as_str()).await
    }

    /// The same, on another way to the database.
    pub(crate) async fn paydb_at(&self, database_url: &str) -> Paydb {
        let child = self
            .spawn_paydb(&["--listen", "127.0.0.1:0", "--database-url", database_url])
            .await;
        let address = child.wait_line("listening on ", SOON).await.unwrap();
        Paydb { child, address }
    }

    pub(crate) async fn spawn_paydb(&self, args: &[&str]) -> Child {
        let mut spec = ProcessSpec::new("paydb", PAYDB).args(args.iter().copied());
        spec.env_remove = ["LISTEN", "DATABASE_URL"].map(str::to_owned).to_vec();
        self.services.services().spawn(spec).await.unwrap()
    }

    /// Runs statements as the database's owner.
    pub(crate) async fn sql(&self, statements: &str) {
        self.try_sql(statements).await.unwrap();
    }

    pub(crate) async fn try_sql(&self, statements: &str) -> Result<(), tokio_postgres::Error> {
        self.client().await.batch_execute(statements).await
    }

    /// One value, as text.
    pub(crate) async fn ask(&self, question: &str) -> String {
        let messages = self.client().await.simple_query(question).await.unwrap();
        messages
            .iter()
            .find_map(|message| match message {
                tokio_postgres::SimpleQueryMessage::Row(row) => Some(row.get(0).unwrap_or("NULL").to_owned()),
                _ => None,
            })
            .unwrap()
    }

    pub(crate) async fn client(&self) -> tokio_postgres::Client {
        let (client, connection) = tokio_postgres::connect(self.database.as_str(), NoTls)
            .await
            .unwrap();
        tokio::spawn(connection);
        client
    }

    /// How many transfers there are, and whether the balances are their fold over 1000 an account.
    pub(crate) async fn transfers(&self) -> i64 {
        let off = "SELECT count(*) FROM account a WHERE balance <> 1000
            + (SELECT coalesce(sum(amount), 0) FROM transfer WHERE to_account = a.id)
            - (SELECT coalesce(sum(amount), 0) FROM transfer WHERE from_account = a.id)";
        assert_eq!(self.ask(off).await, "0", "balances are the fold of the ledger");
        self.ask("SELECT count(*) FROM transfer").await.parse().unwrap()
    }

    pub(crate) async fn mark(&self, account: &str) -> String {
        self.ask(&format!(
            "SELECT coalesce((SELECT token FROM fence.high_water WHERE class = 'paydb.account' AND key = '{account}'), 0)"
        ))
        .await
    }
}

/// A running replica.
pub(crate) struct Paydb {
    pub(crate) child: Child,
    pub(crate) address: String,
}

impl Paydb {
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        client().get(self.url(path)).send().await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Response {
        client().post(self.url(path)).json(&body).send().await.unwrap()
    }

    /// The ordinary transfer: 10 from `acct-1` to `acct-2` under a token, its grant `g<number>`.
    pub(crate) async fn transfer(&self, number: i64, key: &str) -> Response {
        transfer(&self.address, number, key, order()).await
    }

    pub(crate) async fn fence(&self, number: i64) -> Response {
        let request = client().post(self.url("/accounts/acct-1/fence"));
        request
            .header("Fencing-Token", header(number))
            .send()
            .await
            .unwrap()
    }

    pub(crate) async fn stop(&self) -> Ended {
        self.child.terminate().await.unwrap();
        self.child.exited().await.unwrap()
    }
}

pub(crate) fn order() -> Value {
    json!({"to": "acct-2", "amount": 10, "reference": "order-7"})
}

/// The header of a grant `g<number>` in epoch 1.
pub(crate) fn header(number: i64) -> String {
    format!("\"{}\";grant=\"g{number}\"", token(number))
}

pub(crate) async fn transfer(address: &str, number: i64, key: &str, body: Value) -> Response {
    let request = client().post(format!("http://{address}/accounts/acct-1/transfers"));
    request
        .header("Fencing-Token", header(number))
        .header("Idempotency-Key", key)
        .json(&body)
        .send()
        .await
        .unwrap()
}

/// Waits until a worker stands at a gate.
pub(crate) async fn stands_at(gates: &Gates, name: &str) -> Gate {
    let arrived = tokio::time::timeout(SOON, gates.arrived(name)).await;
    arrived.expect("a worker at the gate").unwrap()
}

/// Waits for the event itself: a replica's connection to this database waits for a lock.
pub(crate) async fn wait_for_lock(bench: &Bench) {
    let client = bench.client().await;
    let question = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name = 'paydb'";
    let began = Instant::now();
    while client.query_one(question, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        assert!(began.elapsed() < SOON, "nothing ever waited");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub(crate) fn client() -> Client {
    Client::builder().no_proxy().timeout(SOON).build().unwrap()
}

/// The problem in an answer, checked to be one.
pub(crate) async fn problem(response: Response, status: u16, kind: &str) -> Value {
    let text = refused(response, status).await;
    let body: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(body["type"], format!("urn:{kind}"), "{text}");
    assert_eq!(body["status"], status);
    body
}

pub(crate) async fn refused(response: Response, status: u16) -> String {
    let found = response.status().as_u16();
    let content_type = response.headers()["content-type"].to_str().unwrap().to_owned();
    let text = response.text().await.unwrap();
    assert_eq!(found, status, "{text}");
    assert_eq!(content_type, "application/problem+json", "{text}");
    text
}
