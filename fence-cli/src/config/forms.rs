//! The right form of what the parser expected, in words and as it is written.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

/// How each key is written, for whoever has left it out or given it a value of another type.
const FORMS: &[&str] = &[
    "about = \"one lock for each thing\"",
    "accepted_on = 2026-11-02",
    "again = [\"--writes\", \"2\"]",
    "amount = \"amount\"",
    "balances = \"SELECT id, balance FROM account\"",
    "blast_radius = \"one order's webhook, sent twice\"",
    "body = '{\"id\":\"{id}\"}'",
    "class = \"app.thing\"",
    "command = [\"{bin}/worker\", \"{key}\"]",
    "deadline_ms = 2000",
    "deed = \"refunded\"",
    "defeat_on_path = [{ find = \"2000ms\", replace = \"0000ms\" }]",
    "defeat_sql = \"admit_everything.sql\"",
    "enforcement = \"fenced\"",
    "etcd = [\"http://127.0.0.1:2379\"]",
    "etcd_user = \"locks\"",
    "find = \"2000ms\"",
    "forgetful = \"INSERT INTO transfer (id, account) VALUES ('{id}', '{key}')\"",
    "from = \"from_account\"",
    "gates = [\"before-send\"]",
    "guard = \"mark\"",
    "guard_sql = \"guard\"",
    "headers = { Idempotency-Key = \"{id}\" }",
    "holder = { command = [\"{bin}/worker\", \"{key}\"], gates = [\"before-send\"] }",
    "http2 = [\"--http2\"]",
    "id = \"id\"",
    "idle_ms = 5000",
    "job = \"reference\"",
    "journal = [\"--journal\", \"{journal}\"]",
    "key = \"account\"",
    "keys = \"acct-{n}\"",
    "later = [\"--later\"]",
    "lock_database_variable = \"LOCK_DATABASE_URL\"",
    "method = \"POST\"",
    "mitigation = \"the provider drops repeats\"",
    "moves = { from = \"from_account\", to = \"to_account\", amount = \"amount\" }",
    "owner = \"team-1\"",
    "path = \"/accounts/{key}/transfers\"",
    "prefix = \"fence\"",
    "prepare = [{ sql = \"INSERT INTO account (id) VALUES ('{key}')\" }]",
    "proof_max_age_days = 30",
    "purpose = \"correctness\"",
    "raise = { method = \"POST\", path = \"/accounts/{key}/fence\" }",
    "read = { path = \"/accounts/{key}/transfers\", id = \"id\" }",
    "ready = \"listening on \"",
    "reason = \"the provider takes no token\"",
    "replace = \"0000ms\"",
    "request = { method = \"POST\", path = \"/accounts\" }",
    "review_by = 2027-04-30",
    "scenarios = [\"S01\", \"S02\"]",
    "setup = [{ sql = \"SELECT fence.register_epoch('entity', 1)\" }]",
    "sql = \"SELECT id FROM transfer WHERE account = '{key}'\"",
    "table = \"public.transfer\"",
    "target = \"app\"",
    "tier = \"entity\"",
    "tls_ca = \"ca.pem\"",
    "tls_cert = \"client.pem\"",
    "tls_key = \"client.key\"",
    "to = \"to_account\"",
    "token = \"fence_token\"",
    "ttl = \"10s\"",
    "unraised = [\"--read-first\"]",
    "worker = [\"{bin}/jobs\", \"{database_url}\"]",
    "write = { method = \"POST\", path = \"/accounts/{key}/transfers\", headers = { Idempotency-Key = \"{id}\" } }",
    "writes = { table = \"public.transfer\", key = \"account\", id = \"id\" }",
];

/// What the parser calls otherwise than a reader of the file would.
const WORDS: &[(&str, &str)] = &[
    ("invalid type: sequence", "invalid type: list"),
    ("invalid type: map", "invalid type: table"),
    ("expected a sequence", "expected a list"),
    ("expected a map", "expected a table"),
    ("expected u64", "expected a whole number"),
    ("expected u32", "expected a whole number"),
];

/// A message of the parser about these bytes of the text, with the form to write where there is one.
pub(super) fn told(text: &str, span: &Range<usize>, message: &str) -> String {
    let mut told = message.replace('\n', " ");
    for (jargon, words) in WORDS {
        told = told.replace(jargon, words);
    }
    if let Some((start, _)) = told.split_once("expected struct ") {
        told = format!("{start}expected a table");
    }
    let key = match told.strip_prefix("missing field `") {
        Some(rest) => rest.split('`').next().map(ToOwned::to_owned),
        None if told.starts_with("invalid type") || told.starts_with("invalid value") => key_at(text, span),
        None => None,
    };
    let form = key.and_then(|key| {
        let mut forms = FORMS.iter();
        forms.find(|form| {
            form.strip_prefix(&key)
                .is_some_and(|rest| rest.starts_with(" = "))
        })
    });
    match form {
        Some(form) => format!("{told}; write it like {form}"),
        None => told,
    }
}

/// The key whose value stands at these bytes, or holds them in a list.
fn key_at(text: &str, span: &Range<usize>) -> Option<String> {
    let table = DeTable::parse(text).ok()?.into_inner();
    let mut tables = vec![table];
    while let Some(table) = tables.pop() {
        for (name, value) in table {
            let holds = value.span().start <= span.start && span.end <= value.span().end;
            if holds && !matches!(value.get_ref(), DeValue::Table(_)) && !holds_table(value.get_ref()) {
                return Some(name.into_inner().into_owned());
            }
            let at = value.span() == *span;
            if at {
                return Some(name.into_inner().into_owned());
            }
            push(value.into_inner(), &mut tables);
        }
    }
    None
}

fn holds_table(value: &DeValue<'_>) -> bool {
    matches!(value, DeValue::Array(values) if values.iter().any(|value| matches!(value.get_ref(), DeValue::Table(_))))
}

fn push<'a>(value: DeValue<'a>, tables: &mut Vec<DeTable<'a>>) {
    match value {
        DeValue::Table(table) => tables.push(table),
        DeValue::Array(values) => {
            for value in values {
                push(value.into_inner(), tables);
            }
        }
        _ => {}
    }
}
