//! `fence hold`: runs a command while a lock is held, and stops it before the lock can be anyone else's.

mod command;
mod signals;
mod terminal;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use fence_core::{ClassName, Key, TierName, Ttl};
use fence_lock::{AcquireError, HoldAll, Keys, OpenError, Release, Session};

use crate::exit::{self, Ending, Failure};
use crate::pg::DatabaseArguments;
use crate::say;
use crate::store::StoreArguments;
use signals::Signals;

pub(crate) use terminal::give_back as give_the_terminal_back;

/// At the end of `fence hold --help`.
const HELP: &str = "\
CMD runs in a process group of its own, with these variables:
  FENCING_TOKEN  the token, which CMD presents with every write
  FENCE_GRANT    the id of the grant, likewise
  FENCE_CLASS    the class
  FENCE_KEY      the key; of several the first in the order of their bytes, and then FENCE_KEY_1 to FENCE_KEY_n hold all
At the deadline the group is sent SIGTERM, and SIGKILL before the lease can end. SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1,
SIGUSR2 and SIGWINCH are passed on to it. What CMD leaves running in its group is killed before the lock is released. What leaves the
group is not stopped; and no lock stops a write that is on its way: the resource must refuse the token once a newer one was seen.

Exit codes:
  123    lost: the lock was not kept until CMD had ended
  124    not granted in time; CMD was not run
  125    wrong arguments, the store could not be reached, or the database refused the token; CMD was not run
  126    CMD could not be run
  127    CMD was not found
  128+n  CMD, or the waiting, was ended by signal n
  other  CMD's own";

/// Which lock, and what is run under it.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct HoldArguments {
    /// The class of the lock
    #[arg(long, value_name = "CLASS")]
    class: ClassName,
    /// The key of the lock; repeat it to take several in one step, all or none
    #[arg(long = "key", value_name = "KEY", required = true, value_parser = key)]
    keys: Vec<Key>,
    /// How long to wait for the lock, such as 30s; at least 1s. Without it, for as long as it takes
    #[arg(long, value_name = "TIME", value_parser = time)]
    wait: Option<Duration>,
    /// How long the lock outlives this process when it dies: 2s to 3600s [default: that of the class in fence.toml, or 10s]
    #[arg(long, value_name = "TIME")]
    ttl: Option<Ttl>,
    /// First raise the mark in this database that the guard protects: postgresql://USER@HOST/NAME. Repeat it for more
    #[arg(long, value_name = "URL")]
    raise: Vec<String>,
    /// The tier that grants the lock [default: that of the class in fence.toml]
    #[arg(long, value_name = "TIER")]
    tier: Option<TierName>,
    #[command(flatten)]
    store: StoreArguments,
    /// The command, and its arguments
    #[arg(value_name = "CMD", required = true, last = true)]
    command: Vec<std::ffi::OsString>,
}

/// Runs the command under the lock, and gives its exit code or one of this command's own.
pub(crate) fn run(arguments: &HoldArguments) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(hold(arguments));
            // A store that does not answer keeps nobody waiting.
            runtime.shutdown_background();
            ended
        }
        Err(error) => Err(Failure::service(error)),
    };
    exit::report_hold(ended)
}

async fn hold(arguments: &HoldArguments) -> Result<Ending, Failure> {
    let keys = Keys::new(arguments.keys.clone()).map_err(Failure::usage)?;
    let mut signals = Signals::listen().map_err(Failure::service)?;
    let session = tokio::select! {
        biased;
        number = signals.ends() => return Ok(Ending::Signal(number)),
        session = opened(arguments) => session?,
    };
    let waited = tokio::select! {
        biased;
        number = signals.ends() => Ok(Waited::Ended(Ending::Signal(number))),
        waited = granted(arguments, &session, keys) => waited,
    };
    let ended = match waited {
        Ok(Waited::Granted(held)) => under(arguments, &session, held, &mut signals).await,
        Ok(Waited::Ended(ending)) => Ok(ending),
        Err(failure) => Err(failure),
    };
    // With the lease goes the place in the queue, and whatever is still on its way.
    close(&session).await;
    ended
}

/// What is done under the lock, and its release.
async fn under(
    arguments: &HoldArguments,
    session: &Session,
    held: HoldAll,
    signals: &mut Signals,
) -> Result<Ending, Failure> {
    let raised = tokio::select! {
        biased;
        number = signals.ends() => Ok(Some(Ending::Signal(number))),
        raised = raise(arguments, &held) => raised.map(|()| None),
    };
    let ended = match raised {
        Ok(None) => command::run(&arguments.command, session, &held, signals).await,
        Ok(Some(ending)) => Ok(ending),
        Err(failure) => Err(failure),
    };
    let released = release(held).await;
    match ended {
        Ok(Ending::Signal(_) | Ending::Command(_)) if !released => {
            say::remark("error: the lock was lost before the command had ended");
            Ok(Ending::Lost)
        }
        ended => ended,
    }
}

/// How the waiting for a lock ended.
enum Waited {
    Granted(HoldAll),
    Ended(Ending),
}

async fn opened(arguments: &HoldArguments) -> Result<Session, Failure> {
    let (place, ttl) = arguments
        .store
        .of_class(&arguments.class, arguments.tier.as_ref())?;
    let store = place.open().await?;
    let ttl = arguments.ttl.or(ttl).unwrap_or_default();
    let session = Session::open(store.locks_with(), ttl).await;
    session.map_err(|error| match error {
        OpenError::Store(_) | OpenError::TooLate => Failure::service(error),
        _ => Failure::usage(error),
    })
}

async fn granted(arguments: &HoldArguments, session: &Session, keys: Keys) -> Result<Waited, Failure> {
    let acquiring = session.acquire_all(&arguments.class, keys);
    let outcome = match arguments.wait {
        None => acquiring.await,
        Some(wait) => {
            // The store needs a moment to answer at all.
            let within = wait.max(Duration::from_secs(1));
            tokio::time::timeout(within, acquiring)
                .await
                .unwrap_or(Err(AcquireError::TimedOut { after: within }))
        }
    };
    match outcome {
        Ok(held) => Ok(Waited::Granted(held)),
        Err(error @ (AcquireError::TimedOut { .. } | AcquireError::SessionOver)) => {
            say::remark(&format!("error: {error}"));
            Ok(Waited::Ended(Ending::NotGranted))
        }
        Err(error @ (AcquireError::Store(_) | AcquireError::NotConfirmed)) => Err(Failure::service(error)),
        Err(error) => Err(Failure::usage(error)),
    }
}

/// Raises the mark of each key in each database: fence first, then read.
async fn raise(arguments: &HoldArguments, held: &HoldAll) -> Result<(), Failure> {
    for url in &arguments.raise {
        let pool = DatabaseArguments::at(url).pool("fence hold").await?;
        for claim in held.claims().map_err(Failure::service)? {
            let raised = fence_pg::sqlx::raise_mark(&pool, &claim).await;
            let _ = raised.map_err(Failure::service)?;
        }
        pool.close().await;
    }
    Ok(())
}

/// Whether the lock was held until now.
async fn release(held: HoldAll) -> bool {
    match held.release().await {
        Ok(Release::Released) => true,
        Ok(Release::NotHeld) => false,
        Err(error) => {
            say::remark(&format!(
                "warning: the lock is free only once its lease has ended: {}",
                exit::chain(&error)
            ));
            true
        }
    }
}

async fn close(session: &Session) {
    // What is not closed lapses by itself.
    let _ = tokio::time::timeout(Duration::from_secs(2), session.close()).await;
}

fn key(text: &str) -> Result<Key, String> {
    Key::text(text).map_err(|error| error.to_string())
}

fn time(text: &str) -> Result<Duration, String> {
    let wrong = || "a time is written like 500ms, 30s, 5m or 2h".to_owned();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let milliseconds = match &text[digits.len()..] {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    let time = number.checked_mul(milliseconds).ok_or_else(wrong)?;
    Ok(Duration::from_millis(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_and_a_unit() {
        for (text, milliseconds) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("5m", 300_000),
            ("2h", 7_200_000),
        ] {
            assert_eq!(time(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for wrong in ["", "30", "s", "-1s", "1.5s", "1d", "18446744073709551615h", "3 s"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
