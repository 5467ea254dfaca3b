//! The record of etcd: a watch through its JSON gateway, which shares no code with the store that is measured.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::judge::{Change, End};
use crate::measure::Failure;

/// A watch that was started before anything else.
pub(super) struct Revisions {
    endpoint: String,
    changes: JoinHandle<Result<Vec<Change>, Failure>>,
}

/// The key whose appearance ends the watch.
const END: &str = "fence/end";

impl Revisions {
    pub(super) async fn watch(endpoint: &str) -> Result<Revisions, Failure> {
        let request = json!({ "create_request": {
            "key": b64("fence/"), "range_end": b64("fence0"), "start_revision": "1", "prev_kv": true
        } });
        let answer = reqwest::Client::new()
            .post(format!("{endpoint}/v3/watch"))
            .json(&request)
            .send()
            .await?
            .error_for_status()?;
        Ok(Revisions {
            endpoint: endpoint.to_owned(),
            changes: tokio::spawn(read(answer)),
        })
    }

    /// Everything until now.
    pub(super) async fn end(self) -> Result<Vec<Change>, Failure> {
        let put = json!({ "key": b64(END), "value": "" });
        let sent = reqwest::Client::new()
            .post(format!("{}/v3/kv/put", self.endpoint))
            .json(&put)
            .send();
        sent.await?.error_for_status()?;
        tokio::time::timeout(std::time::Duration::from_secs(120), self.changes).await??
    }
}

async fn read(mut answer: reqwest::Response) -> Result<Vec<Change>, Failure> {
    let (mut changes, mut unread) = (Vec::new(), Vec::new());
    let mut released = HashMap::new();
    while let Some(chunk) = answer.chunk().await? {
        unread.extend_from_slice(&chunk);
        while let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = unread.drain(..=end).collect();
            let line: Value = serde_json::from_slice(&line)?;
            let Some(events) = line["result"]["events"].as_array() else {
                continue;
            };
            for event in events {
                if text(&event["kv"]["key"])? == END {
                    return Ok(changes);
                }
                changes.extend(change(event, &mut released)?);
            }
        }
    }
    Err("the watch ended by itself".into())
}

/// A release puts its record and deletes the hold in one revision; a lease that ends deletes only.
fn change(event: &Value, released: &mut HashMap<String, (i64, String)>) -> Result<Option<Change>, Failure> {
    let (kv, name) = (&event["kv"], text(&event["kv"]["key"])?);
    let Some((base, kind)) = name.rsplit_once('/') else {
        return Ok(None);
    };
    let revision = number(&kv["mod_revision"])?;
    let deleted = event["type"] == "DELETE";
    Ok(match (kind, deleted) {
        ("released", false) => {
            let record: Value = serde_json::from_str(&text(&kv["value"])?)?;
            let grant = record["grant_id"].as_str().unwrap_or_default().to_owned();
            released.insert(base.to_owned(), (revision, grant));
            None
        }
        ("held", false) => {
            let record: Value = serde_json::from_str(&text(&kv["value"])?)?;
            let said = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
            Some(Change::Granted {
                key: base.to_owned(),
                // Of epoch 1.
                number: (1 << 48) + number(&kv["create_revision"])?,
                grant: said("grant_id"),
                session: said("session"),
            })
        }
        ("held", true) => {
            let record: Value = serde_json::from_str(&text(&event["prev_kv"]["value"])?)?;
            let grant = record["grant_id"].as_str().unwrap_or_default().to_owned();
            let by_release = released.get(base) == Some(&(revision, grant.clone()));
            Some(Change::Ended {
                key: base.to_owned(),
                grant,
                how: if by_release { End::Released } else { End::Gone },
            })
        }
        _ => None,
    })
}

fn b64(text: &str) -> String {
    STANDARD.encode(text)
}

fn text(value: &Value) -> Result<String, Failure> {
    Ok(String::from_utf8(
        STANDARD.decode(value.as_str().unwrap_or_default())?,
    )?)
}

/// Numbers of 64 bits are texts in etcd's JSON.
fn number(value: &Value) -> Result<i64, Failure> {
    Ok(value.as_str().unwrap_or_default().parse()?)
}
