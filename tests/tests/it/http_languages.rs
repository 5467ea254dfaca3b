//! The small services in other languages: a late holder's write, its successor's, and what a service that forgot its guard is
//! told by the database.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use pause_kit::services::DatabaseUrl;
use reqwest::{Client, Method};
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};

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
};

const SPRING: Service = Service {
    folder: "spring",
    code: "src/main/java/orders/Orders.java",
    build: Some("mvn -q -B -o package"),
    run: &["java", "-jar", "target/orders.jar"],
    needs: (
        "mvn --version && test -e examples/spring/target/orders.jar",
        "apt-get install default-jdk-headless maven, and mvn -B package in examples/spring",
    ),
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
    let old = format!("\"{TOKEN}\";grant=\"a0c9\"");
    let new = format!("\"{}\";grant=\"b2f1\"", TOKEN + 6);

    assert_eq!(whole.write(&[&old], "by a0c9").await, 200);
    assert_eq!(whole.fence(&new).await, 204);
    // From its successor's raise on the older one is late, though nothing was written since.
    assert_eq!(whole.write(&[&old], "late").await, 412);
    assert_eq!(whole.fence(&old).await, 412);
    assert_eq!(whole.write(&[&new], "by b2f1").await, 200);
    // A token of another grant, one beyond every epoch, none, two in either order, and what is no token.
    let other = new.replace("b2f1", "c3e4");
    let beyond = format!("\"{}\";grant=\"a\"", i64::MAX);
    for (fields, status) in [
        (&[other.as_str()][..], 412),
        (&[&beyond], 409),
        (&[], 428),
        (&[&new, &old], 400),
        (&[&old, &new], 400),
        (&[&format!("{new}, {new}")], 400),
        (&[&TOKEN.to_string()], 400),
        (&["\"9223372036854775808\";grant=\"a\""], 400),
        (&["\"0281474976710679\";grant=\"a\""], 400),
        (&["\"\u{661}\u{662}\";grant=\"a\""], 400),
    ] {
        assert_eq!(
            whole.write(fields, "wrong").await,
            status,
            "{}: {fields:?}",
            service.folder
        );
    }
    assert_eq!(state(&client).await, "by b2f1");

    // Without the line that admits, the database refuses every write.
    let forgetful = Running::start(service, &database, |text| {
        let kept = text.lines().filter(|line| !admits(line));
        kept.collect::<Vec<_>>().join("\n") + "\n"
    })
    .await;
    assert_eq!(forgetful.write(&[&new], "forgotten").await, 428);
    assert_eq!(state(&client).await, "by b2f1");
}

fn admits(line: &str) -> bool {
    line.contains("fence.admit")
}

/// A copy of a service that answers.
struct Running {
    url: String,
    http: Client,
    folder: TempDir,
    _child: Child,
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
        let mut child = Command::new(service.run[0])
            .args(&service.run[1..])
            .env("DATABASE_URL", database.as_str())
            .env("PORT", port.to_string())
            .env("SERVER_PORT", port.to_string())
            .env("SERVER_ADDRESS", "127.0.0.1")
            .env("SPRING_DATASOURCE_URL", format!("jdbc:postgresql://{rest}"))
            .env("SPRING_DATASOURCE_USERNAME", &login.role)
            .env("SPRING_DATASOURCE_PASSWORD", &login.password)
            .env("SPRING_DATASOURCE_HIKARI_MAXIMUM_POOL_SIZE", "2")
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let url = format!("http://127.0.0.1:{port}/orders/42");
        let http = Client::builder().no_proxy().build().unwrap();
        let answers = async {
            // It has no other sign of life in common: asked until it answers.
            while http.get(&url).send().await.is_err() {
                if let Some(status) = child.try_wait().unwrap() {
                    let mut said = String::new();
                    for pipe in [
                        child
                            .stdout
                            .take()
                            .map(|pipe| Box::new(pipe) as Box<dyn tokio::io::AsyncRead + Unpin>),
                        child
                            .stderr
                            .take()
                            .map(|pipe| Box::new(pipe) as Box<dyn tokio::io::AsyncRead + Unpin>),
                    ]
                    .into_iter()
                    .flatten()
                    {
                        let mut pipe = pipe;
                        pipe.read_to_string(&mut said).await.unwrap();
                    }
                    panic!("{} ended with {status}: {said}", service.folder);
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(300), answers)
            .await
            .unwrap_or_else(|_| panic!("examples/{} does not answer", service.folder));
        Running {
            url,
            http,
            folder,
            _child: child,
        }
    }

    async fn write(&self, fields: &[&str], state: &str) -> u16 {
        let body = serde_json::json!({ "state": state }).to_string();
        let mut request = self.http.request(Method::PUT, &self.url).body(body);
        for field in fields {
            request = request.header("Fencing-Token", *field);
        }
        self.answer(request.header("Content-Type", "application/json"))
            .await
    }

    async fn fence(&self, field: &str) -> u16 {
        let request = self.http.post(format!("{}/fence", self.url));
        self.answer(request.header("Fencing-Token", field)).await
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> u16 {
        let answer = request.send().await.unwrap();
        let status = answer.status().as_u16();
        let text = answer.text().await.unwrap();
        assert!(status < 500, "{}: {status} {text}", self.folder.path().display());
        status
    }
}
