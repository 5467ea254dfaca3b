//! docs/postgresql.md, run as it says.

use std::path::Path;

use crate::readme::{beside_a_database, blocks_of};
use crate::source::read;

const PAGE: &str = "docs/postgresql.md";

/// The page's SQL up to a heading, each block behind a line that says its number.
fn sql_before(heading: &str) -> String {
    let text = read(Path::new(PAGE));
    let (before, _) = text.split_once(heading).unwrap_or_else(|| panic!("no {heading}"));
    let number = before.matches("```sql\n").count();
    let blocks = blocks_of(PAGE, "sql");
    assert!(number > 0 && number <= blocks.len());
    blocks[..number]
        .iter()
        .enumerate()
        .map(|(n, sql)| format!("\\echo == {}\n{sql}", n + 1))
        .collect()
}

/// What psql says for each numbered block, with its errors among the rest.
fn said(sql: &str) -> Vec<String> {
    let shell = blocks_of(PAGE, "sh");
    let [install, memory] = shell.as_slice() else {
        panic!("{PAGE} has {} blocks of shell", shell.len())
    };
    let (install, session) = install
        .trim_end()
        .rsplit_once('\n')
        .expect("it installs, and opens a session");
    assert_eq!(session, "psql \"$DATABASE_URL\"");
    // The memory is taken where the page takes it: before the block that asks the doctor.
    let (before, after) = sql
        .split_once("SELECT * FROM fence.doctor();")
        .expect("the page asks the doctor");
    let memory = memory.replace("shop.memory", "/dev/null");
    let script = format!(
        "exec 2>&1\n{install}\n{session} --no-psqlrc <<'SQL'\n{before}\\! {}\nSELECT * FROM fence.doctor();{after}\nSQL\n",
        memory.trim_end()
    );
    let (output, said, complained) = beside_a_database(&script);
    assert!(output.status.success(), "{said}{complained}");
    said.split("== ").skip(1).map(str::to_owned).collect()
}

#[test]
fn the_walk_observes_then_enforces_and_the_doctor_then_finds_nothing() {
    let said = said(&sql_before("## What is covered"));
    let [table, declare, observed, write, enforce, forgetful, stale, doctor] = said.as_slice() else {
        panic!("{} blocks: {said:#?}", said.len())
    };
    let shown = blocks_of(PAGE, "text");
    for (said, shown) in [(observed, &shown[0]), (forgetful, &shown[1]), (stale, &shown[2])] {
        for line in shown.lines() {
            assert!(said.contains(line), "the page shows {line:?}: {said}");
        }
    }
    for fine in [table, declare, observed, write, enforce, doctor] {
        assert!(!fine.contains("ERROR"), "{fine}");
    }
    assert!(
        observed.contains("UPDATE 1"),
        "while it observes, it lets through: {observed}"
    );
    assert!(write.contains("UPDATE 1\nCOMMIT"), "{write}");
    assert!(doctor.contains("(0 rows)"), "a false alarm: {doctor}");
}

#[test]
fn the_column_guards_function_closes_what_the_doctor_would_find() {
    let asked = format!(
        "{}\n\\echo == last\nSELECT * FROM fence.doctor();\n",
        sql_before("## For operators")
    );
    let said = said(&asked);
    let [.., settle, last] = said.as_slice() else {
        panic!("{said:#?}")
    };
    let shown = blocks_of(PAGE, "text");
    for line in shown[3].lines() {
        assert!(settle.contains(line), "the page shows {line:?}: {settle}");
    }
    assert!(settle.contains(" settled\n"), "{settle}");
    assert!(last.contains("(0 rows)"), "a false alarm: {last}");
}

#[test]
fn the_calls_that_the_page_names_exist() {
    let text = read(Path::new(PAGE));
    let installed: String = fence_sql();
    let mut calls = 0;
    for call in text.split("fence.").skip(1) {
        let name: String = call
            .chars()
            .take_while(|letter| letter.is_ascii_lowercase() || *letter == '_')
            .collect();
        if call[name.len()..].starts_with('(') {
            calls += 1;
            assert!(
                installed.contains(&format!("FUNCTION fence.{name}(")),
                "{PAGE} calls fence.{name}, which does not exist"
            );
        }
    }
    assert!(calls > 15, "only {calls} calls were found");
}

/// The guard's SQL.
fn fence_sql() -> String {
    crate::source::files()
        .iter()
        .filter(|file| file.starts_with("fence-pg/sql"))
        .map(|file| read(file))
        .collect()
}
