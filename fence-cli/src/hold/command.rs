//! The command, from its start until it and its group have ended.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::pin::pin;
use std::process::{Command, ExitStatus};

use fence_core::Claim;
use fence_lock::{BootClock, Clock as _, HoldAll, Session};
use pause_kit::group::Group;

use super::signals::Signals;
use super::terminal;
use crate::exit::{Ending, Failure};
use crate::say;

/// Runs the command, unless the lock is lost already, and stops it when the lock is.
pub(super) async fn run(
    words: &[OsString],
    session: &Session,
    held: &HoldAll,
    signals: &mut Signals,
) -> Result<Ending, Failure> {
    // Work starts when the token is read.
    let claims = match held.claims() {
        Ok(claims) => claims,
        Err(why) => {
            say::remark(&format!("error: the command was not run: {why}"));
            return Ok(Ending::Lost);
        }
    };
    let mut group = match Group::start(&mut command(words, &claims)) {
        Ok(group) => group,
        Err(error) => {
            let program = words[0].to_string_lossy();
            say::remark(&format!("error: cannot run {program:?}: {error}"));
            return Ok(match error.kind() {
                io::ErrorKind::NotFound => Ending::Command(127),
                _ => Ending::Command(126),
            });
        }
    };
    let lent = terminal::lend(&group);
    let lost = watched(&group, session, held, signals)
        .await
        .map_err(Failure::service)?;
    if let Some(lent) = lent {
        lent.take_back();
    }
    // What the command left running would go on under a lock that is about to be free.
    group.kill_all().map_err(Failure::service)?;
    let status = group.reap().map_err(Failure::service)?;
    if lost {
        say::remark("error: the lock was lost; the command was stopped");
        return Ok(Ending::Lost);
    }
    Ok(ending(status))
}

/// Waits until the command has ended, and says whether the lock was lost before.
async fn watched(
    group: &Group,
    session: &Session,
    held: &HoldAll,
    signals: &mut Signals,
) -> io::Result<bool> {
    let (clock, over) = (BootClock, held.lost_token());
    let mut ended = pin!(group.ended());
    let mut kill_at = None;
    let mut killed = false;
    loop {
        let due = async {
            match kill_at {
                Some(at) if !killed => clock.sleep_until(at).await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            ended = &mut ended => return ended.map(|()| kill_at.is_some()),
            () = over.cancelled(), if kill_at.is_none() => {
                // The lease may end one margin after the deadline; a clock that was stopped meanwhile finds both past.
                let grace = session.ttl().margin() / 2;
                let deadline = session.deadline().min(clock.now());
                kill_at = Some(deadline.after(grace));
                group.signal(rustix::process::Signal::TERM.as_raw())?;
            }
            () = due => {
                killed = true;
                group.kill_all()?;
            }
            number = signals.next() => group.signal(number)?,
        }
    }
}

fn command(words: &[OsString], claims: &[Claim]) -> Command {
    let first = &claims[0];
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .env("FENCE_CLASS", first.class.as_str())
        .env("FENCE_KEY", first.key.as_str())
        .env("FENCING_TOKEN", first.token.to_string());
    if let Some(grant) = &first.grant_id {
        command.env("FENCE_GRANT", grant.as_str());
    }
    if claims.len() > 1 {
        for (number, claim) in claims.iter().enumerate() {
            command.env(format!("FENCE_KEY_{}", number + 1), claim.key.as_str());
        }
    }
    command
}

fn ending(status: ExitStatus) -> Ending {
    let number = |number: i32| u8::try_from(number).unwrap_or(u8::MAX);
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Command(number(code)),
        (None, Some(signal)) => Ending::Signal(number(signal)),
        (None, None) => Ending::Command(u8::MAX),
    }
}
