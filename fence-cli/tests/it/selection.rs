//! Arguments of `fence prove`, and what is decided before any service starts.

use super::command::{fence_in, project};

#[test]
fn a_wrong_argument_is_named_with_the_right_form_and_nothing_runs() {
    let folder = project();
    for (arguments, named) in [
        (vec!["prov"], vec!["'prov'", "'prove'"]),
        (
            vec!["prove", "--sceanrio", "S01"],
            vec!["'--sceanrio'", "'--scenario'"],
        ),
        (
            vec!["prove", "--scenario", "S1"],
            vec![
                "\"S1\"",
                "S01, S02, S03, S04, S04b, S05, S07, S08, S09, S12, S15, S16, S17, S18, S21, S24, S25, S25b, S26, S28, S29, S33, S34, S35, S37, S39, S47, S48, S53, S67, S69, S75, S82",
            ],
        ),
        (
            vec!["prove", "--danger-unfenced", "--scenario", "S18"],
            vec!["S18", "control"],
        ),
        (
            vec!["prove", "--danger-unfenced", "--only-guarded"],
            vec!["--danger-unfenced", "--only-guarded"],
        ),
        (
            vec!["prove", "--scenario", "S26"],
            vec!["S26", "there are S01, S02"],
        ),
        (
            vec!["prove", "--transport", "http3"],
            vec!["\"http3\"", "http1 and http2"],
        ),
        (vec!["prove", "--through", "squid"], vec!["\"squid\"", "nginx"]),
        (
            vec!["prove", "--transport", "http2"],
            vec!["app.thing", "with.http2 = [\"--http2\"]"],
        ),
        (
            vec!["prove", "--select", "id(S01) and tag(late)"],
            vec!["\"late\"", "control, pair, ttl", "character 17"],
        ),
        (
            vec!["prove", "--select", "tag(control)"],
            vec!["--select 'tag(control)'", "there are S01, S02"],
        ),
        (
            vec!["prove", "--danger-unfenced", "--select", "id(S18)"],
            vec!["--select 'id(S18)'"],
        ),
        (
            vec!["prove", "--class", "App"],
            vec!["\"App\"", "begin with a letter"],
        ),
        (
            vec!["prove", "--class", "app.thin"],
            vec!["\"app.thin\"", "there are app.thing"],
        ),
        (
            vec!["prove", "--seed", "-1"],
            vec!["'-1'", "0 to 18446744073709551615"],
        ),
        (
            vec!["prove", "--seed", "seven"],
            vec!["seven", "0 to 18446744073709551615"],
        ),
        (
            vec!["epoch", "init", "--tier", "entity"],
            vec!["fence.toml:1", "name the store with --etcd"],
        ),
        (
            vec![
                "epoch",
                "init",
                "--etcd",
                "http://127.0.0.1:1",
                "--tier",
                "x",
                "--epoch",
                "0",
            ],
            vec!["1 to 32767"],
        ),
        (
            vec!["epoch", "init", "--etcd", "nonsense", "--tier", "x"],
            vec!["'nonsense'", "http://HOST:PORT"],
        ),
        (
            vec!["epoch", "init", "--etcd", "http://a b:1", "--tier", "x"],
            vec!["'http://a b:1'", "http://HOST:PORT"],
        ),
        (
            vec!["epoch", "init", "--etcd", "http://127.0.0.1:0", "--tier", "x"],
            vec!["'http://127.0.0.1:0'", "http://HOST:PORT"],
        ),
    ] {
        let said = fence_in(folder.path(), &arguments);
        assert_eq!(said.code, 2, "{arguments:?}: {}", said.err);
        for word in named {
            assert!(
                said.err.contains(word),
                "{arguments:?} should name {word}: {}",
                said.err
            );
        }
        assert_eq!(said.out, "", "{arguments:?}");
    }
}

#[test]
fn an_expression_selects_among_what_is_declared() {
    let folder = project();
    for (expression, scenarios) in [
        ("tag(ttl)", "1 scenario, 2 halves"),
        ("not id(S01)", "1 scenario, 2 halves"),
        ("tag(pair) and (id(S01) or id(s02))", "2 scenarios, 4 halves"),
    ] {
        let said = fence_in(folder.path(), &["prove", "--seed", "7", "--select", expression]);
        // What is selected is said before the services are looked for, which are none here.
        assert_eq!(said.code, 4, "{expression}: {}", said.err);
        let begins = format!("seed 7: {scenarios}\n");
        assert!(said.err.contains(&begins), "{expression}: {}", said.err);
        assert!(!folder.path().join("fence-evidence").exists());
    }
}

#[test]
fn a_folder_of_something_else_is_refused_before_anything_runs() {
    let folder = project();
    let said = fence_in(folder.path(), &["prove", "--out", "guard"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err.contains("guard holds \"0001.sql\"") && said.err.contains("--out"),
        "{}",
        said.err
    );
    assert!(folder.path().join("guard/0001.sql").is_file());
}

#[test]
fn a_foreign_file_beside_an_evidence_json_is_named_and_kept_also_in_the_folder_that_is_the_default() {
    let folder = project();
    let default = folder.path().join("fence-evidence");
    std::fs::create_dir(&default).unwrap();
    std::fs::write(default.join("evidence.json"), "{}").unwrap();
    std::fs::write(default.join("thesis.txt"), "precious").unwrap();
    for arguments in [vec!["prove"], vec!["prove", "--out", "fence-evidence"]] {
        let said = fence_in(folder.path(), &arguments);
        assert_eq!(said.code, 2, "{}", said.err);
        assert!(said.err.contains("\"thesis.txt\""), "{}", said.err);
        assert!(!said.err.contains("seed"), "nothing ran: {}", said.err);
    }
    assert_eq!(
        std::fs::read_to_string(default.join("thesis.txt")).unwrap(),
        "precious"
    );
    std::fs::remove_file(default.join("thesis.txt")).unwrap();
    let said = fence_in(folder.path(), &["prove"]);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("\"evidence.json\""), "{}", said.err);
}

#[test]
fn a_missing_service_is_code_4_with_where_it_was_looked_for() {
    let folder = project();
    let said = fence_in(folder.path(), &["prove"]);
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.err.contains("FENCE_PG_BIN=/nonexistent"), "{}", said.err);
    assert!(!folder.path().join("fence-evidence").exists());
}

#[test]
fn an_unreachable_lock_store_is_code_4() {
    let folder = project();
    let said = fence_in(
        folder.path(),
        &[
            "epoch",
            "init",
            "--etcd",
            "http://127.0.0.1:1",
            "--tier",
            "entity",
        ],
    );
    assert_eq!(said.code, 4, "{}", said.err);
    assert!(said.err.contains("http://127.0.0.1:1"), "{}", said.err);
    assert!(said.err.contains("Connection refused"), "{}", said.err);
    for dump in ["Os {", "ConnectError", "code: "] {
        assert!(!said.err.contains(dump), "{}", said.err);
    }
}

#[test]
fn the_seed_is_printed_also_when_it_was_drawn() {
    let folder = project();
    let seed = |arguments: &[&str]| {
        let said = fence_in(folder.path(), arguments);
        let line = said.err.lines().next().unwrap_or_default().to_owned();
        line.strip_prefix("seed ")
            .and_then(|rest| rest.split(':').next())
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(
        seed(&["prove", "--seed", "18446744073709551615"]),
        "18446744073709551615"
    );
    let drawn: std::collections::BTreeSet<String> = (0..4).map(|_| seed(&["prove"])).collect();
    assert!(drawn.iter().all(|seed| seed.parse::<u64>().is_ok()), "{drawn:?}");
    assert!(drawn.len() > 1, "one seed came every time: {drawn:?}");
}

#[test]
fn the_name_of_a_scenario_may_be_written_small() {
    let folder = project();
    let said = fence_in(folder.path(), &["prove", "--scenario", "s02"]);
    assert_eq!(said.code, 4, "it went on to the services: {}", said.err);
    let said = fence_in(folder.path(), &["prove", "--scenario", "s2"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("\"s2\""), "{}", said.err);
}
