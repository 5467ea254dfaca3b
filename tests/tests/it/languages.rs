//! The small examples, one a language: a paused holder's write, its successor's, and what a forgetful one is told.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use pause_kit::services::{DatabaseUrl, for_tests};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio_postgres::{Client, NoTls};

use crate::source::{read, root};

/// A program that sends orders.
struct Language {
    /// Its folder under `examples`.
    folder: &'static str,
    /// Its one file of code.
    code: &'static str,
    /// What starts it, in its folder.
    run: &'static [&'static str],
    /// What must be there, and what to do where it is not; ./dev test does.
    needs: (&'static str, &'static str),
    /// What it says on its line that admits.
    admits: &'static str,
}

const PYTHON: Language = Language {
    folder: "python-psycopg",
    code: "send.py",
    run: &["/usr/bin/python3", "send.py"],
    needs: (
        "/usr/bin/python3 -c 'import psycopg'",
        "apt-get install python3-psycopg",
    ),
    admits: "fence.admit",
};

const ORM: Language = Language {
    folder: "python-sqlalchemy",
    code: "send.py",
    run: &["/usr/bin/python3", "send.py"],
    needs: (
        "/usr/bin/python3 -c 'import sqlalchemy, psycopg2'",
        "apt-get install python3-sqlalchemy python3-psycopg2",
    ),
    admits: "@event",
};

const NODE: Language = Language {
    folder: "node-pg",
    code: "send.js",
    run: &["node", "send.js"],
    needs: (
        "node --version && test -d examples/node-pg/node_modules/pg",
        "apt-get install nodejs npm, and npm ci in examples/node-pg",
    ),
    admits: "fence.admit",
};

const GO: Language = Language {
    folder: "go-pgx",
    code: "main.go",
    run: &["./send"],
    needs: (
        "go version",
        "install Go 1.25 or newer; or leave this out: --skip a_holder_in_go",
    ),
    admits: "fence.admit",
};

const JAVA: Language = Language {
    folder: "java-jdbc",
    code: "Send.java",
    run: &["java", "-cp", "/usr/share/java/postgresql.jar", "Send.java"],
    needs: (
        "javac -version && test -e /usr/share/java/postgresql.jar",
        "apt-get install default-jdk-headless libpostgresql-jdbc-java",
    ),
    admits: "fence.admit",
};

const LANGUAGES: [&Language; 5] = [&PYTHON, &ORM, &NODE, &GO, &JAVA];

/// What ends, or begins the end of, each line that the guard costs.
const MARK: &str = "the fence";

#[test]
fn each_small_example_is_under_60_lines_with_at_most_5_for_the_fence() {
    for language in LANGUAGES {
        let text = read(&Path::new("examples").join(language.folder).join(language.code));
        let fence = text.lines().filter(|line| line.contains(MARK)).count();
        let lines = text.lines().count();
        let found = format!(
            "{}: {lines} lines, {fence} of them for the fence",
            language.folder
        );
        assert!(lines < 60 && (2..=5).contains(&fence), "{found}");
        // Nothing of the guard stands on a line that is not counted.
        let hidden: Vec<&str> = text
            .lines()
            .filter(|line| !line.contains(MARK))
            .filter(|line| line.contains("fence.") || line.contains("\"ZF") || line.contains("'ZF"))
            .collect();
        assert!(hidden.is_empty(), "{}: {hidden:?}", language.folder);
    }
}

/// Examples of the lock side, which the tests of fence-lock run.
const LOCKS: [&str; 2] = ["go-etcd", "python-etcd"];

/// Examples of a continuous integration, which the tests of workflows read.
const WORKFLOWS: [&str; 1] = ["github-actions"];

#[test]
fn every_example_is_known_to_the_tests() {
    let known: Vec<&str> = LANGUAGES
        .iter()
        .map(|language| language.folder)
        .chain(
            crate::http_languages::SERVICES
                .iter()
                .map(|service| service.folder),
        )
        .chain(fence_tests::examples::EXAMPLES.iter().map(|example| example.name))
        .chain(LOCKS)
        .chain(WORKFLOWS)
        .collect();
    let mut there = 0;
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            there += 1;
            let name = entry.file_name().into_string().unwrap();
            assert!(known.contains(&name.as_str()), "no test runs examples/{name}");
        }
    }
    assert_eq!(there, known.len());
}

#[tokio::test]
async fn a_holder_in_python_writes_and_is_refused_once_its_successor_has_been_there() {
    writes_and_is_refused(&PYTHON).await;
}

#[tokio::test]
async fn a_holder_in_python_with_an_orm_writes_and_is_refused_once_its_successor_has_been_there() {
    writes_and_is_refused(&ORM).await;
}

#[tokio::test]
async fn a_holder_in_javascript_writes_and_is_refused_once_its_successor_has_been_there() {
    writes_and_is_refused(&NODE).await;
}

#[tokio::test]
async fn a_holder_in_go_writes_and_is_refused_once_its_successor_has_been_there() {
    writes_and_is_refused(&GO).await;
}

#[tokio::test]
async fn a_holder_in_java_writes_and_is_refused_once_its_successor_has_been_there() {
    writes_and_is_refused(&JAVA).await;
}

async fn writes_and_is_refused(language: &Language) {
    let (database, client) = orders().await;
    let whole = Program::copy(language, |text| text).await;

    // The paused holder has read; its successor comes, reads and writes; it wakes up and is told, and has changed nothing.
    let paused = whole.hold(&database, TOKEN, "a0c9").await;
    let successor = whole.hold(&database, TOKEN + 6, "b2f1").await;
    let (code, said, complained) = successor.wake().await;
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "order 42 sent by b2f1"),
        "{complained}"
    );
    let (code, said, complained) = paused.wake().await;
    let stale = format!("refused, ZF001: presented {TOKEN}, seen {}", TOKEN + 6);
    assert_eq!((code, said.as_str()), (Some(1), ""), "{complained}");
    assert!(complained.lines().any(|line| line == stale), "{complained}");
    assert_eq!(state(&client).await, "sent by b2f1");

    // Started once more under its old token it does not even get to read.
    let (code, said, complained) = whole.start(&database, TOKEN, "a0c9").ended().await;
    assert_eq!((code, said.as_str()), (Some(1), ""), "{complained}");
    assert!(complained.lines().any(|line| line == stale), "{complained}");

    // Without the line that admits, a rightful holder's write is refused as well.
    let forgetful = Program::copy(language, |text| {
        let without: Vec<&str> = text
            .lines()
            .filter(|line| !line.contains(language.admits))
            .collect();
        assert_eq!(without.len() + 1, text.lines().count(), "{}", language.folder);
        without.join("\n") + "\n"
    })
    .await;
    let holder = forgetful.hold(&database, TOKEN + 9, "c1d0").await;
    let (code, said, complained) = holder.wake().await;
    assert!(code != Some(0) && said.is_empty(), "{code:?} {said}");
    assert!(complained.contains("missing admission"), "{complained}");
    assert_eq!(state(&client).await, "sent by b2f1");
}

/// A token of epoch 1.
pub(crate) const TOKEN: i64 = (1 << 48) + 17;

/// A database with the guard and the examples' table, as the role of an application, and a connection as its owner.
pub(crate) async fn orders() -> (DatabaseUrl, Client) {
    let services = for_tests().await;
    let owners = services.fresh_database().await;
    let (client, connection) = tokio_postgres::connect(owners.as_str(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let folder = root().join("fence-pg/sql");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let table = root().join("examples/orders.sql");
    for file in files.into_iter().chain([table.clone()]) {
        client.batch_execute(&read(&file)).await.unwrap();
    }
    // What the file says that a program needs.
    let login = services
        .postgres()
        .create_login(&format!("{}_app", owners.database()))
        .await
        .unwrap();
    let text = read(&table);
    let needed = text.lines().find_map(|line| line.strip_prefix("--   ")).unwrap();
    let connects = format!("GRANT CONNECT ON DATABASE {} TO ROLE;", owners.database());
    let grants = format!("{connects}{needed}").replace("ROLE", &login.role);
    client.batch_execute(&grants).await.unwrap();
    (services.postgres().url(owners.database(), &login), client)
}

pub(crate) async fn state(client: &Client) -> String {
    let found = "SELECT state FROM orders WHERE id = 42";
    client.query_one(found, &[]).await.unwrap().get(0)
}

/// A copy of an example, ready to run.
struct Program {
    language: &'static str,
    run: Vec<String>,
    folder: TempDir,
}

impl Program {
    async fn copy(language: &Language, change: impl Fn(String) -> String) -> Program {
        let (look, fix) = language.needs;
        let found = shell(look, &root()).await;
        assert!(
            found.is_ok(),
            "examples/{} needs what `{look}` looks for: {fix}; ./dev test does",
            language.folder
        );
        let folder = tempfile::tempdir().unwrap();
        let example = root().join("examples").join(language.folder);
        let (from, to) = (example.display(), folder.path().display());
        shell(&format!("cp -R {from}/. {to}"), &root()).await.unwrap();
        let code = folder.path().join(language.code);
        std::fs::write(&code, change(std::fs::read_to_string(&code).unwrap())).unwrap();
        if language.code.ends_with(".go") {
            shell("go build -mod=readonly -o send .", folder.path())
                .await
                .unwrap();
        }
        Program {
            language: language.folder,
            run: language.run.iter().map(|&word| word.to_owned()).collect(),
            folder,
        }
    }

    fn start(&self, database: &DatabaseUrl, token: i64, grant: &str) -> Running {
        let (login, rest) = (database.login(), database.as_str().split('@').nth(1).unwrap());
        let jdbc = format!(
            "jdbc:postgresql://{rest}?user={}&password={}",
            login.role, login.password
        );
        let mut child = Command::new(&self.run[0])
            .args(&self.run[1..])
            .args(["42", &token.to_string(), grant])
            .env("DATABASE_URL", database.as_str())
            .env("JDBC_URL", jdbc)
            .current_dir(self.folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {}: {error}", self.language, self.run[0]));
        let said = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child, said }
    }

    /// A holder that has raised its mark and read, and has not written yet.
    async fn hold(&self, database: &DatabaseUrl, token: i64, grant: &str) -> Running {
        let mut running = self.start(database, token, grant);
        let line = running.said.next_line();
        let line = tokio::time::timeout(WITHIN, line).await.unwrap().unwrap();
        let Some(line) = line else {
            panic!("{}: {:?}", self.language, running.ended().await)
        };
        assert!(line.contains("press Enter"), "{}: {line}", self.language);
        running
    }
}

/// How long a program may take, its start included, on a busy machine.
const WITHIN: Duration = Duration::from_secs(60);

struct Running {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// Lets it write.
    async fn wake(mut self) -> (Option<i32>, String, String) {
        let mut input = self.child.stdin.take().unwrap();
        input.write_all(b"\n").await.unwrap();
        drop(input);
        self.ended().await
    }

    /// Its exit code, and what else it says.
    async fn ended(mut self) -> (Option<i32>, String, String) {
        let mut lines = Vec::new();
        let mut complained = String::new();
        let ends = async {
            while let Some(line) = self.said.next_line().await.unwrap() {
                lines.push(line);
            }
            let mut errors = self.child.stderr.take().unwrap();
            errors.read_to_string(&mut complained).await.unwrap();
            self.child.wait().await.unwrap().code()
        };
        let code = tokio::time::timeout(WITHIN, ends).await.unwrap();
        (code, lines.join("\n"), complained)
    }
}

pub(crate) async fn shell(command: &str, folder: &Path) -> Result<(), String> {
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", command]).current_dir(folder).output();
    let output = output.await.unwrap();
    if output.status.success() {
        return Ok(());
    }
    let (said, complained) = (&output.stdout, &output.stderr);
    Err(format!(
        "{command}: {}{}",
        String::from_utf8_lossy(said),
        String::from_utf8_lossy(complained)
    ))
}
