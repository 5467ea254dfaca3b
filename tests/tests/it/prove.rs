//! `fence prove` on paydb, from the command line to the evidence.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;

use pause_kit::history::{Half, History};
use pause_kit::judge::{Verdict, judge};
use serde_json::Value;

/// An executable of the workspace, which stands beside this test's own folder.
pub(crate) fn binary(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let found = test
        .ancestors()
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    found.unwrap_or_else(|| panic!("{name} is not built: run `cargo build --workspace --bins --examples`"))
}

struct Proved {
    code: Option<i32>,
    text: String,
}

fn prove(arguments: &[&str]) -> Proved {
    for needed in ["paydb", "paydb-worker"] {
        binary(needed);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let output = Command::new(binary("fence"))
        .arg("prove")
        .args(arguments)
        .current_dir(root)
        .output()
        .unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap()
    );
    Proved {
        code: output.status.code(),
        text,
    }
}

fn evidence(folder: &Path) -> Value {
    serde_json::from_reader(File::open(folder.join("evidence.json")).unwrap()).unwrap()
}

/// The judge's word on a history file of the evidence, and which half it is of.
fn judged(folder: &Path, half: &Value) -> (Half, Verdict) {
    let file = folder.join(half["history"].as_str().unwrap());
    let sum = Command::new("sha256sum").arg(&file).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap();
    assert_eq!(
        sum.split(' ').next(),
        half["sha256"].as_str(),
        "{}",
        file.display()
    );
    let history = History::read(BufReader::new(File::open(file).unwrap())).unwrap();
    (history.run().half, judge(&history).verdict)
}

#[test]
fn a_scenario_is_proven_and_its_evidence_bears_that_out_when_it_is_judged_again() {
    let temporary = tempfile::tempdir().unwrap();
    let out = temporary.path().join("evidence");
    let report = temporary.path().join("junit.xml");
    let run = prove(&[
        "--select",
        "id(S02) or id(S07)",
        "--seed",
        "7",
        "--out",
        out.to_str().unwrap(),
        "--junit",
        report.to_str().unwrap(),
    ]);
    assert_eq!(run.code, Some(0), "{}", run.text);
    let report = std::fs::read_to_string(report).unwrap();
    assert!(
        report.contains("tests=\"2\" skipped=\"0\" failures=\"0\" errors=\"0\""),
        "{report}"
    );
    for case in ["S02", "S07"] {
        let case = format!("<testcase name=\"{case}\" classname=\"paydb.account\"");
        assert_eq!(report.matches(&case).count(), 1, "{report}");
    }
    let evidence = evidence(&out);
    let again = "fence prove --seed 7 --select 'id(S02) or id(S07)'";
    assert_eq!(evidence["again"], again);
    let commit = Command::new("git").args(["rev-parse", "HEAD"]).output().unwrap();
    let commit = String::from_utf8(commit.stdout).unwrap();
    let kept = evidence["versions"]["commit"].as_str().unwrap();
    assert_eq!(kept.strip_suffix("-dirty").unwrap_or(kept), commit.trim());
    assert_eq!(evidence["schema"], 2);
    assert_eq!(evidence["seed"], 7);
    assert_eq!(evidence["classes"][0]["name"], "paydb.account");
    for version in ["etcd", "postgres", "kernel", "fence"] {
        assert!(
            evidence["versions"][version].is_string(),
            "{version}: {}",
            evidence["versions"]
        );
    }
    let scenarios = evidence["scenarios"].as_array().unwrap();
    assert_eq!(scenarios.len(), 2);
    for scenario in scenarios {
        assert_eq!(scenario["verdict"], "proven");
        assert_eq!(scenario["on"]["outcome"], "REF");
        let refusal = &scenario["on"]["refusal"];
        assert_eq!(refusal["sqlstate"], "ZF001");
        assert_eq!(refusal["status"], 412);
        let token = |name: &str| -> i64 { refusal[name].as_str().unwrap().parse().unwrap() };
        assert!(token("presented") < token("seen"), "{refusal}");
        assert!(!scenario["defeated"]["violated"].as_array().unwrap().is_empty());
        assert_eq!(judged(&out, &scenario["on"]), (Half::Guarded, Verdict::Held));
        let (half, verdict) = judged(&out, &scenario["defeated"]);
        assert!(
            half == Half::Defeated && matches!(verdict, Verdict::Violated(_)),
            "{verdict}"
        );
    }
    let stops = scenarios[0]["stops"].as_array().unwrap();
    assert_eq!(stops.len(), 2, "one in each half of S02");
    for stop in stops {
        assert!(stop["tasks"].as_u64().unwrap() >= 1, "{stop}");
        assert_eq!(stop["cpu_before"], stop["cpu_after"], "{stop}");
        assert!(
            stop["lease_ended_ms"].as_f64().unwrap() < stop["resumed_ms"].as_f64().unwrap(),
            "{stop}"
        );
    }
    // The page that was written with it is the one that it is drawn to again.
    let page = std::fs::read_to_string(out.join("timeline.html")).unwrap();
    assert!(page.contains("was refunded twice"), "{page}");
    assert!(run.text.contains("timeline.html"), "{}", run.text);
    let again = temporary.path().join("again.html");
    let drawn = Command::new(binary("fence"))
        .arg("timeline")
        .arg(&out)
        .arg("--out")
        .arg(&again)
        .output()
        .unwrap();
    assert!(drawn.status.success(), "{drawn:?}");
    assert_eq!(std::fs::read_to_string(&again).unwrap(), page);
    std::fs::remove_file(again).unwrap();
    verified_and_every_change_noticed(&out);
    // A run of a part writes where it was told to, and nowhere else.
    assert_eq!(std::fs::read_dir(temporary.path()).unwrap().count(), 2);
}

fn verify(path: &Path) -> (Option<i32>, String) {
    let output = Command::new(binary("fence"))
        .arg("verify")
        .arg(path)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), text)
}

fn verified_and_every_change_noticed(out: &Path) {
    let (code, text) = verify(out);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(text.matches("proven").count(), 2, "{text}");
    assert_eq!(verify(&out.join("S02.on.jsonl")).0, Some(0));
    assert_eq!(verify(&out.join("S02.defeated.jsonl")).0, Some(1));
    for (file, from, to) in [
        ("S02.on.jsonl", "\"status\":412", "\"status\":201"),
        ("S02.on.jsonl", "\"kind\":\"stop\"", "\"kind\": \"stop\""),
        ("S07.defeated.jsonl", "\"at\":1", "\"at\":2"),
        (
            "evidence.json",
            "\"sqlstate\": \"ZF001\"",
            "\"sqlstate\": \"ZF005\"",
        ),
        ("evidence.json", "\"status\": 412", "\"status\": 409"),
        ("evidence.json", "\"outcome\": \"REF\"", "\"outcome\": \"LEG\""),
        ("evidence.json", "\"seed\": 7", "\"seed\": 8"),
        ("evidence.json", "\"guard\": \"mark\"", "\"guard\": \"column\""),
        ("timeline.html", "refunded twice", "refunded once"),
    ] {
        let path = out.join(file);
        let sound = std::fs::read_to_string(&path).unwrap();
        assert!(sound.contains(from), "{file} has no {from}");
        std::fs::write(&path, sound.replacen(from, to, 1)).unwrap();
        let (code, text) = verify(out);
        assert_eq!(code, Some(1), "{file}, {to}: {text}");
        assert!(text.contains("does not agree: "), "{text}");
        std::fs::write(&path, sound).unwrap();
    }
}

#[test]
fn without_the_guard_the_table_names_the_corruption_and_the_code_is_1() {
    let run = prove(&["--danger-unfenced", "--scenario", "S02", "--seed", "7"]);
    assert_eq!(run.code, Some(1), "{}", run.text);
    assert!(run.text.contains("order-7 was refunded twice"), "{}", run.text);
    assert!(!run.text.contains("evidence in"), "{}", run.text);
    let words = run.text.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "seed 7: 1 scenario, 1 half",
        ", against rule 1 (order), rule 2 (real-time refusal)",
        "1 of 1 scenario without the guard went wrong.",
        "no evidence was written",
        "docs/reading-a-proof.md",
    ] {
        assert!(words.contains(said), "{said}: {}", run.text);
    }
    assert!(!words.contains("refused as stale"), "{}", run.text);
    // Where no terminal says how wide it is.
    let table = run
        .text
        .split_once("\nscenario")
        .unwrap()
        .1
        .split_once("\nseed")
        .unwrap()
        .0;
    for line in table.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn a_twin_whose_guard_is_in_force_loses_an_update_and_the_table_says_what_was_left_out() {
    let run = prove(&["--danger-unfenced", "--scenario", "S04b", "--seed", "7"]);
    assert_eq!(run.code, Some(1), "{}", run.text);
    let words = run.text.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "without raising the mark before the read: order-7 was refunded twice: by H1",
        ", against lost update 1 of 1 scenario",
        "S04b was run with the guard, and without raising the mark before the read.",
    ] {
        assert!(words.contains(said), "{said}: {}", run.text);
    }
}

#[test]
fn the_guarded_halves_alone_hold_and_prove_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let out = temporary.path().join("evidence");
    let run = prove(&[
        "--only-guarded",
        "--scenario",
        "S18",
        "--scenario",
        "s04B",
        "--seed",
        "7",
        "--out",
        out.to_str().unwrap(),
    ]);
    assert_eq!(run.code, Some(0), "{}", run.text);
    let words = run.text.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "seed 7: 2 scenarios, 2 halves",
        "2 of 2 scenarios held with the guard in force, 0 violated, 0 inconclusive. Nothing is proven by this",
    ] {
        assert!(words.contains(said), "{said}: {}", run.text);
    }
    let evidence = evidence(&out);
    assert_eq!(evidence["classes"][0]["verdict"], "held");
    for (scenario, id, outcome) in [(0, "S04b", "REF"), (1, "S18", "LEG")] {
        let scenario = &evidence["scenarios"][scenario];
        assert_eq!(scenario["id"], id);
        assert_eq!(scenario["verdict"], "held");
        assert_eq!(scenario["on"]["outcome"], outcome);
        assert!(scenario["defeated"].is_null(), "{scenario}");
    }
}

#[test]
fn evidence_is_written_and_the_code_says_the_verdict_when_nobody_can_read_the_words() {
    let temporary = tempfile::tempdir().unwrap();
    let out = temporary.path().join("evidence");
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let status = Command::new(binary("fence"))
        .args(["prove", "--scenario", "S02", "--seed", "7", "--out"])
        .arg(&out)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap())
        .stdout(full())
        .stderr(full())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(evidence(&out)["scenarios"][0]["verdict"], "proven");
}

#[test]
fn a_guard_that_compares_nothing_is_violated_by_the_invariant_that_its_file_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let copy = tempfile::tempdir().unwrap();
    for folder in ["fence-pg/sql", "reference-resource/defeat"] {
        let to = copy.path().join(folder);
        std::fs::create_dir_all(&to).unwrap();
        for file in std::fs::read_dir(root.join(folder)).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
    }
    std::fs::copy(root.join("fence.toml"), copy.path().join("fence.toml")).unwrap();
    let mutant = root.join("tests/mutants/001_no_predicate.sql");
    std::fs::copy(mutant, copy.path().join("fence-pg/sql/9999_mutant.sql")).unwrap();
    let config = copy.path().join("fence.toml");
    let out = copy.path().join("evidence");
    let report = copy.path().join("junit.xml");
    let run = prove(&[
        "--config",
        config.to_str().unwrap(),
        "--scenario",
        "S02",
        "--seed",
        "7",
        "--out",
        out.to_str().unwrap(),
        "--junit",
        report.to_str().unwrap(),
    ]);
    assert_eq!(run.code, Some(1), "{}", run.text);
    let report = std::fs::read_to_string(report).unwrap();
    assert!(
        report.contains("tests=\"1\" skipped=\"0\" failures=\"1\" errors=\"0\""),
        "{report}"
    );
    let failure = report.split_once("<failure").unwrap().1;
    let failure = failure.split_once("</failure>").unwrap().0;
    for said in [
        "type=\"violated\"",
        "violated: holder stopped before its send",
        "real-time refusal: ",
    ] {
        assert!(failure.contains(said), "{said}: {report}");
    }
    let scenario = &evidence(&out)["scenarios"][0];
    assert_eq!(scenario["verdict"], "violated");
    let broken = scenario["on"]["violated"].as_array().unwrap();
    assert!(broken.iter().any(|one| one["invariant"] == 2), "{broken:?}");
}

#[test]
fn sql_of_the_guard_that_fails_is_named_with_its_line() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let copy = tempfile::tempdir().unwrap();
    let guard = copy.path().join("fence-pg/sql");
    std::fs::create_dir_all(&guard).unwrap();
    std::fs::write(
        guard.join("0001_wrong.sql"),
        "SELECT 1;\n\nSELECT nothing_of_that_name;\n",
    )
    .unwrap();
    let defeat = copy.path().join("reference-resource/defeat");
    std::fs::create_dir_all(&defeat).unwrap();
    std::fs::write(defeat.join("admit_everything.sql"), "SELECT 1;\n").unwrap();
    std::fs::copy(root.join("fence.toml"), copy.path().join("fence.toml")).unwrap();
    let config = copy.path().join("fence.toml");
    let run = prove(&["--config", config.to_str().unwrap(), "--scenario", "S02"]);
    assert_eq!(run.code, Some(2), "{}", run.text);
    assert!(run.text.contains("0001_wrong.sql:3: 42703"), "{}", run.text);
}

#[test]
fn what_only_a_run_can_find_wrong_in_the_file_is_code_2_with_its_line() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let sound = std::fs::read_to_string(root.join("fence.toml")).unwrap();
    let sound = sound
        .replace("guard_sql = \"", &format!("guard_sql = \"{}/", root.display()))
        .replace("defeat_sql = \"", &format!("defeat_sql = \"{}/", root.display()))
        // The one scenario that keeps a holder after its read.
        .replace("\"S04\", ", "");
    for (was, fault, named) in [
        (
            "gates = [\"after-grant\", \"after-read\", \"before-send\"]",
            "gates = [\"after-grant\", \"before-send\"]",
            "the holder stands at the gate \"after-read\", which gates does not list",
        ),
        (
            "table = \"public.transfer\"",
            "table = \"public.transferr\"",
            "table = \"public.transferr\" cannot be read: 42P01",
        ),
        (
            "job = \"reference\"",
            "job = \"referense\"",
            "job = \"referense\" is no column of public.transfer: 42703",
        ),
        (
            "balances = \"SELECT id, balance FROM account\"",
            "balances = \"SELECT id, balance FROM acount\"",
            "the query fails: 42P01",
        ),
        (
            "sql = \"SELECT fence.register_epoch('entity', 1)\"",
            "sql = \"SELECT fence.register_epok('entity', 1)\"",
            "fence.register_epok('entity', 1)` failed: 42883",
        ),
        ("\"--tier\", \"entity\", ", "\"--teir\", \"entity\", ", "'--teir'"),
        (
            "ready = \"listening on \"",
            "ready = \"listening\"",
            "goes on with \" on 127.0.0.1:",
        ),
        (
            "path = \"/accounts\", body = '{\"id\":\"{key}\"",
            "path = \"/acounts\", body = '{\"id\":\"{key}\"",
            "POST /acounts was answered 404",
        ),
    ] {
        assert_eq!(sound.matches(was).count(), 1, "{was}");
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("fence.toml");
        std::fs::write(&config, sound.replace(was, fault)).unwrap();
        let line = sound[..sound.find(was).unwrap()].matches('\n').count() + 1;
        let run = prove(&["--config", config.to_str().unwrap(), "--scenario", "S02"]);
        assert_eq!(run.code, Some(2), "{fault}: {}", run.text);
        assert!(
            run.text.contains(&format!("fence.toml:{line}: ")) && run.text.contains(named),
            "{fault} on line {line} should name {named}: {}",
            run.text
        );
    }
}

#[test]
fn requests_travel_as_the_command_says_and_the_evidence_names_the_way() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("evidence");
    let out = folder.display().to_string();
    let way = ["--transport", "http2", "--through", "nginx"];
    let one = ["--scenario", "S29", "--out", &out];
    let proved = prove(&[way, one].concat());
    assert_eq!(proved.code, Some(0), "{}", proved.text);
    assert!(
        proved.text.contains("requests travelled in HTTP/2 through nginx"),
        "{}",
        proved.text
    );
    let evidence = evidence(&folder);
    assert_eq!(
        evidence["transport"],
        serde_json::json!({"http": "http2", "through": "nginx"})
    );
    assert!(evidence["versions"]["nginx"].is_string());
    let again = evidence["again"].as_str().unwrap();
    assert!(
        again.ends_with("--scenario S29 --transport http2 --through nginx"),
        "{again}"
    );
    assert_eq!(evidence["scenarios"][0]["verdict"], "proven");
}
