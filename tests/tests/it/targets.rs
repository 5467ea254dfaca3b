//! The examples in other languages, from their own `fence.toml` to the verdict.

use fence_tests::examples::{EXAMPLES, Example};

use crate::prove::binary;

fn example(name: &str) -> Example {
    EXAMPLES.into_iter().find(|example| example.name == name).unwrap()
}

fn proven_and_violated_without_its_fence(name: &str, scenarios: &[&str]) {
    let arguments: Vec<&str> = scenarios
        .iter()
        .flat_map(|scenario| ["--scenario", scenario])
        .collect();
    let whole = example(name)
        .copy()
        .unwrap()
        .prove(&binary("fence"), &arguments)
        .unwrap();
    assert!(whole.is_proven(), "{}", whole.text);
    for scenario in whole.evidence["scenarios"].as_array().unwrap() {
        assert_eq!(scenario["on"]["refusal"]["sqlstate"], "ZF001", "{}", whole.text);
        assert!(
            scenario["defeated"]["corruption"]
                .as_str()
                .unwrap()
                .contains("late, by H1")
        );
    }
    let without = example(name).copy().unwrap().without_fence().unwrap();
    let without = without.prove(&binary("fence"), &arguments).unwrap();
    assert!(without.is_violated(), "{}", without.text);
    let broken = without.evidence["scenarios"][0]["on"]["violated"].to_string();
    assert!(broken.contains("H1-write-1 of H1"), "{broken}");
    let words: Vec<&str> = without.text.split_whitespace().collect();
    let told = words.join(" ").contains("accepted it, although it had seen");
    assert!(told, "{}", without.text);
}

#[test]
fn a_service_in_python_with_holders_in_shell_is_proven_and_violated_without_its_one_line_of_fencing() {
    proven_and_violated_without_its_fence("python-http", &["S02", "S07"]);
}

#[test]
fn a_holder_in_javascript_straight_to_postgresql_is_proven_and_violated_without_its_one_line_of_fencing() {
    proven_and_violated_without_its_fence("node-postgres", &["S02"]);
}

/// What the holder in JavaScript says in its code, and what it says instead, to write once it has been refused.
const WRITES_ONCE_REFUSED: [(&str, &str); 2] = [
    (
        "    await db.query('SELECT fence.admit($1, $2, $3, $4)', [CLASS, document, token, grant]);",
        "    await db.query('SAVEPOINT s'); try { await db.query('SELECT fence.admit($1, $2, $3, $4)', [CLASS, document, token, \
         grant]); } catch { await db.query('ROLLBACK TO s'); await new Promise((over) => setTimeout(over, 300)); }",
    ),
    (
        "    console.log(`${release}: refused: ${error.code} ${error.detail}`);",
        "    await new Promise((over) => setTimeout(over, 200));
             await db.query('INSERT INTO edition (id, document, release) VALUES ($1, $2, $3)', \
         [`${grant}:${number}`, document, release]);",
    ),
];

#[test]
fn a_holder_that_writes_some_time_after_its_refusal_is_violated() {
    for (sound, fault) in WRITES_ONCE_REFUSED {
        let copy = example("node-postgres").copy().unwrap();
        let copy = copy.with("publish.js", sound, fault).unwrap();
        let run = copy.prove(&binary("fence"), &["--scenario", "S02"]).unwrap();
        assert_eq!(run.code, Some(1), "{fault}: {}", run.text);
        let broken = run.evidence["scenarios"][0]["on"]["violated"].to_string();
        assert!(broken.contains("a write of H1"), "{fault}: {broken}");
    }
}

#[test]
fn a_late_holder_that_goes_on_and_on_after_its_refusal_leaves_all_open_and_is_named() {
    let (sound, fault) = (
        "    await db.end();\n",
        "    await db.end(); for (;;) await new Promise((over) => setTimeout(over, 1000));\n",
    );
    let copy = example("node-postgres").copy().unwrap();
    let copy = copy.with("publish.js", sound, fault).unwrap();
    let run = copy.prove(&binary("fence"), &["--scenario", "S02"]).unwrap();
    assert!(run.text.contains("inconclusive"), "{}", run.text);
    assert!(
        run.text
            .contains("H1 did not end within 5 s after its write was answered"),
        "{}",
        run.text
    );
}

/// A mistake: the example, the file, what it says, what it says instead, the text on the line that must be named, and words
/// of the message.
type Mistake = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

const MISTAKES: [Mistake; 16] = [
    // Found before anything starts.
    (
        "python-http",
        "fence.toml",
        "\"./stock.py\"",
        "\"./stocks.py\"",
        "command = [\"./stocks.py",
        &["no executable file", "stocks.py"],
    ),
    (
        "node-postgres",
        "fence.toml",
        "\"before-send\"]",
        "\"before-commit\"]",
        "scenarios = ",
        &["S01", "\"before-send\"", "gates = ["],
    ),
    (
        "node-postgres",
        "fence.toml",
        "defeat_sql = \"admit_everything.sql\"",
        "defeat = \"fresher-token\"",
        "target = \"library\"",
        &["no front", "defeat_sql"],
    ),
    (
        "python-http",
        "fence.toml",
        "scenarios = [\"S01\"",
        "scenarios = [\"S05\", \"S01\"",
        "scenarios = ",
        &["in S05", "leave S05 out", "defeat_sql"],
    ),
    (
        "python-http",
        "fence.toml",
        "scenarios = [\"S01\"",
        "scenarios = [\"S29\", \"S01\"",
        "scenarios = ",
        &["in S29", "leave S29 out", "defeat_sql"],
    ),
    (
        "python-http",
        "fence.toml",
        "headers = { Idempotency-Key = \"{id}\" }",
        "",
        "proof.front.write]",
        &["no header is {id}", "Idempotency-Key = \"{id}\""],
    ),
    (
        "node-postgres",
        "fence.toml",
        "\"{database_url}\", \"{key}\"",
        "\"{resource}\", \"{key}\"",
        "command = [\"node\"",
        &["{resource} has no value here", "{database_url}"],
    ),
    // Found by a run.
    (
        "python-http",
        "stock.py",
        "import psycopg\n",
        "import psycopgg\n",
        "./stock.py",
        &[
            "ended with status 1 before it listened",
            "No module named 'psycopgg'",
        ],
    ),
    (
        "node-postgres",
        "fence.toml",
        "fence.declare('library.document'",
        "fence.declare('library.documents'",
        "setup = [",
        &["SELECT fence.declare('library.document', 'entity')"],
    ),
    (
        "node-postgres",
        "fence.toml",
        "register_epoch('entity', 1)",
        "register_epoch('entity', 2)",
        "setup = [",
        &["epoch 1", "SELECT fence.register_epoch('entity', 1)"],
    ),
    (
        "node-postgres",
        "publish.js",
        "      await gate('before-send');\n",
        "",
        "gates = [",
        &[
            "holder.gates",
            "H1 ended with status 0 before it stood at before-send",
        ],
    ),
    (
        "node-postgres",
        "fence.toml",
        "document = '{key}'",
        "document = 'no {key}'",
        "proof.read]",
        &["the read shows nothing", "every write on {key}"],
    ),
    (
        "python-http",
        "fence.toml",
        "path = \"/items/{key}/fence\"",
        "path = \"/items/{key}/fnce\"",
        "path = \"/items/{key}/fnce\"",
        &["no request of theirs was POST /items/{key}/fnce"],
    ),
    (
        "node-postgres",
        "publish.js",
        "[`${grant}:${number}`,",
        "[`edition-${grant}`,",
        "id = \"id\"",
        &["names no grant", "with a number after it"],
    ),
    (
        "node-postgres",
        "fence.toml",
        "table = \"public.edition\"",
        "table = \"public.editions\"",
        "table = ",
        &["cannot be read", "42P01"],
    ),
    (
        "node-postgres",
        "admit_everything.sql",
        "FUNCTION fence.admit(",
        "FUNCTION fence.admits(",
        "defeat_sql = ",
        &["fence.admit still refuses"],
    ),
];

#[test]
fn each_mistake_in_a_strangers_file_is_code_2_with_its_line_and_what_to_write() {
    for (name, file, sound, fault, line, words) in MISTAKES {
        let copy = example(name).copy().unwrap().with(file, sound, fault).unwrap();
        let text = std::fs::read_to_string(copy.path().join("fence.toml")).unwrap();
        let before = text.split(line).next().unwrap();
        let line = before.matches('\n').count() + 1;
        let run = copy
            .prove(&binary("fence"), &["--scenario", "S02", "--seed", "7"])
            .unwrap();
        let told = run
            .text
            .lines()
            .find(|line| line.starts_with("error"))
            .unwrap_or_default();
        assert_eq!(run.code, Some(2), "{fault}: {}", run.text);
        assert!(
            told.contains(&format!("fence.toml:{line}: ")),
            "{fault}, line {line}: {}",
            run.text
        );
        for word in words {
            assert!(
                run.text.contains(word),
                "{fault}: {word:?} is not in: {}",
                run.text
            );
        }
    }
}
