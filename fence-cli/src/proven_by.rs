//! What a class is proven by, as it is declared and stands on disk now.

use fence_core::ClassName;
use pause_kit::evidence::ProvenBy;
use pause_kit::target::Target;
use sha2::{Digest, Sha256};
use toml::{Table, Value};

use crate::config::Manifest;
use crate::guard::{self, GuardError};
use crate::regular;

/// The digests of how this class is proven; nothing, when it is not declared with a proof.
pub(crate) fn now(manifest: &Manifest, class: &ClassName) -> Result<Option<ProvenBy>, GuardError> {
    let Some(target) = target(manifest, class) else {
        return Ok(None);
    };
    let defeat_sql = match &target.defeat_sql {
        Some(file) => Some(regular::read(file).map_err(|source| GuardError {
            path: file.clone(),
            source,
        })?),
        None => None,
    };
    Ok(Some(ProvenBy {
        declared: sha256(canonical(&declared(manifest, class)).as_bytes()),
        guard_sql: guard::sha256(std::iter::once(target.guard_sql.as_path()))?,
        defeat_sql: defeat_sql.map(|sql| sha256(&sql)),
    }))
}

/// The target that a class is proven on.
pub(crate) fn target<'a>(manifest: &'a Manifest, class: &ClassName) -> Option<&'a Target> {
    let proof = manifest.classes.get(class)?.proof.as_ref()?;
    manifest.targets.get(&proof.target)
}

/// All that is declared of how the class is proven. What is left out and has a usual value counts as that value.
fn declared(manifest: &Manifest, name: &ClassName) -> Value {
    let mut declared = Table::new();
    let mut put = |key: &str, value: Option<Value>| {
        declared.extend(value.map(|value| (key.to_owned(), value)));
    };
    let class = manifest.classes.get(name);
    let of_class = |key| manifest.written(&["classes", name.as_str(), key]);
    put("ttl", class.map(|class| Value::String(class.ttl.to_string())));
    put("tier", of_class("tier"));
    put("guard", of_class("guard"));
    put("proof", of_class("proof"));
    let target = class
        .and_then(|class| class.proof.as_ref())
        .map(|proof| &proof.target);
    put(
        "target",
        target.and_then(|target| manifest.written(&["targets", target])),
    );
    Value::Table(declared)
}

/// A value in the one form that its digest is taken of: keys in order, no space, texts as JSON writes them, dates and numbers
/// without quotes. The form never changes, or every proof would have to be run again.
fn canonical(value: &Value) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    match value {
        Value::String(text) => quoted(text),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => format!("{number:e}"),
        Value::Boolean(yes) => yes.to_string(),
        Value::Datetime(instant) => instant.to_string(),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(canonical).collect();
            format!("[{}]", values.join(","))
        }
        Value::Table(table) => {
            let mut members: Vec<(&String, &Value)> = table.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            let members = members
                .into_iter()
                .map(|(key, value)| format!("{}:{}", quoted(key), canonical(value)));
            let members: Vec<String> = members.collect();
            format!("{{{}}}", members.join(","))
        }
    }
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(text: &str) -> String {
        canonical(&Value::Table(text.parse().unwrap()))
    }

    #[test]
    fn comments_layout_and_the_order_of_keys_have_no_weight() {
        let one = form("[proof]\nb = \"x\"\na = [1, 2]\n[proof.with]\nc = true\n");
        let other = form("# how\nproof = { with = { c = true }, a = [\n 1, 2, ], 'b' = 'x' }");
        assert_eq!(one, other);
        assert_eq!(one, r#"{"proof":{"a":[1,2],"b":"x","with":{"c":true}}}"#);
    }

    #[test]
    fn what_differs_in_value_type_or_place_differs() {
        let all = [
            "a = 1",
            "a = 2",
            "a = \"1\"",
            "a = 1.0",
            "a = 1.5",
            "a = true",
            "a = \"true\"",
            "a = [1]",
            "a = [1, 2]",
            "a = [2, 1]",
            "a = [[1], 2]",
            "a = { b = 1 }",
            "a = {}",
            "a = []",
            "a = \"\"",
            "b = 1",
            "a = 2026-11-29",
            "a = \"2026-11-29\"",
            "a = \"x\\\"\"",
            "a = \"x\\\\\"",
        ];
        let forms: std::collections::BTreeSet<String> = all.iter().map(|text| form(text)).collect();
        assert_eq!(forms.len(), all.len(), "{forms:?}");
    }
}
