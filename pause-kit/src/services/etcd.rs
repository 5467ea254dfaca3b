//! An etcd of the run's own, of one member.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::ServiceError;
use super::child::{Child, ProcessSpec};
use super::port::{free_port, listens};
use super::postgres::inherited;
use crate::reaper::{Farewell, Reaper};

const START: Duration = Duration::from_secs(60);
const PORTS: usize = 8;

/// Leases are ended by a leader that looks at them twice a second, and their shortest life is one and a half election
/// timeouts. With a short one a lease of two seconds is one of two seconds.
const TIMES: [&str; 2] = ["--heartbeat-interval=50", "--election-timeout=250"];

/// Guards the data from a machine that fails, which ends the run anyway. Older versions do not have it.
const NO_FSYNC: &str = "--unsafe-no-fsync";

/// A running etcd, on 127.0.0.1.
#[derive(Debug)]
pub struct Etcd {
    child: Child,
    name: String,
    port: u16,
    version: String,
}

impl Etcd {
    pub(super) async fn start(
        reaper: &Arc<Reaper>,
        program: &Path,
        run: &Path,
        name: &str,
    ) -> Result<Self, ServiceError> {
        let start = Start {
            reaper,
            program,
            run,
            name,
        };
        let version = start.says("--version").await?;
        let can_skip_fsync = start.says("--help").await?.contains(NO_FSYNC);
        let (child, port) = start.serve(can_skip_fsync).await?;
        Ok(Self {
            child,
            name: name.to_owned(),
            port,
            version: number(&version),
        })
    }

    /// The name that it was started under.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where clients reach it, such as `http://127.0.0.1:40123`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        url(self.port)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// Its version, such as `3.4.23`.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Its process.
    #[must_use]
    pub fn process(&self) -> &Child {
        &self.child
    }
}

struct Start<'run> {
    reaper: &'run Arc<Reaper>,
    program: &'run Path,
    run: &'run Path,
    name: &'run str,
}

impl Start<'_> {
    async fn says(&self, flag: &str) -> Result<String, ServiceError> {
        let child = self.child(&self.spec().args([flag])).await?;
        let ended = child.exited().await?;
        if !ended.success() {
            return Err(self.failed(format!("`etcd {flag}` ended with {ended}: {}", child.tail())));
        }
        let said = |path| std::fs::read_to_string(path).unwrap_or_default();
        Ok(said(child.stdout()) + &said(child.stderr()))
    }

    async fn serve(&self, can_skip_fsync: bool) -> Result<(Child, u16), ServiceError> {
        let mut said = String::new();
        for _ in 0..PORTS {
            let no_port = |error| self.failed(format!("no free port: {error}"));
            let (client, peer) = (free_port().map_err(no_port)?, free_port().map_err(no_port)?);
            let spec = self.server(client, peer, can_skip_fsync);
            let child = self.child(&spec).await?;
            if self.answers(&child, client).await? {
                return Ok((child, client));
            }
            said = child.tail();
            if !said.contains("address already in use") {
                break;
            }
        }
        Err(self.failed(said))
    }

    fn server(&self, client: u16, peer: u16, can_skip_fsync: bool) -> ProcessSpec {
        let (client, peer) = (url(client), url(peer));
        let token = Uuid::new_v4().simple();
        let mut spec = self.spec().args(TIMES);
        spec.args.extend([
            format!("--name={}", self.name),
            // One for each try: a server whose port was taken may have begun to write.
            format!("--data-dir={}", self.run.join(format!("etcd-{token}")).display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster={}={peer}", self.name),
            // The cluster's id is derived from it: no two clusters of a run share one.
            format!("--initial-cluster-token={token}"),
        ]);
        if can_skip_fsync {
            spec.args.push(NO_FSYNC.to_owned());
        }
        spec
    }

    fn spec(&self) -> ProcessSpec {
        let mut spec = ProcessSpec::new(&format!("etcd-{}", self.name), self.program);
        spec.env_remove = inherited("ETCD_");
        spec.cwd = Some(self.run.to_owned());
        // Up to 3.4 it starts on this architecture only when told that this is meant.
        if cfg!(target_arch = "aarch64") {
            spec.env("ETCD_UNSUPPORTED_ARCH", "arm64")
        } else {
            spec
        }
    }

    async fn child(&self, spec: &ProcessSpec) -> Result<Child, ServiceError> {
        Ok(Child::start(self.reaper, &self.run.join("logs"), spec, None, Farewell::Kill).await?)
    }

    /// Waits until this very server says that it is healthy: true. False when it ended first.
    async fn answers(&self, child: &Child, port: u16) -> Result<bool, ServiceError> {
        let began = Instant::now();
        let http = reqwest::Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(5))
            .build();
        let http = http.map_err(|error| self.failed(error.to_string()))?;
        loop {
            if listens(child.pid(), port) && is_healthy(&http, port).await {
                return Ok(true);
            }
            if child.ended().is_some() {
                return Ok(false);
            }
            if began.elapsed() > START {
                return Err(self.failed(format!("it is not healthy after {START:?}: {}", child.tail())));
            }
            sleep(Duration::from_millis(10)).await;
        }
    }

    fn failed(&self, why: String) -> ServiceError {
        ServiceError::NotStarted {
            what: format!("etcd {}", self.name),
            why,
        }
    }
}

async fn is_healthy(http: &reqwest::Client, port: u16) -> bool {
    let Ok(answer) = http.get(format!("{}/health", url(port))).send().await else {
        return false;
    };
    let Ok(health) = answer.json::<serde_json::Value>().await else {
        return false;
    };
    health.get("health").and_then(serde_json::Value::as_str) == Some("true")
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

/// `etcd Version: 3.4.23` and what follows is `3.4.23`.
fn number(said: &str) -> String {
    let line = said.lines().find_map(|line| line.strip_prefix("etcd Version:"));
    line.map_or_else(|| said.lines().next().unwrap_or_default(), str::trim)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_number_alone() {
        assert_eq!(number("etcd Version: 3.4.23\nGit SHA: x\n"), "3.4.23");
        assert_eq!(number("4.0\nmore"), "4.0");
    }
}
