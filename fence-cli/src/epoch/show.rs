//! `fence epoch show`.

use clap::Args;
use fence_core::{Epoch, TierName};
use fence_lock::{EpochStatus, Witness as _};
use serde_json::{Value, json};

use super::witness::{Database, WitnessArguments};
use crate::exit::{Ending, Failure, chain};
use crate::say;
use crate::store::TierArguments;

/// Which store, and which witnesses.
#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    #[command(flatten)]
    store: TierArguments,
    #[command(flatten)]
    witnesses: WitnessArguments,
    /// Say it as JSON
    #[arg(long)]
    json: bool,
}

/// What a witness knows.
struct Known {
    name: String,
    epochs: Vec<(TierName, Epoch)>,
    /// The epoch and the link that it remembers.
    memory: Option<(Epoch, u64)>,
}

/// Ends with 1 when the store grants nothing.
pub(super) async fn run(arguments: &ShowArguments) -> Result<Ending, Failure> {
    let tier = arguments.store.tier();
    let mut known = Vec::new();
    for database in arguments.witnesses.open().await? {
        known.push(ask(&database, tier).await?);
    }
    let store = arguments.store.etcd().await?;
    let status = store.epoch_status().await.map_err(Failure::service)?;
    let text = if arguments.json {
        format!("{:#}\n", as_json(&status, &known))
    } else {
        as_text(&status, &known)
    };
    say::answer(&text)?;
    Ok(match status.closed {
        None => Ending::Done,
        Some(_) => Ending::Found,
    })
}

async fn ask(witness: &Database, tier: &TierName) -> Result<Known, Failure> {
    let epochs = witness.known().await.map_err(Failure::service)?;
    let memory = witness.memory(tier).await.map_err(Failure::service)?;
    Ok(Known {
        name: witness.name(),
        epochs,
        memory: memory.map(|memory| (memory.epoch(), memory.generation())),
    })
}

fn as_text(status: &EpochStatus, known: &[Known]) -> String {
    let mut lines = Vec::new();
    match &status.record {
        Some(record) => {
            lines.push(format!("epoch     {} of tier {}", record.epoch, record.tier));
            lines.push(format!("reason    {}", record.reason));
            lines.push(format!("recorded  in cluster {}", record.cluster_id));
        }
        None => lines.push("epoch     none".to_owned()),
    }
    lines.push(format!(
        "cluster   {}, at revision {}",
        status.cluster_id, status.revision
    ));
    if let Some(generation) = status.generation {
        let slack = status.slack.map_or_else(
            || "its log was not judged".to_owned(),
            |slack| format!("its log at least {slack} ahead"),
        );
        lines.push(format!("lineage   {generation} links, {slack}"));
    }
    if let Some((epoch, reason)) = &status.intent {
        lines.push(format!("intent    epoch {epoch}, for: {reason}"));
    }
    let placed = status.record.as_ref().is_some_and(|record| record.classes_placed);
    lines.push(match placed {
        true => format!("classes   {}", joined(&status.classes)),
        false => "classes   any: none were placed".to_owned(),
    });
    for known in known {
        let memory = known.memory.map_or_else(
            || "has never seen it".to_owned(),
            |(epoch, link)| format!("last saw epoch {epoch} at link {link}"),
        );
        let epochs: Vec<String> = known
            .epochs
            .iter()
            .map(|(tier, epoch)| format!("{tier} {epoch}"))
            .collect();
        lines.push(format!(
            "witness   {} {memory}; registered: {}",
            known.name,
            joined(&epochs)
        ));
    }
    lines.push(match &status.closed {
        None => "grants    yes".to_owned(),
        Some(closed) => format!("grants    no: {}", chain(closed)),
    });
    lines.iter().map(|line| say::plain(line) + "\n").collect()
}

fn as_json(status: &EpochStatus, known: &[Known]) -> Value {
    let names = |epochs: &[(TierName, Epoch)]| -> Vec<Value> {
        let one =
            |(tier, epoch): &(TierName, Epoch)| json!({ "tier": tier.as_str(), "epoch": epoch.as_u16() });
        epochs.iter().map(one).collect()
    };
    let witnesses: Vec<Value> = known
        .iter()
        .map(|known| {
            json!({
                "name": known.name,
                "registered": names(&known.epochs),
                "remembers": known.memory.map(|(epoch, link)| json!({ "epoch": epoch.as_u16(), "link": link })),
            })
        })
        .collect();
    json!({
        "record": status.record,
        "cluster_id": status.cluster_id,
        "revision": status.revision,
        "generation": status.generation,
        "slack": status.slack,
        "intent": status.intent.as_ref().map(|(epoch, reason)| json!({ "epoch": epoch.as_u16(), "reason": reason })),
        "classes": status.classes.iter().map(|class| class.as_str()).collect::<Vec<_>>(),
        "grants": status.closed.is_none(),
        "why_not": status.closed.as_ref().map(|closed| chain(closed)),
        "witnesses": witnesses,
    })
}

fn joined<T: ToString>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(ToString::to_string).collect();
    match items.is_empty() {
        true => "none".to_owned(),
        false => items.join(", "),
    }
}
