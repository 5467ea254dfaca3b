//! An etcd cluster of one test's own, whose members can be killed, stopped, emptied, copied, put back and restored.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pause_kit::services::{Child, ProcessSpec, Services, free_port, locate};

use crate::support::{copy_tree, services};

pub(crate) struct Cluster {
    services: Services,
    pub(crate) members: Vec<Member>,
    token: String,
    version: String,
}

pub(crate) struct Member {
    name: String,
    client: String,
    peer: String,
    data: PathBuf,
    pub(crate) process: Option<Child>,
}

/// How a snapshot is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restore {
    SameFlags,
    OtherToken,
    BumpRevision,
}

impl Cluster {
    pub(crate) async fn start(members: usize) -> Cluster {
        let services = services().await;
        let version = services.etcd("lock").unwrap().version().to_owned();
        let url = || format!("http://127.0.0.1:{}", free_port().unwrap());
        let members = (0..members)
            .map(|number| Member {
                name: format!("m{number}"),
                client: url(),
                peer: url(),
                data: services.folder().join(format!("m{number}")),
                process: None,
            })
            .collect();
        let mut cluster = Cluster {
            services,
            members,
            token: "one".to_owned(),
            version,
        };
        cluster.start_all().await;
        cluster
    }

    /// The server's version, such as `3.4.23`.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    pub(crate) fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(|member| member.client.clone()).collect()
    }

    pub(crate) fn all(&self) -> Vec<usize> {
        (0..self.members.len()).collect()
    }

    /// Kills members.
    pub(crate) async fn kill(&mut self, which: &[usize]) {
        for number in which {
            self.members[*number]
                .process
                .take()
                .unwrap()
                .kill()
                .await
                .unwrap();
        }
    }

    pub(crate) async fn start_all(&mut self) {
        self.start_members(&self.all(), &[]).await;
    }

    /// Starts members on the data that they have, or on none, and waits until each answers through the log.
    pub(crate) async fn start_members(&mut self, which: &[usize], flags: &[&str]) {
        let cluster: Vec<String> = self
            .members
            .iter()
            .map(|member| format!("{}={}", member.name, member.peer))
            .collect();
        for number in which {
            let member = &mut self.members[*number];
            let spec = ProcessSpec::new(&format!("etcd-{}", member.name), locate::etcd().unwrap())
                .args(["--heartbeat-interval=50", "--election-timeout=500"])
                // A member that is this far behind is sent a snapshot.
                .args(["--snapshot-count=100"])
                .args([
                    format!("--name={}", member.name),
                    format!("--data-dir={}", member.data.display()),
                    format!("--listen-client-urls={}", member.client),
                    format!("--advertise-client-urls={}", member.client),
                    format!("--listen-peer-urls={}", member.peer),
                    format!("--initial-advertise-peer-urls={}", member.peer),
                    format!("--initial-cluster={}", cluster.join(",")),
                    format!("--initial-cluster-token={}", self.token),
                ])
                .args(flags.iter().copied())
                .env(
                    "ETCD_UNSUPPORTED_ARCH",
                    if cfg!(target_arch = "aarch64") {
                        "arm64"
                    } else {
                        ""
                    },
                );
            member.process = Some(self.services.spawn(spec).await.unwrap());
        }
        for number in which {
            self.answered(*number).await;
        }
    }

    /// Waits until a member answers a linearizable read.
    pub(crate) async fn answered(&self, number: usize) {
        let member = &self.members[number];
        for _ in 0..1500 {
            if answers(&member.client).await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let tail = member.process.as_ref().map(Child::tail);
        panic!("{} does not answer: {}", member.name, tail.unwrap_or_default());
    }

    /// The member that leads.
    pub(crate) async fn leader(&self) -> usize {
        for _ in 0..1500 {
            for number in self.all() {
                if self.members[number].process.is_none() {
                    continue;
                }
                let mut client = client(&self.members[number].client).await;
                let Ok(status) = client.status().await else {
                    continue;
                };
                let member = status.header().unwrap().member_id();
                if status.leader() == member {
                    return number;
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("no member leads");
    }

    /// Copies of the members' data, which must not run.
    pub(crate) fn copies(&self) -> Vec<tempfile::TempDir> {
        let copy = |member: &Member| {
            let copy = tempfile::tempdir().unwrap();
            copy_tree(&member.data, copy.path());
            copy
        };
        self.members.iter().map(copy).collect()
    }

    /// Puts copies in the place of the data, which must not run.
    pub(crate) fn put_back(&self, copies: &[tempfile::TempDir]) {
        self.empty();
        for (member, copy) in self.members.iter().zip(copies) {
            copy_tree(copy.path(), &member.data);
        }
    }

    /// Throws the data of all members away, which must not run.
    pub(crate) fn empty(&self) {
        for member in &self.members {
            std::fs::remove_dir_all(&member.data).unwrap();
        }
    }

    /// Forgets members that will not come back.
    pub(crate) fn keep_only(&mut self, number: usize) {
        let kept = self.members.remove(number);
        self.members = vec![kept];
    }

    /// A snapshot of what the first member has.
    pub(crate) async fn snapshot(&self) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut client = client(&self.members[0].client).await;
        let mut stream = client.snapshot().await.unwrap();
        let mut bytes = Vec::new();
        while let Some(part) = stream.message().await.unwrap() {
            bytes.extend_from_slice(part.blob());
        }
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    /// Restores a snapshot in the place of the data of all members, which must not run.
    pub(crate) async fn restore(&mut self, snapshot: &Path, how: Restore) {
        self.empty();
        if how == Restore::OtherToken {
            self.token = "two".to_owned();
        }
        let cluster: Vec<String> = self
            .members
            .iter()
            .map(|member| format!("{}={}", member.name, member.peer))
            .collect();
        for member in &self.members {
            let mut command = tokio::process::Command::new(self.restorer());
            command.env("ETCDCTL_API", "3").args(["snapshot", "restore"]);
            command.arg(snapshot).args([
                format!("--name={}", member.name),
                format!("--initial-cluster={}", cluster.join(",")),
                format!("--initial-cluster-token={}", self.token),
                format!("--initial-advertise-peer-urls={}", member.peer),
                format!("--data-dir={}", member.data.display()),
            ]);
            if how == Restore::BumpRevision {
                command.args(["--bump-revision=1000000", "--mark-compacted"]);
            }
            let output = command.output().await.unwrap();
            assert!(
                output.status.success(),
                "{command:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }

    /// The program that restores snapshots for this server: `etcdutl` beside a newer one, `etcdctl` for 3.4.
    fn restorer(&self) -> PathBuf {
        if self.version.starts_with("3.4.") {
            return PathBuf::from("etcdctl");
        }
        locate::etcd().unwrap().with_file_name("etcdutl")
    }
}

/// What `etcdctl` 3.4 says to the flag that it does not have.
pub(crate) async fn refuses_to_raise_the_revision() -> String {
    let mut command = tokio::process::Command::new("etcdctl");
    let command = command.env("ETCDCTL_API", "3");
    let command = command.args(["snapshot", "restore", "none", "--bump-revision=1000000"]);
    let output = command.output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("unknown flag"),
        "{said}"
    );
    "unknown flag: --bump-revision".to_owned()
}

async fn client(endpoint: &str) -> etcd_client::Client {
    etcd_client::Client::connect([endpoint], None).await.unwrap()
}

async fn answers(endpoint: &str) -> bool {
    let Ok(mut client) = etcd_client::Client::connect([endpoint], None).await else {
        return false;
    };
    matches!(
        tokio::time::timeout(Duration::from_secs(1), client.get("any", None)).await,
        Ok(Ok(_))
    )
}
