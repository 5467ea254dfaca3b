//! The small services in other languages: a late holder's write, its successor's, what a service that forgot its guard is
//! told by the database, and what becomes of a service whose connections are lost.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

use fence_http::ProblemKind as K;
use pause_kit::services::{Child, DatabaseUrl, ProcessSpec, for_tests};
use reqwest::Client;
use tempfile::TempDir;
use tokio_postgres::NoTls;

use crate::languages::{TOKEN, orders, shell, state};
use crate::source::{read, root};

/// A service that keeps orders.
pub(crate) struct Service {
    /// Its folder under `examples`.
    pub(crate) folder: &'static str,
    code: &'static str,
    /// What builds a copy of it, if anything does.
    build: Option<&'static str>,
    run: &'static [&'static str],
    /// What must be there, and what to do where it is not; ./dev test does.
    needs: (&'static str, &'static str),
    /// What it answers when it was paused before COMMIT until the database ended its connection: some drivers hand on why the
    /// database did, others know no more than that it is gone.
    lost: &'static [K],
}

const EXPRESS: Service = Service {
    folder: "express",
    code: "server.js",
    build: None,
    run: &["node", "server.js"],
    needs: (
        "node --version && test -d examples/express/node_modules/express",
        "apt-get install nodejs npm, and npm ci in examples/express",
    ),
    lost: &[K::Retryable],
};

const FASTAPI: Service = Service {
    folder: "fastapi",
    code: "server.py",
    build: None,
    run: &["/usr/bin/python3", "server.py"],
    needs: (
        "/usr/bin/python3 -c 'import fastapi, uvicorn, psycopg'",
        "apt-get install python3-fastapi python3-uvicorn python3-psycopg",
    ),
    lost: &[K::Retryable, K::UnknownOutcome],
};

const SPRING: Service = Service {
    folder: "spring",
    code: "src/main/java/orders/Orders.java",
    build: Some("mvn -q -B -o package"),
    run: &["java", "-jar", "target/orders.jar"],
    needs: (
        "mvn --version && test -e examples/spring/target/orders.jar && \
         test -z \"$(find examples/spring/pom.xml examples/spring/src -newer examples/spring/target/orders.jar)\"",
        "apt-get install default-jdk-headless maven, and mvn -B package in examples/spring",
    ),
    lost: &[K::Retryable],
};

pub(crate) const SERVICES: [&Service; 3] = [&EXPRESS, &FASTAPI, &SPRING];

#[test]
fn each_small_service_is_under_80_lines_and_nothing_of_the_guard_is_hidden() {
    for service in SERVICES {
        let text = read(&Path::new("examples").join(service.folder).join(service.code));
        let lines = text.lines().count();
        assert!(lines < 80, "{}: {lines} lines", service.folder);
        let hidden: Vec<&str> = text
            .lines()
            .filter(|line| !line.contains("the fence"))
            .filter(|line| line.contains("fence.") || line.contains("ZF0"))
            .collect();
        assert!(hidden.is_empty(), "{}: {hidden:?}", service.folder);
    }
}

#[tokio::test]
async fn express_refuses_a_late_write_in_the_transaction_that_would_write_it() {
    refuses_a_late_write(&EXPRESS).await;
}

#[tokio::test]
async fn fastapi_refuses_a_late_write_in_the_transaction_that_would_write_it() {
    refuses_a_late_write(&FASTAPI).await;
}

#[tokio::test]
async fn spring_refuses_a_late_write_in_the_transaction_that_would_write_it() {
    refuses_a_late_write(&SPRING).await;
}

async fn refuses_a_late_write(service: &Service) {
    let (database, client) = orders().await;
    let whole = Running::start(service, &database, |text| text).await;
    let old = presented(0, "a0c9");
    let new = presented(6, "b2f1");

    assert_eq!(whole.write(&[&old], "by a0c9").await, Ok(200));
    assert_eq!(whole.fence("42", &new).await, Ok(204));
    // From its successor's raise on the older one is late, though nothing was written since.
    assert_eq!(whole.write(&[&old], "late").await, Err(K::Stale));
    assert_eq!(whole.fence("42", &old).await, Err(K::Stale));
    assert_eq!(whole.write(&[&new], "by b2f1").await, Ok(200));
    // A token of another grant, one beyond every epoch, none, two in either order, and what is no token.
    let other = new.replace("b2f1", "c3e4");
    let beyond = format!("\"{}\";grant=\"a\"", i64::MAX);
    for (fields, problem) in [
        (&[other.as_str()][..], K::Collision),
        (&[&beyond], K::UnknownEpoch),
        (&[], K::MissingToken),
        (&[&new, &old], K::MoreThanOne),
        (&[&old, &new], K::MoreThanOne),
        (&[&format!("{new}, {new}")], K::Malformed),
        (&[&TOKEN.to_string()], K::Malformed),
        (&["\"9223372036854775808\";grant=\"a\""], K::Malformed),
        (&["\"0281474976710679\";grant=\"a\""], K::Malformed),
        (&["\"\u{661}\u{662}\";grant=\"a\""], K::Malformed),
    ] {
        assert_eq!(
            whole.write(fields, "wrong").await,
            Err(problem),
            "{}: {fields:?}",
            service.folder
        );
    }
    assert_eq!(state(&client).await, "by b2f1");

    // Another text of the same number is that order's key, or none at all.
    let newer = presented(12, "d4f5");
    let raised = whole.fence("042", &newer).await;
    let late = whole.write(&[&new], "by b2f1").await;
    let known = [(Ok(204), Err(K::Stale)), (Err(K::MalformedKey), Ok(200))];
    assert!(known.contains(&(raised, late)), "{raised:?}, then {late:?}");

    // An order that is not there is fenced all the same.
    assert_eq!(whole.put("43", &[&newer], "none").await, Ok(404));
    assert_eq!(whole.put("43", &[&new], "none").await, Err(K::Stale));

    // What it cannot take is answered in the same form, by whichever part of it finds out.
    for body in ["", "{}", "[]", "{\"state\":", "{\"state\":null}"] {
        let refused = whole.send("42", &[&newer], body.to_owned()).await;
        let status = refused.unwrap_or_else(|kind| kind.status().as_u16());
        assert!(
            matches!(status, 400 | 415 | 422),
            "{}: {body:?}: {status}",
            service.folder
        );
    }
    assert_eq!(state(&client).await, "by b2f1");

    // Nobody but this machine can reach it.
    let elsewhere = TcpStream::connect(("127.0.0.2", whole.port));
    assert!(elsewhere.is_err(), "{} listens everywhere", service.folder);

    // Without the line that admits, the database refuses every write.
    let forgetful = Running::start(service, &database, |text| {
        let kept = text.lines().filter(|line| !admits(line));
        kept.collect::<Vec<_>>().join("\n") + "\n"
    })
    .await;
    assert_eq!(
        forgetful.write(&[&newer], "forgotten").await,
        Err(K::MissingToken)
    );
    assert_eq!(state(&client).await, "by b2f1");
    whole.end().await;
    forgetful.end().await;
}

fn admits(line: &str) -> bool {
    line.contains("fence.admit")
}

#[tokio::test]
async fn express_outlives_its_connections() {
    outlives_its_connections(&EXPRESS).await;
}

#[tokio::test]
async fn fastapi_outlives_its_connections() {
    outlives_its_connections(&FASTAPI).await;
}

#[tokio::test]
async fn spring_outlives_its_connections() {
    outlives_its_connections(&SPRING).await;
}

async fn outlives_its_connections(service: &Service) {
    let (database, client) = orders().await;
    let running = Running::start(service, &database, |text| text).await;
    let old = presented(0, "a0c9");
    assert_eq!(running.write(&[&old], "by a0c9").await, Ok(200));

    // Paused between its write and its COMMIT, until the database has had enough.
    let postgres = for_tests().await.postgres();
    let (superuser, connection) = tokio_postgres::connect(postgres.superuser_url().as_str(), NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let ours = "SELECT count(*) FROM pg_stat_activity WHERE usename = $1";
    let role = database.login().role.as_str();
    let lock = "BEGIN; SELECT FROM orders WHERE id = 42 FOR UPDATE";
    client.batch_execute(lock).await.unwrap();
    let fields = [old.as_str()];
    let late = running.write(&fields, "late");
    let takeover = async {
        let waits = format!("{ours} AND wait_event_type = 'Lock'");
        until(|| async { count(&superuser, &waits, role).await == 1 }).await;
        let stopped = running.child.stop().await.unwrap();
        client.batch_execute("COMMIT").await.unwrap();
        let idles = format!("{ours} AND state LIKE 'idle in transaction%'");
        until(|| async { count(&superuser, &idles, role).await == 1 }).await;
        until(|| async { count(&superuser, &idles, role).await == 0 }).await;
        let raise = "SELECT fence.raise_mark('shop.order', '42', $1, 'b2f1')";
        client.execute(raise, &[&(TOKEN + 6)]).await.unwrap();
        stopped.resume().await.unwrap();
    };
    let (late, ()) = tokio::join!(late, takeover);
    assert!(
        late.is_err_and(|kind| service.lost.contains(&kind)),
        "{late:?}: {}",
        running.said()
    );
    assert_eq!(running.write(&[&old], "late").await, Err(K::Stale));
    assert_eq!(state(&client).await, "by a0c9");

    // The database goes away with the connection that is at rest, which is said once it is known, and comes back.
    let new = presented(6, "b2f1");
    assert_eq!(running.fence("42", &new).await, Ok(204));
    let allow = |allowed: bool| {
        format!(
            "ALTER DATABASE {} ALLOW_CONNECTIONS {allowed}",
            database.database()
        )
    };
    superuser.batch_execute(&allow(false)).await.unwrap();
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = $1";
    count(&superuser, end, role).await;
    let unavailable = || async { running.write(&[&new], "unavailable").await == Err(K::Unavailable) };
    until(unavailable).await;
    assert_eq!(running.fence("42", &new).await, Err(K::Unavailable));
    assert_eq!(state(&client).await, "by a0c9");
    superuser.batch_execute(&allow(true)).await.unwrap();
    until(|| async { running.write(&[&new], "by b2f1").await == Ok(200) }).await;
    running.end().await;
}

/// One number that a statement gives for a role.
async fn count(client: &tokio_postgres::Client, statement: &str, role: &str) -> i64 {
    client.query_one(statement, &[&role]).await.unwrap().get(0)
}

/// Looks again and again until it is so.
async fn until<F: Future<Output = bool>>(so: impl Fn() -> F) {
    let looks = async {
        while !so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WITHIN, looks)
        .await
        .expect("what is waited for comes");
}

/// On a busy machine, with the start of a Java machine in it.
const WITHIN: Duration = Duration::from_secs(300);

/// The field that the holder of a grant sends.
fn presented(number: i64, grant: &str) -> String {
    format!("\"{}\";grant=\"{grant}\"", TOKEN + number)
}

/// A copy of a service that answers.
struct Running {
    port: u16,
    http: Client,
    child: Child,
    /// Where its copy lies.
    _folder: TempDir,
}

impl Running {
    async fn start(service: &Service, database: &DatabaseUrl, change: impl Fn(String) -> String) -> Running {
        let (look, fix) = service.needs;
        assert!(
            shell(look, &root()).await.is_ok(),
            "examples/{} needs what `{look}` looks for: {fix}; ./dev test does",
            service.folder
        );
        let folder = tempfile::tempdir().unwrap();
        let example = root().join("examples").join(service.folder);
        shell(
            &format!("cp -R {}/. {}", example.display(), folder.path().display()),
            &root(),
        )
        .await
        .unwrap();
        let code = folder.path().join(service.code);
        let before = std::fs::read_to_string(&code).unwrap();
        let after = change(before.clone());
        std::fs::write(&code, &after).unwrap();
        if let (Some(build), true) = (service.build, after != before) {
            shell(build, folder.path()).await.unwrap();
        }
        // Free a moment ago; nobody else's unless the system hands it out again at once.
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let (login, rest) = (database.login(), database.as_str().split('@').nth(1).unwrap());
        let mut process = ProcessSpec::new(service.folder, service.run[0])
            .args(service.run[1..].iter().copied())
            .env("DATABASE_URL", database.as_str())
            .env("PORT", &port.to_string())
            .env("SERVER_PORT", &port.to_string())
            .env("SPRING_DATASOURCE_URL", &format!("jdbc:postgresql://{rest}"))
            .env("SPRING_DATASOURCE_USERNAME", &login.role)
            .env("SPRING_DATASOURCE_PASSWORD", &login.password)
            .env("SPRING_DATASOURCE_HIKARI_MAXIMUM_POOL_SIZE", "2");
        process.cwd = Some(folder.path().to_owned());
        let child = for_tests().await.services().spawn(process).await.unwrap();
        let running = Running {
            port,
            http: Client::builder().no_proxy().build().unwrap(),
            child,
            _folder: folder,
        };
        // It has no other sign of life in common: asked until it answers.
        until(|| async {
            let ended = running.child.ended();
            assert!(ended.is_none(), "ended with {ended:?}: {}", running.said());
            running.http.get(running.url("42")).send().await.is_ok()
        })
        .await;
        running
    }

    fn url(&self, order: &str) -> String {
        format!("http://127.0.0.1:{}/orders/{order}", self.port)
    }

    async fn write(&self, fields: &[&str], state: &str) -> Result<u16, K> {
        self.put("42", fields, state).await
    }

    async fn put(&self, order: &str, fields: &[&str], state: &str) -> Result<u16, K> {
        let body = serde_json::json!({ "state": state }).to_string();
        self.send(order, fields, body).await
    }

    async fn send(&self, order: &str, fields: &[&str], body: String) -> Result<u16, K> {
        let request = self.http.put(self.url(order)).body(body);
        self.answer(request.header("Content-Type", "application/json"), fields)
            .await
    }

    async fn fence(&self, order: &str, field: &str) -> Result<u16, K> {
        let request = self.http.post(self.url(order) + "/fence");
        self.answer(request, &[field]).await
    }

    /// The guard's kind of problem as its client layer reads it, or the service's own answer. Neither tells who is refused
    /// anything with which it would be let in.
    async fn answer(&self, request: reqwest::RequestBuilder, fields: &[&str]) -> Result<u16, K> {
        let request = fields
            .iter()
            .fold(request, |request, field| request.header("Fencing-Token", *field));
        let answer = match request.send().await {
            Ok(answer) => answer,
            Err(error) => panic!("{error:?}: {}", self.said()),
        };
        let status = answer.status();
        let headers = answer.headers().clone();
        let text = answer.text().await.unwrap();
        let sent = fields.concat();
        let marks = [0, 6, 12].map(|number| (TOKEN + number).to_string());
        for secret in ["a0c9", "b2f1", "d4f5", "SELECT", "UPDATE", "PL/pgSQL"]
            .into_iter()
            .chain(marks.iter().map(String::as_str))
        {
            assert!(
                sent.contains(secret) || !text.contains(secret),
                "{secret}: {text}"
            );
        }
        if status.is_success() {
            return Ok(status.as_u16());
        }
        let content_type = headers["content-type"].to_str().unwrap();
        let essence = content_type.split(';').next().unwrap();
        assert_eq!(essence, "application/problem+json", "{status} {text}");
        let problem: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(problem["status"], status.as_u16(), "{text}");
        assert_eq!(headers.contains_key("retry-after"), status == 503, "{text}");
        let uri = problem["type"].as_str().unwrap_or("about:blank");
        if uri == "about:blank" {
            return Ok(status.as_u16());
        }
        let kind = K::from_uri(uri).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(kind.status(), status, "{text}");
        Err(kind)
    }

    /// What it said last.
    fn said(&self) -> String {
        format!("{} said {}", self.child.name(), self.child.tail())
    }

    async fn end(self) {
        self.child.kill().await.unwrap();
    }
}
