//! Other languages take part: the examples, and the commands in docs/minting.md, make the grants that this crate makes.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use fence_core::{ClassName, Key, Token};
use fence_lock::{AcquireError, EtcdStore, GrantEvent, GrantWatch, Release};
use pause_kit::services::ProcessSpec;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use crate::support::{endpoint, fresh_prefix, session, shared, store_in};

/// How long a lock that is held is asked for in vain.
const IN_VAIN: Duration = Duration::from_secs(1);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A process that takes the lock `class` / `key` under a prefix, and holds it until it is ended.
struct Language {
    class: &'static str,
    key: &'static str,
    command: fn(etcd: &str, prefix: &str, resource: &str) -> Command,
}

/// A program of another language, in its folder. Its missing interpreter fails the test with what to do.
fn program(name: &str, install: &str, folder: &str) -> Command {
    let found = std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()));
    assert!(
        found,
        "{name} was not found: install {install}, or run ./dev test, which does"
    );
    let mut command = Command::new(name);
    command.current_dir(root().join(folder));
    command
}

fn node(etcd: &str, prefix: &str, _resource: &str) -> Command {
    let mut node = program("node", "nodejs", "examples/node-postgres");
    let take = "const [etcd, prefix] = process.argv.slice(1); \
                require('./lock.js').take({ etcd, prefix, tier: 'entity', ttl: 2, className: 'library.document', key: \"a/b c'é:~\" }) \
                .then((hold) => console.log(`\"${hold.token}\";grant=\"${hold.grant}\"`))";
    node.args(["-e", take, etcd, prefix]);
    node
}

fn shell(etcd: &str, prefix: &str, resource: &str) -> Command {
    program("curl", "curl", ".");
    let mut sh = program("sh", "dash", "examples/python-http");
    sh.args([
        "reserve.sh",
        etcd,
        prefix,
        "2s",
        resource,
        "item-1",
        "order-7",
        "1",
    ]);
    sh
}

fn etcdctl(etcd: &str, prefix: &str, _resource: &str) -> Command {
    let mut sh = program("sh", "dash", ".");
    program("etcdctl", "etcd-client", ".");
    let page = std::fs::read_to_string(root().join("docs/minting.md")).unwrap();
    let block = page.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let ours = block.replace("prefix=fence", &format!("prefix={prefix}"));
    assert_ne!(ours, block);
    // Whoever runs the commands by hand keeps the lease alive beside them.
    let script = format!("{ours}\nexec etcdctl lease keep-alive $lease");
    sh.args(["-euc", &script])
        .env("ETCDCTL_API", "3")
        .env("ETCDCTL_ENDPOINTS", etcd);
    sh
}

fn python(etcd: &str, prefix: &str, _resource: &str) -> Command {
    let mut python = program("python3", "python3", "examples/python-etcd");
    python.args(["lock.py", etcd, prefix, "entity", "2", "shop.order", "a/b c'é:~"]);
    python
}

fn go(etcd: &str, prefix: &str, _resource: &str) -> Command {
    let mut go = Command::new(go_program());
    go.args([etcd, prefix, "entity", "2", "shop.order", "a/b c'é:~"]);
    go
}

/// The example in Go, built. (`go run` would outlive its own end.)
fn go_program() -> PathBuf {
    let program_file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go-etcd");
    let mut build = program("go", "Go 1.25 or newer", "examples/go-etcd").into_std();
    let built = build
        .args(["build", "-mod=readonly", "-o"])
        .arg(&program_file)
        .arg(".")
        .output();
    let built = built.unwrap();
    assert!(
        built.status.success(),
        "examples/go-etcd needs Go 1.25 or newer: {}",
        String::from_utf8_lossy(&built.stderr)
    );
    program_file
}

/// A holder in another language, and where it sends its first request if it sends one.
struct Started {
    child: Child,
    resource: TcpListener,
    /// Its request, which is never answered.
    sent: Option<TcpStream>,
}

impl Started {
    async fn new(language: &Language, etcd: &str, prefix: &str) -> Started {
        let resource = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = resource.local_addr().unwrap().to_string();
        let mut command = (language.command)(etcd, prefix, &address);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let child = command.spawn().unwrap();
        Started {
            child,
            resource,
            sent: None,
        }
    }

    /// The claim that it prints or sends, in the form of `Fencing-Token`; nothing once it has ended without one.
    async fn claim(&mut self) -> Option<String> {
        let mut printed = BufReader::new(self.child.stdout.as_mut().unwrap()).lines();
        let (sent, _) = tokio::select! {
            accepted = self.resource.accept() => accepted.unwrap(),
            claim = first_claim(&mut printed) => return claim,
        };
        first_claim(&mut BufReader::new(self.sent.insert(sent)).lines()).await
    }
}

async fn first_claim<R: AsyncBufRead + Unpin>(lines: &mut Lines<R>) -> Option<String> {
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("grant=") {
            return Some(line.trim_start_matches("Fencing-Token: ").to_owned());
        }
    }
    None
}

/// The next grant that the store tells of: the lock, the token, and the claim in the form of `Fencing-Token`.
async fn granted(watch: &mut GrantWatch) -> (ClassName, Key, Token, String) {
    loop {
        let event = tokio::time::timeout(Duration::from_secs(20), watch.next()).await;
        if let GrantEvent::Granted {
            class,
            key,
            token,
            grant_id,
            ..
        } = event.unwrap().unwrap()
        {
            return (class, key, token, format!("\"{token}\";grant=\"{grant_id}\""));
        }
    }
}

async fn excludes(language: Language) {
    let (prefix, etcd) = (fresh_prefix(), endpoint().await);
    let store: EtcdStore = store_in(&prefix).await;
    let (class, key) = (
        ClassName::new(language.class).unwrap(),
        Key::text(language.key).unwrap(),
    );
    let mut watch = store.watch_grants().await.unwrap();
    let ours = session(&store).await;

    // Theirs: the same lock in the store's own eyes, the same token, and ours waits for it.
    let mut theirs = Started::new(&language, &etcd, &prefix).await;
    let said = theirs.claim().await.expect("it ended before it was granted");
    let (seen_class, seen_key, first, seen) = granted(&mut watch).await;
    assert_eq!((&seen_class, &seen_key, &seen), (&class, &key, &said));
    let refused = ours.acquire_within(&class, &key, IN_VAIN).await.err();
    assert!(
        matches!(refused, Some(AcquireError::TimedOut { .. })),
        "{refused:?}"
    );
    theirs.child.kill().await.unwrap();

    // Ours, once their lease has lapsed: a larger token, and theirs waits for it.
    let hold = ours.acquire(&class, &key).await.unwrap();
    let second = hold.token().unwrap();
    assert_eq!(granted(&mut watch).await.2, second);
    assert!(first.as_i64() < second.as_i64());
    let mut theirs = Started::new(&language, &etcd, &prefix).await;
    let early = tokio::time::timeout(IN_VAIN, theirs.claim()).await;
    assert!(
        !matches!(&early, Ok(Some(_))),
        "granted while it was held: {early:?}"
    );
    drop(theirs);
    let released = hold.release().await.unwrap();
    assert_eq!(released, Release::Released);
    let mut theirs = Started::new(&language, &etcd, &prefix).await;
    theirs.claim().await.expect("it ended before it was granted");
    assert!(second.as_i64() < granted(&mut watch).await.2.as_i64());
}

#[tokio::test]
async fn a_lock_held_in_javascript_is_not_granted_to_rust_nor_the_other_way_round() {
    excludes(Language {
        class: "library.document",
        key: "a/b c'é:~",
        command: node,
    })
    .await;
}

#[tokio::test]
async fn a_lock_held_in_python_is_not_granted_to_rust_nor_the_other_way_round() {
    excludes(Language {
        class: "shop.order",
        key: "a/b c'é:~",
        command: python,
    })
    .await;
}

#[tokio::test]
async fn a_holder_in_go_is_kept_out_by_rust_and_keeps_it_out() {
    excludes(Language {
        class: "shop.order",
        key: "a/b c'é:~",
        command: go,
    })
    .await;
}

/// The two examples that wait in line and release: side by side with this crate on one cluster.
async fn stands_in_line_and_releases(command: fn(etcd: &str, prefix: &str, resource: &str) -> Command) {
    let (prefix, etcd) = (fresh_prefix(), endpoint().await);
    let store: EtcdStore = store_in(&prefix).await;
    let (class, key) = (
        ClassName::new("shop.order").unwrap(),
        Key::text("a/b c'é:~").unwrap(),
    );
    let mut watch = store.watch_grants().await.unwrap();
    let (first, last) = (session(&store).await, session(&store).await);
    let hold = first.acquire(&class, &key).await.unwrap();
    let built = command(&etcd, &prefix, "");
    let built = built.as_std();
    let arguments = built.get_args().map(|word| word.to_str().unwrap().to_owned());
    let mut spec = ProcessSpec::new("holder", built.get_program()).args(arguments);
    spec.cwd = built.get_current_dir().map(Path::to_owned);
    let theirs = shared().await.spawn(spec).await.unwrap();
    in_line(&store, 1).await;
    let waiting = tokio::spawn({
        let (class, key) = (class.clone(), key.clone());
        async move { last.acquire(&class, &key).await.map(|hold| hold.token()) }
    });
    in_line(&store, 2).await;
    let before = hold.token().unwrap();
    let _ = hold.release().await.unwrap();
    let said = theirs
        .wait_line("Fencing-Token: ", Duration::from_secs(20))
        .await
        .unwrap();
    assert!(!waiting.is_finished(), "a waiter was overtaken");
    assert_eq!(granted(&mut watch).await.2, before);
    let (_, _, theirs_token, claim) = granted(&mut watch).await;
    assert_eq!(said, claim);
    theirs.terminate().await.unwrap();
    let after = waiting.await.unwrap().unwrap().unwrap();
    let tokens = [before, theirs_token, after].map(|token| token.as_i64());
    assert!(tokens.is_sorted(), "{tokens:?}");
    // A release, and no loss.
    let event = tokio::time::timeout(Duration::from_secs(20), watch.next()).await;
    let event = event.unwrap().unwrap();
    assert!(
        matches!(&event, GrantEvent::Released { grant_id, .. } if claim.contains(grant_id.as_str())),
        "{event:?}"
    );
    assert_eq!(granted(&mut watch).await.2, after);
}

/// Waits until so many attempts wait.
async fn in_line(store: &EtcdStore, count: usize) {
    for _ in 0..1000 {
        let locks = store.locks().await.unwrap();
        if locks.iter().any(|lock| lock.waiting.len() == count) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{count} attempts never waited at once");
}

#[tokio::test]
async fn the_example_in_python_stands_in_line_with_rust_and_releases() {
    stands_in_line_and_releases(python).await;
}

#[tokio::test]
async fn a_holder_in_go_stands_in_line_with_rust_and_releases() {
    stands_in_line_and_releases(go).await;
}

#[tokio::test]
async fn a_lock_held_in_shell_is_not_granted_to_rust_nor_the_other_way_round() {
    excludes(Language {
        class: "stock.item",
        key: "item-1",
        command: shell,
    })
    .await;
}

#[tokio::test]
async fn a_lock_held_by_the_documented_commands_is_not_granted_to_rust_nor_the_other_way_round() {
    excludes(Language {
        class: "shop.order",
        key: "42",
        command: etcdctl,
    })
    .await;
}
