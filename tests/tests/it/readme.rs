//! README's ten minutes, run as README says.

use std::path::Path;
use std::process::{Command, Output};

use crate::source::{read, root};

/// README's blocks in this language, in order.
fn blocks(language: &str) -> Vec<String> {
    blocks_of("README.md", language)
}

pub(crate) fn blocks_of(file: &str, language: &str) -> Vec<String> {
    read(Path::new(file))
        .split(&format!("```{language}\n"))
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

/// What a shell says that `./dev database` runs with these commands.
pub(crate) fn beside_a_database(commands: &str) -> (Output, String, String) {
    let mut dev = Command::new(root().join("dev"));
    dev.args(["database", "bash", "-euo", "pipefail", "-c", commands])
        .current_dir(root());
    let output = dev.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    (output, said, complained)
}

#[test]
fn the_ten_minutes_in_sql_guard_a_table_and_refuse_the_stale_holder() {
    let shell = blocks("sh");
    let [_, install, _] = shell.as_slice() else {
        panic!("README has {} blocks of shell", shell.len())
    };
    let (install, session) = install
        .trim_end()
        .rsplit_once('\n')
        .expect("it installs, and opens a session");
    assert_eq!(session, "psql \"$DATABASE_URL\"");
    let sql = blocks("sql");
    let [once, holder, stale, forgetful] = sql.as_slice() else {
        panic!("README has {} blocks of SQL", sql.len())
    };
    // The session, which says after each later statement what failed last, and what it finds at the end.
    let code = |sql: &str| sql.replace(";\n", ";\n\\echo :LAST_ERROR_SQLSTATE\n");
    let (output, said, complained) = beside_a_database(&format!(
        "{install}\n{session} --no-psqlrc <<'SQL'\n{once}{holder}{}{}SELECT 'order 42 is ' || state FROM orders;\nSQL\n",
        code(stale),
        code(forgetful),
    ));
    assert!(output.status.success(), "{said}{complained}");
    let codes: Vec<&str> = said
        .lines()
        .filter(|line| line.len() == 5 && !line.contains(' '))
        .collect();
    assert_eq!(
        codes,
        ["BEGIN", "BEGIN", "00000", "ZF001", "25P02", "25P02", "ZF002"],
        "{said}"
    );
    let told = blocks("text");
    for line in told[0].lines() {
        assert!(complained.contains(line), "README shows {line:?}: {complained}");
    }
    assert_eq!(complained.matches("ERROR:  ").count(), 3, "{complained}");
    assert!(
        complained.contains("ERROR:  current transaction is aborted"),
        "{complained}"
    );
    assert!(complained.contains("ERROR:  missing admission"), "{complained}");
    assert!(said.contains("ROLLBACK"), "{said}");
    assert!(said.contains("order 42 is paid"), "{said}");
}

#[test]
fn the_python_of_the_ten_minutes_writes_under_its_token_and_is_refused_under_an_older_one() {
    let shell = blocks("sh");
    let install = shell[1].trim_end().rsplit_once('\n').unwrap().0;
    let python = blocks("python");
    let [python] = python.as_slice() else {
        panic!("README has {} blocks of Python", python.len())
    };
    let (once, holder) = (&blocks("sql")[0], &blocks("sql")[1]);
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("order.py");
    let begin = "import os, sys, psycopg\norder_id, token, grant = 42, int(sys.argv[1]), sys.argv[2]\n";
    std::fs::write(&script, format!("{begin}{python}")).unwrap();
    let script = script.display();
    // Debian's own Python has Debian's psycopg, whatever else stands in PATH.
    let (output, said, complained) = beside_a_database(&format!(
        "{install}\npsql \"$DATABASE_URL\" --no-psqlrc -q <<'SQL'\n{once}{holder}SQL\n\
         /usr/bin/python3 {script} 281474976710690 e5a1\n\
         if /usr/bin/python3 {script} 281474976710689 d4c2; then echo 'let in'; fi\n\
         psql \"$DATABASE_URL\" -Atc 'SELECT state FROM orders WHERE id = 42'\n",
    ));
    assert!(output.status.success(), "{said}{complained}");
    assert!(
        said.ends_with("sent\n") && !said.contains("let in"),
        "{said}{complained}"
    );
    assert!(
        complained.contains("presented 281474976710689, seen 281474976710690"),
        "{complained}"
    );
}

#[test]
fn the_page_that_goes_with_the_static_command_guards_a_table_too() {
    let page = "fence-cli/dist/README.md";
    let (shell, sql) = (blocks_of(page, "sh"), blocks_of(page, "sql"));
    let ([install], [once, holder]) = (shell.as_slice(), sql.as_slice()) else {
        panic!(
            "{page} has {} blocks of shell and {} of SQL",
            shell.len(),
            sql.len()
        )
    };
    let stale = holder
        .lines()
        .next()
        .unwrap()
        .replace("679, 'b2f1'", "673, 'a0c9'");
    // Its folder `sql` is fence-pg's.
    let (output, said, complained) = beside_a_database(&format!(
        "cd fence-pg\n{install}psql \"$DATABASE_URL\" --no-psqlrc <<'SQL'\n\
         CREATE TABLE orders (id bigint PRIMARY KEY, state text NOT NULL); INSERT INTO orders VALUES (42, 'new');\n\
         {once}{holder}{stale}\n\\echo :LAST_ERROR_SQLSTATE\nSELECT 'order 42 is ' || state FROM orders;\nSQL\n"
    ));
    assert!(output.status.success(), "{said}{complained}");
    assert_eq!(complained.matches("ERROR:  ").count(), 1, "{complained}");
    assert!(said.contains("\nZF001\n"), "{said}{complained}");
    assert!(said.contains("order 42 is paid"), "{said}");
}

#[test]
fn the_ten_minutes_in_rust_are_an_example_that_refuses_the_stale_holder() {
    let file = read(Path::new("fence-pg/examples/guard_a_table.rs"));
    let program = file
        .split_once("\n\n")
        .expect("a line about it, and the program")
        .1;
    assert_eq!(blocks("rust"), [program]);

    let example = crate::prove::binary("examples/guard_a_table");
    let (output, said, complained) = beside_a_database(&example.display().to_string());
    assert!(output.status.success(), "{complained}");
    assert_eq!(said, blocks("text")[1], "{complained}");
}

#[test]
fn the_dependencies_that_the_readme_names_are_those_of_the_workspace() {
    let toml = blocks("toml");
    let workspace = read(Path::new("Cargo.toml"));
    let line = |text: &str, name: &str| -> String {
        let found = text.lines().find(|line| line.starts_with(&format!("{name} = ")));
        found.unwrap_or_else(|| panic!("no {name}: {text}")).to_owned()
    };
    assert_eq!(line(&toml[0], "sqlx"), line(&workspace, "sqlx"));
    for package in ["fence-core", "fence-pg"] {
        let path = format!("path = \"../fence/{package}\"");
        assert!(line(&toml[0], package).contains(&path), "{}", toml[0]);
        assert!(root().join(package).join("Cargo.toml").exists());
    }
}
