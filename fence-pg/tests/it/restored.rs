//! A server of one test, and servers that are started from copies of its data.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fence_core::Token;
use pause_kit::services::{Child, DatabaseUrl, Postgres, ProcessSpec, for_tests, free_port, locate};
use tokio_postgres::Client;

use crate::support::{CLASS, admit, client};

/// The server on which everything begins. Its database has the guard, and is owned by no superuser.
pub(crate) struct Origin {
    server: Postgres,
    pub(crate) url: DatabaseUrl,
    folder: PathBuf,
}

/// A server that runs from a copy.
pub(crate) struct Copy {
    child: Child,
    port: u16,
    data: PathBuf,
    pub(crate) url: DatabaseUrl,
}

/// What a copy's data is told to become when it starts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Becomes {
    /// What it was: a data directory or volume that is put back.
    Itself,
    /// A standby of the origin.
    Standby,
    /// What it was at a point in time, and then a primary of its own.
    PointInTime,
}

impl Origin {
    /// With [`CLASS`] in tier `entity`, epoch 1, and key `acct-1` at revision 30.
    pub(crate) async fn start(name: &str) -> Origin {
        let services = for_tests().await.services();
        let server = services
            .start_postgres(&locate::postgres().unwrap())
            .await
            .unwrap();
        let url = server.create_database("shop", "shop_owner").await.unwrap();
        let folder = services.folder().join(format!("copies-{name}"));
        fs::create_dir(&folder).unwrap();
        if let Some((uid, gid)) = account() {
            chown(&folder, Some(uid), Some(gid)).unwrap();
        }
        let origin = Origin { server, url, folder };
        let owner = origin.client().await;
        fence_pg::tokio_postgres::install(&owner).await.unwrap();
        owner
            .batch_execute(&format!(
                "SELECT fence.declare('{CLASS}', 'entity'); SELECT fence.register_epoch('entity', 1); {}",
                admit("acct-1", 30)
            ))
            .await
            .unwrap();
        origin
    }

    pub(crate) async fn client(&self) -> Client {
        client(&self.url).await
    }

    /// The same database as the superuser.
    pub(crate) async fn superuser(&self) -> Client {
        client(&self.server.superuser_url_of(self.url.database())).await
    }

    /// Copies its data as it is now.
    pub(crate) async fn back_up(&self, name: &str, becomes: Becomes) -> PathBuf {
        let data = self.folder.join(name);
        let mut args = vec![
            format!("--pgdata={}", data.display()),
            format!("--dbname={}", self.server.superuser_url().as_str()),
            "--checkpoint=fast".to_owned(),
            "--no-sync".to_owned(),
        ];
        if becomes == Becomes::Standby {
            args.push("--write-recovery-conf".to_owned());
        }
        run("pg_basebackup", args).await;
        if becomes == Becomes::PointInTime {
            fs::write(data.join("recovery.signal"), "").unwrap();
        }
        data
    }

    /// Its data, dumped and restored into a database of another server.
    pub(crate) async fn dump_into(&self, other: &Origin) -> DatabaseUrl {
        let file = self.folder.join("dump.sql");
        run(
            "pg_dump",
            vec![
                format!("--file={}", file.display()),
                "--no-owner".to_owned(),
                self.url.as_str().to_owned(),
            ],
        )
        .await;
        let url = other
            .server
            .create_database("restored", "restored_owner")
            .await
            .unwrap();
        run(
            "psql",
            vec![
                "--set=ON_ERROR_STOP=1".to_owned(),
                "--quiet".to_owned(),
                format!("--file={}", file.display()),
                url.as_str().to_owned(),
            ],
        )
        .await;
        url
    }

    /// Ends it as a machine ends that fails.
    pub(crate) async fn fail(&self) {
        self.server.process().kill().await.unwrap();
    }
}

impl Copy {
    pub(crate) async fn start(origin: &Origin, data: &Path) -> Copy {
        let port = free_port().unwrap();
        let copy = Copy {
            child: serve(data, port).await,
            port,
            data: data.to_owned(),
            url: origin.url.through(port),
        };
        copy.answers().await;
        copy
    }

    pub(crate) async fn client(&self) -> Client {
        client(&self.url).await
    }

    /// Makes a standby a primary, whose data goes on from there.
    pub(crate) async fn promote(&self, origin: &Origin) {
        let superuser = client(&origin.server.superuser_url().through(self.port)).await;
        let promoted: bool = superuser
            .query_one("SELECT pg_promote()", &[])
            .await
            .unwrap()
            .get(0);
        assert!(promoted);
    }

    /// Ends it, orderly or not, and starts it once more from its data.
    pub(crate) async fn restart(&mut self, orderly: bool) {
        if orderly {
            let data = format!("--pgdata={}", self.data.display());
            run("pg_ctl", vec!["stop".to_owned(), "--mode=fast".to_owned(), data]).await;
            self.child.exited().await.unwrap();
        } else {
            self.child.kill().await.unwrap();
        }
        self.child = serve(&self.data, self.port).await;
        self.answers().await;
    }

    /// Waits until it answers, and takes writes unless it is a standby.
    async fn answers(&self) {
        let began = Instant::now();
        let standby = self.data.join("standby.signal").exists();
        loop {
            if let Ok((client, connection)) =
                tokio_postgres::connect(self.url.as_str(), tokio_postgres::NoTls).await
            {
                tokio::spawn(connection);
                let recovering = client.query_one("SELECT pg_is_in_recovery()", &[]).await;
                if recovering.is_ok_and(|row| standby || !row.get::<_, bool>(0)) {
                    return;
                }
            }
            assert!(self.child.ended().is_none(), "{}", self.child.tail());
            assert!(began.elapsed() < Duration::from_secs(60), "{}", self.child.tail());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn serve(data: &Path, port: u16) -> Child {
    let mut args = vec![
        "-D".to_owned(),
        data.display().to_string(),
        format!("--port={port}"),
    ];
    for setting in [
        "unix_socket_directories=",
        "listen_addresses=127.0.0.1",
        "dynamic_shared_memory_type=mmap",
        "fsync=off",
        "wal_level=logical",
        "max_connections=200",
        "max_wal_senders=64",
        "max_replication_slots=64",
        "max_prepared_transactions=32",
    ] {
        args.extend(["-c".to_owned(), setting.to_owned()]);
    }
    if data.join("recovery.signal").exists() {
        // A point in time that is reached with what the copy brought along.
        for setting in [
            "restore_command=false",
            "recovery_target=immediate",
            "recovery_target_action=promote",
        ] {
            args.extend(["-c".to_owned(), setting.to_owned()]);
        }
    }
    spawn("postgres", args).await
}

/// Runs one of PostgreSQL's programs to its end.
async fn run(program: &str, args: Vec<String>) {
    let child = spawn(program, args).await;
    let ended = child.exited().await.unwrap();
    assert!(ended.success(), "{program}: {ended}: {}", child.tail());
}

/// Starts one of PostgreSQL's programs as the user that its servers run as; most of them refuse to be root.
async fn spawn(program: &str, args: Vec<String>) -> Child {
    let path = locate::postgres().unwrap().join(program);
    let mut spec = match account() {
        Some((uid, gid)) => ProcessSpec::new(program, "setpriv").args([
            format!("--reuid={uid}"),
            format!("--regid={gid}"),
            "--clear-groups".to_owned(),
            path.display().to_string(),
        ]),
        None => ProcessSpec::new(program, path),
    };
    spec.args.extend(args);
    spec.env_remove = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| name.starts_with("PG"))
        .collect();
    for_tests().await.services().spawn(spec).await.unwrap()
}

/// The user and group that PostgreSQL runs as; nobody else than this one, unless that is root.
fn account() -> Option<(u32, u32)> {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap();
    ["postgres:", "nobody:"].iter().find_map(|name| {
        let line = users.lines().find(|line| line.starts_with(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    })
}

/// A token of an epoch.
pub(crate) fn of_epoch(epoch: i64, revision: i64) -> Token {
    Token::new((epoch << 48) + revision).unwrap()
}
