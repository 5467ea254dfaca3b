//! `fence locks`: who holds and who waits.

use std::time::SystemTime;

use clap::Args;
use fence_core::{ClassName, TierName};
use fence_lock::{LockState, SessionId};
use serde_json::{Value, json};

use crate::exit::{Ending, Failure};
use crate::pg::block_on;
use crate::say;
use crate::store::StoreArguments;

/// At the end of `fence locks --help`.
const HELP: &str = "\
Ages are counted from when an attempt was made, by the holder's clock on etcd and by the server's on PostgreSQL; `-` where
the holder's client does not say. A lock is listed while its lease lives, also when its holder has stopped.";

/// Which locks.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct LocksArguments {
    /// Only the locks of this class; repeat it for more
    #[arg(long = "class", value_name = "CLASS")]
    classes: Vec<ClassName>,
    /// Only the locks of this tier [default: of the classes' tiers, or of every tier, in fence.toml]
    #[arg(long, value_name = "TIER")]
    tier: Option<TierName>,
    #[command(flatten)]
    store: StoreArguments,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &LocksArguments) -> Result<Ending, Failure> {
    let told = block_on(list(arguments));
    crate::pg::told(arguments.json, told)
}

async fn list(arguments: &LocksArguments) -> Result<Ending, Failure> {
    let places = arguments
        .store
        .of_tiers(arguments.tier.as_ref(), &arguments.classes)?;
    let mut locks = Vec::new();
    for place in &places {
        let of_tier = place.open().await?.locks().await?;
        locks.extend(of_tier.into_iter().map(|lock| (place.tier(), lock)));
    }
    if !arguments.classes.is_empty() {
        locks.retain(|(_, lock)| arguments.classes.contains(&lock.class));
    }
    let now = SystemTime::now();
    match arguments.json {
        true => {
            let locks: Vec<Value> = locks.iter().map(|(tier, lock)| object(tier, lock, now)).collect();
            say::answer(&format!("{:#}\n", json!({ "locks": locks })))?;
        }
        false => say::answer(&lines(&locks, now))?,
    }
    Ok(Ending::Done)
}

fn lines(locks: &[(&TierName, LockState)], now: SystemTime) -> String {
    if locks.is_empty() {
        return "nothing is held or waited for\n".to_owned();
    }
    let mut text = String::new();
    for (_, lock) in locks {
        let name = format!("{} {}", lock.class, lock.key.as_str());
        let line = match &lock.held {
            Some(held) => format!(
                "{name}: held for {} by grant {} of session {}, token {}",
                age(held.since, now),
                held.grant_id,
                held.session,
                held.token
            ),
            None => format!("{name}: free, and waited for"),
        };
        text.push_str(&say::plain(&line));
        text.push('\n');
        for (number, waiting) in lock.waiting.iter().enumerate() {
            let (age, grant, session) = (age(waiting.since, now), &waiting.grant_id, &waiting.session);
            let line = format!(
                "  {}. waits for {age}: grant {grant} of session {session}",
                number + 1
            );
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

fn object(tier: &TierName, lock: &LockState, now: SystemTime) -> Value {
    let party = |grant: &str, session: &SessionId, since: Option<SystemTime>| {
        let seconds = since
            .and_then(|since| now.duration_since(since).ok())
            .map(|age| age.as_secs_f64());
        json!({ "grant": grant, "session": session.as_str(), "age_s": seconds })
    };
    let held = lock.held.as_ref().map(|held| {
        let mut held_by = party(held.grant_id.as_str(), &held.session, held.since);
        // A string: doubles round tokens.
        held_by["token"] = json!(held.token.to_string());
        held_by
    });
    let waiting: Vec<Value> = lock
        .waiting
        .iter()
        .map(|waiting| party(waiting.grant_id.as_str(), &waiting.session, waiting.since))
        .collect();
    json!({
        "tier": tier.as_str(),
        "class": lock.class.as_str(),
        "key": lock.key.as_str(),
        "held": held,
        "waiting": waiting,
    })
}

/// Whole seconds; `-` when it is not known, and 0 when the clocks differ by more.
fn age(since: Option<SystemTime>, now: SystemTime) -> String {
    match since {
        None => "-".to_owned(),
        Some(since) => format!("{}s", now.duration_since(since).map_or(0, |age| age.as_secs())),
    }
}
