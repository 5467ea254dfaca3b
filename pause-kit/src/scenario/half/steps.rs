//! The target's own steps: commands, SQL, requests, and starting the resource.

use std::net::SocketAddr;
use std::time::Duration;

use tokio_postgres::Client;

use super::{Ground, Replica, SOON};
use crate::run::RunError;
use crate::scenario::front;
use crate::services::{Child, ProcessSpec, WaitLineError, free_port};
use crate::target::{Place, Resource, Step, Target, Template, Values};

/// Takes the target's steps for one half.
pub(super) struct Steps<'a> {
    pub(super) ground: Ground<'a>,
    pub(super) values: &'a Values,
    /// The half's database, as its owner.
    pub(super) sql: &'a Client,
    /// The half's name.
    pub(super) who: &'a str,
    /// What is set up.
    pub(super) target: &'a Target,
}

impl Steps<'_> {
    /// Takes those that are declared at this place, in order. `replica` is the resource, where it has been started.
    pub(super) async fn take(
        &self,
        steps: &[Step],
        at: &Place,
        replica: Option<&Replica>,
    ) -> Result<(), RunError> {
        let values = match replica {
            Some(replica) => self.values.clone().with("resource", replica.address.to_string()),
            None => self.values.clone(),
        };
        for (index, step) in steps.iter().enumerate() {
            let at = at.index(index);
            if let Some(command) = &step.command {
                self.command(command, &values, at.key("command")).await?;
            } else if let Some(sql) = &step.sql {
                let text = filled(sql, &values)?;
                self.sql
                    .batch_execute(&text)
                    .await
                    .map_err(RunError::sql(at.key("sql"), format!("`{text}` failed")))?;
            } else if let (Some(request), Some(replica)) = (&step.request, replica) {
                front::prepare(self.ground.door(replica), request, &values, at.key("request")).await?;
            }
        }
        Ok(())
    }

    async fn command(&self, command: &[Template], values: &Values, at: Place) -> Result<(), RunError> {
        let spec = spec(&format!("{}-setup", self.who), command, values, self.target)?;
        let step = std::iter::once(spec.program.display().to_string())
            .chain(spec.args.iter().cloned())
            .collect::<Vec<_>>()
            .join(" ");
        let child = self.ground.services.spawn(spec).await.map_err(RunError::Spawn)?;
        let ended = tokio::time::timeout(SOON, child.exited()).await;
        match ended {
            Ok(Ok(ended)) if ended.success() => Ok(()),
            Ok(Ok(ended)) => Err(RunError::Declared {
                at,
                why: format!("`{step}` ended with {ended}: {}", child.tail()),
            }),
            Ok(Err(error)) => Err(RunError::lost("the reaper is gone")(error)),
            Err(_) => Err(RunError::lost("a command of the set-up does not end")(format!(
                "`{step}` still ran after {} s",
                SOON.as_secs()
            ))),
        }
    }

    /// Starts a process of the resource, which is declared at this place, and waits until it tells its address.
    pub(super) async fn replica(
        &self,
        resource: &Resource,
        at: &Place,
        number: usize,
    ) -> Result<Replica, RunError> {
        let port = match resource.takes_port() {
            true => Some(free_port().map_err(RunError::lost("no port is free"))?),
            false => None,
        };
        let values = match port {
            Some(port) => self.values.clone().with("port", port.to_string()),
            None => self.values.clone(),
        };
        let name = format!("{}-resource-{}", self.who, number + 1);
        let spec = spec(&name, &resource.command, &values, self.target)?;
        let child = self.ground.services.spawn(spec).await.map_err(RunError::Spawn)?;
        let told = match &resource.ready {
            Some(ready) => Some(told(&child, ready, at).await?),
            None => None,
        };
        let address = match (port, told) {
            (Some(port), _) => ([127, 0, 0, 1], port).into(),
            (None, told) => address(&told.unwrap_or_default(), resource, at)?,
        };
        if resource.ready.is_none() {
            listens(&child, address, at).await?;
        }
        Ok(Replica { child, address })
    }
}

/// Waits for the line that says that the resource is ready, and returns its rest.
async fn told(child: &Child, ready: &str, at: &Place) -> Result<String, RunError> {
    let told = child.wait_line(ready, SOON).await;
    told.map_err(|error| match error {
        WaitLineError::Ended { .. } => RunError::Declared {
            at: at.key("command"),
            why: error.to_string(),
        },
        WaitLineError::Silent { .. } => RunError::Declared {
            at: at.key("ready"),
            why: error.to_string(),
        },
        WaitLineError::Gone(_) => RunError::NotReady(error),
    })
}

/// The address at the end of that line.
fn address(rest: &str, resource: &Resource, at: &Place) -> Result<SocketAddr, RunError> {
    let address = rest.trim().trim_start_matches("http://").trim_end_matches('/');
    address.parse().map_err(|_| RunError::Declared {
        at: at.key("ready"),
        why: format!(
            "the line that begins with {:?} goes on with {rest:?}, not with an address such as 127.0.0.1:8080; a resource that \
             is told where to listen takes {{port}} in its command",
            resource.ready.as_deref().unwrap_or_default()
        ),
    })
}

/// Waits until the resource takes connections on the port that it was told. Nobody tells when that begins, so it is tried.
async fn listens(child: &Child, address: SocketAddr, at: &Place) -> Result<(), RunError> {
    let failed = |why: String| RunError::Declared {
        at: at.key("command"),
        why,
    };
    let until = tokio::time::Instant::now() + SOON;
    while tokio::net::TcpStream::connect(address).await.is_err() {
        if let Some(ended) = child.ended() {
            return Err(failed(format!(
                "the resource ended with {ended} before it listened on {address}: {}",
                child.tail()
            )));
        }
        if tokio::time::Instant::now() > until {
            return Err(failed(format!(
                "the resource did not listen on {address} within {} s; {{port}} is where it must",
                SOON.as_secs()
            )));
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// The process that a command of a target describes.
pub(crate) fn spec(
    name: &str,
    command: &[Template],
    values: &Values,
    target: &Target,
) -> Result<ProcessSpec, RunError> {
    let words: Vec<String> = command
        .iter()
        .map(|word| filled(word, values))
        .collect::<Result<_, _>>()?;
    let (program, args) = words
        .split_first()
        .expect("a command that was checked has a program");
    let spec = ProcessSpec::new(name, target.program(program)).args(args);
    Ok(ProcessSpec {
        cwd: Some(target.folder.clone()),
        ..spec
    })
}

/// A text with its placeholders filled in.
pub(crate) fn filled(template: &Template, values: &Values) -> Result<String, RunError> {
    template.fill(values).map_err(RunError::Value)
}

/// What the server said about an error, or the error itself where it said nothing.
pub(crate) fn said(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(error) => format!("{} {}", error.code().code(), error.message()),
        None => error.to_string(),
    }
}
