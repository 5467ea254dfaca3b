//! An nginx of the run's own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::ServiceError;
use super::account::{Account, Folders, write_private};
use super::child::{Child, ProcessSpec};
use super::locate;
use super::port::{free_port, listens};
use crate::reaper::{Farewell, Reaper};
use crate::target::Http;

/// How often free ports are taken anew when somebody else was quicker.
const ATTEMPTS: usize = 8;

/// How long it may take until it listens.
const START: Duration = Duration::from_secs(30);

/// A running nginx on 127.0.0.1: a proxy in front of one or several processes of a resource.
#[derive(Debug)]
pub struct Nginx {
    child: Child,
    addresses: Vec<SocketAddr>,
    version: String,
}

impl Nginx {
    /// The version of the one that would be started.
    ///
    /// # Errors
    ///
    /// When it is not installed or cannot be asked.
    pub fn installed() -> Result<String, ServiceError> {
        let asked = std::process::Command::new(locate::nginx()?).arg("-v").output();
        let said = asked.map_err(|error| failed(error.to_string()))?.stderr;
        Ok(version(&String::from_utf8_lossy(&said)))
    }

    pub(super) async fn start(
        reaper: &Arc<Reaper>,
        program: &Path,
        account: &Account,
        folders: &Folders,
        upstreams: &[SocketAddr],
        http: Http,
    ) -> Result<Self, ServiceError> {
        let mut said = String::new();
        for attempt in 0..ATTEMPTS {
            let mut addresses = Vec::new();
            for _ in upstreams {
                let port = free_port().map_err(|error| failed(format!("no free port: {error}")))?;
                addresses.push(SocketAddr::from(([127, 0, 0, 1], port)));
            }
            let file = folders.own.join(format!("settings-{attempt}"));
            let text = settings(&folders.own, &addresses, upstreams, http);
            write_private(&file, &text, account.owner)
                .map_err(|error| failed(format!("no file of settings: {error}")))?;
            let (file, own) = (file.display().to_string(), folders.own.display().to_string());
            let mut spec = ProcessSpec::new("nginx", program).args(["-e", "stderr", "-p", &own, "-c", &file]);
            spec.cwd = Some(folders.own.clone());
            let logs = folders.run.join("logs");
            let child = Child::start(reaper, &logs, &spec, account.owner, Farewell::Kill).await?;
            if answers(&child, &addresses).await? {
                return Ok(Self {
                    child,
                    addresses,
                    version: version(&folders.said),
                });
            }
            said = child.tail();
            if !said.contains("Address already in use") {
                break;
            }
        }
        Err(failed(said))
    }

    /// Where it listens, in the order of what it leads to.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Its version, such as `1.22.1`.
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

/// A request is handed on as it comes, and to nobody a second time. Where a connection is HTTP/2, it is so from its first byte on.
fn settings(own: &Path, addresses: &[SocketAddr], upstreams: &[SocketAddr], http: Http) -> String {
    let own = own.display();
    let folders: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("  {kind}_temp_path {own}/{kind};\n"))
        .concat();
    let spoken = match http {
        Http::One => "",
        Http::Two => " http2",
    };
    let servers: String = addresses
        .iter()
        .zip(upstreams)
        .map(|(address, upstream)| {
            format!(
                "  server {{ listen {address}{spoken}; location / {{ proxy_pass http://{upstream}; }} }}\n"
            )
        })
        .collect();
    format!(
        "daemon off;\nworker_processes 1;\npid {own}/pid;\nerror_log stderr warn;\nevents {{ worker_connections 512; }}\n\
         http {{\n{folders}  access_log off;\n  proxy_http_version 1.1;\n  proxy_request_buffering off;\n  \
         proxy_next_upstream off;\n{servers}}}\n"
    )
}

/// Waits until it listens at all of its addresses: true. False when it ended first.
async fn answers(child: &Child, addresses: &[SocketAddr]) -> Result<bool, ServiceError> {
    let began = Instant::now();
    // A stranger may listen there.
    while !addresses
        .iter()
        .all(|address| listens(child.pid(), address.port()))
    {
        if child.ended().is_some() {
            return Ok(false);
        }
        if began.elapsed() > START {
            return Err(failed(format!(
                "it does not listen after {START:?}: {}",
                child.tail()
            )));
        }
        sleep(Duration::from_millis(5)).await;
    }
    Ok(true)
}

fn failed(why: String) -> ServiceError {
    ServiceError::NotStarted {
        what: "nginx".to_owned(),
        why,
    }
}

/// `nginx version: nginx/1.22.1` is `1.22.1`.
fn version(said: &str) -> String {
    said.rsplit('/').next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_number_alone() {
        assert_eq!(version("nginx version: nginx/1.22.1\n"), "1.22.1");
    }
}
