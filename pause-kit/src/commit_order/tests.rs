//! The plugin's text form, read back.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::Operation;
use super::decode::{Line, RowChange, decode};

/// A column as the plugin's source prints it: the name quoted when it must be, the type in brackets, the value quoted
/// when its type is none of the numeric ones.
fn printed(name: &str, kind: &str, value: Option<&str>) -> String {
    let value = match value {
        None => "null".to_owned(),
        Some(value) if matches!(kind, "bigint" | "boolean") => value.to_owned(),
        Some(value) if kind == "bit varying" => format!("B'{value}'"),
        Some(value) => format!("'{}'", value.replace('\'', "''")),
    };
    format!(" {}[{kind}]:{value}", quoted(name))
}

fn quoted(name: &str) -> String {
    let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if plain && !name.is_empty() {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('"', "\"\""))
    }
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z_]{1,8}",
        "[^\0]{1,8}",
        Just(" new-tuple:".to_owned()),
        Just("a.b[c]:'d".to_owned())
    ]
}

fn any_column() -> impl Strategy<Value = (String, Option<String>)> {
    let text = prop_oneof![
        "[^\0]{0,20}",
        Just("null".to_owned()),
        Just(" new-tuple: x[text]:'".to_owned())
    ];
    let valued = prop_oneof![
        (Just("bigint"), any::<i64>().prop_map(|value| value.to_string())),
        (Just("boolean"), any::<bool>().prop_map(|value| value.to_string())),
        (Just("bit varying"), "[01]{0,9}"),
        (Just("character varying"), text.clone()),
        (Just("text[]"), text.clone()),
        (Just("fence.\"odd ]\"\" type\"[]"), text),
    ];
    prop_oneof![
        valued.prop_map(|(kind, value)| (kind.to_owned(), Some(value))),
        Just(("bigint".to_owned(), None)),
        Just(("text".to_owned(), None)),
    ]
}

type Columns = BTreeMap<String, (String, Option<String>)>;

fn print_all(columns: &Columns) -> String {
    columns
        .iter()
        .map(|(name, (kind, value))| printed(name, kind, value.as_deref()))
        .collect()
}

fn values(columns: &Columns) -> BTreeMap<String, Option<String>> {
    columns
        .iter()
        .map(|(name, (_, value))| (name.clone(), value.clone()))
        .collect()
}

proptest! {
    #[test]
    fn what_the_plugin_prints_is_read_back_as_it_was(
        schema in any_name(),
        table in any_name(),
        columns in proptest::collection::btree_map(any_name(), any_column(), 1..5),
        key in proptest::collection::btree_map(any_name(), any_column(), 0..3),
        operation in prop_oneof![Just(Operation::Insert), Just(Operation::Update), Just(Operation::Delete)],
    ) {
        let word = match operation {
            Operation::Insert => "INSERT",
            Operation::Update => "UPDATE",
            _ => "DELETE",
        };
        let with_key = operation == Operation::Update && !key.is_empty();
        let mut line = format!("table {}.{}: {word}:", quoted(&schema), quoted(&table));
        if with_key {
            line += &format!(" old-key:{} new-tuple:", print_all(&key));
        }
        line += &print_all(&columns);
        let expected = RowChange {
            relations: vec![format!("{schema}.{table}")],
            operation,
            columns: values(&columns),
            old_key: if with_key { values(&key) } else { BTreeMap::new() },
        };
        prop_assert_eq!(decode(&line), Ok(Line::Change(expected)));
        // Cut anywhere, a line is refused or says less, and never more than was printed.
        for (cut, _) in line.char_indices() {
            if let Ok(Line::Change(change)) = decode(&line[..cut]) {
                prop_assert!(change.columns.len() <= columns.len());
            }
        }
    }

    #[test]
    fn no_line_makes_the_reader_panic(line in "(table [a-z.\"]{0,6}: (INSERT|UPDATE):)?[^\0]{0,40}") {
        let _ = decode(&line);
    }
}

#[test]
fn lines_without_columns_are_read() {
    assert_eq!(decode("BEGIN 693"), Ok(Line::Begin { xid: 693 }));
    assert_eq!(decode("COMMIT 693"), Ok(Line::Commit));
    let message = "message: transactional: 1 prefix: pause-kit, sz: 0 content:";
    assert_eq!(decode(message), Ok(Line::Message));
    let Ok(Line::Change(truncate)) = decode("table public.a, public.\"B,\": TRUNCATE: restart_seqs cascade")
    else {
        panic!("a truncate is a change");
    };
    assert_eq!(truncate.relations, ["public.a", "public.B,"]);
    assert_eq!(truncate.operation, Operation::Truncate);
    let Ok(Line::Change(delete)) = decode("table public.a: DELETE: (no-tuple-data)") else {
        panic!("a delete is a change");
    };
    assert!(delete.columns.is_empty());
}

#[test]
fn an_unchanged_large_value_is_no_column() {
    let line = "table public.a: UPDATE: id[integer]:1 big[text]:unchanged-toast-datum last[text]:'x'";
    let Ok(Line::Change(update)) = decode(line) else {
        panic!("an update is a change")
    };
    assert_eq!(update.columns.keys().collect::<Vec<_>>(), ["id", "last"]);
}

#[test]
fn a_line_of_another_form_is_refused_with_its_place() {
    for (line, at, expected) in [
        ("table public.a: MERGE: id[integer]:1", 16, "operation"),
        ("table public.a: INSERT: id[integer:1", 36, "column type"),
        ("table public.a: INSERT: id[text]:'x", 34, "closing quote"),
        ("STREAM", 0, "kind of line"),
    ] {
        let error = decode(line).unwrap_err();
        assert_eq!((error.at, error.expected), (at, expected), "{line}");
    }
}
