//! What happened in a lock store on etcd, from its revision stream alone: `audit URL PREFIX TIER FROM UNTIL` prints each grant,
//! release, loss and epoch of these revisions, in order, each once. It ends when something under the prefix happened at UNTIL
//! or later.

use std::process::ExitCode;

use fence_core::{Revision, TierName};
use fence_lock::{AuditEvent, EtcdStore, GrantEvent};

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match audit(&words).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("audit: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn audit(words: &[String]) -> Result<(), Failure> {
    let [url, prefix, tier, from, until] = words else {
        return Err("give URL PREFIX TIER FROM UNTIL".into());
    };
    let store = EtcdStore::connect(&[url], prefix, TierName::new(tier.as_str())?).await?;
    let until: u64 = until.parse()?;
    let mut watch = store.audit_from(Revision::new(from.parse()?)?).await?;
    while watch.told_up_to() < until {
        watch.read_on().await?;
        while let Some(event) = watch.ready_audited() {
            let (at, line) = told(&event);
            if at <= until {
                println!("{at} {line}");
            }
        }
    }
    Ok(())
}

/// The revision of an event, and its line.
fn told(event: &AuditEvent) -> (u64, String) {
    match event {
        AuditEvent::Grant(GrantEvent::Granted {
            class,
            key,
            token,
            grant_id,
            session,
            at,
        }) => {
            let line = format!("granted {class} {} {token} {grant_id} {session}", key.as_str());
            (at.as_u64(), line)
        }
        AuditEvent::Grant(GrantEvent::Released {
            class,
            key,
            grant_id,
            at,
        }) => (
            at.as_u64(),
            format!("released {class} {} {grant_id}", key.as_str()),
        ),
        AuditEvent::Grant(GrantEvent::Gone {
            class,
            key,
            grant_id,
            at,
        }) => (at.as_u64(), format!("lost {class} {} {grant_id}", key.as_str())),
        AuditEvent::EpochBegan { record, at } => {
            (at.as_u64(), format!("epoch {} {}", record.epoch, record.reason))
        }
        AuditEvent::Closed { epoch, why, at } => {
            let why = why.as_deref().unwrap_or("its record was deleted");
            (at.as_u64(), format!("closed {epoch} {why}"))
        }
    }
}
