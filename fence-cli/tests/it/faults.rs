//! Faults in `fence.toml`: code 2, file and line, the wrong word and the right form.

use super::command::{SOUND, Said, fence_in, project};

/// Proves with `sound` replaced by `fault` in a sound file, which it must hold once.
fn with(sound: &str, fault: &str) -> (Said, usize) {
    assert_eq!(
        SOUND.matches(sound).count(),
        1,
        "{sound:?} stands once in the sound file"
    );
    let folder = project();
    std::fs::write(folder.path().join("fence.toml"), SOUND.replace(sound, fault)).unwrap();
    let line = SOUND[..SOUND.find(sound).unwrap()].matches('\n').count() + 1;
    (fence_in(folder.path(), &["prove"]), line)
}

#[test]
fn each_fault_is_named_with_its_line_the_wrong_word_and_the_right_form() {
    for (sound, fault, named) in [
        ("about = ", "abuot = ", vec!["abuot", "about"]),
        (
            "\"correctness\"",
            "\"corectness\"",
            vec!["corectness", "`correctness`"],
        ),
        (
            "tier = \"entity\"",
            "tier = \"entty\"",
            vec!["\"entty\"", "entity"],
        ),
        ("ttl = \"2s\"", "ttl = \"2 seconds\"", vec!["2 seconds"]),
        ("ttl = \"2s\"", "ttl = \"1s\"", vec!["2 s to 3600 s"]),
        (
            "guard = \"mark\"",
            "guard = \"marks\"",
            vec!["marks", "`mark`", "`column`"],
        ),
        (
            "target = \"app\"",
            "target = \"ap\"",
            vec!["\"ap\"", "there are app"],
        ),
        (
            "[\"S01\", \"S02\"]",
            "[\"S01\", \"S99\"]",
            vec![
                "\"S99\"",
                "S01, S02, S03, S04, S04b, S05, S07, S08, S09, S12, S15, S16, S17, S18, S21, S24, S25, S25b, S26, S28, S29, S33, S34, S35, S37, S39, S47, S48, S53, S67, S69, S75, S82",
            ],
        ),
        (
            "[\"S01\", \"S02\"]",
            "[\"S01\", \"S01\"]",
            vec!["S01 is named twice"],
        ),
        ("[\"S01\", \"S02\"]", "[]", vec!["name at least one"]),
        ("[\"S01\", \"S02\"]", "[\"S26\"]", vec!["S26", "defeat_on_path"]),
        (
            "[\"S01\", \"S02\"]",
            "[\"S18\"]",
            vec!["only controls", "a scenario with a twin"],
        ),
        (
            "[\"S01\", \"S02\"]",
            "[\"S02\", \"S04\"]",
            vec![
                "S04",
                "\"app.thing\"",
                "the gate \"after-read\"",
                "gates = [\"before-send\", \"after-read\"]",
            ],
        ),
        (
            "[\"S01\", \"S02\"]",
            "[\"S02\", \"S21\"]",
            vec!["S21", "\"app.thing\"", "no \"journal\"", "with.journal = ["],
        ),
        (
            "[\"S01\", \"S02\"]",
            "[\"S04b\"]",
            vec!["S04b", "no \"unraised\"", "with.unraised = ["],
        ),
        (
            "[\"S01\", \"S02\"]",
            "[\"S33\"]",
            vec![
                "S33",
                "a worker of the resource",
                "target \"app\"",
                "resource.worker = [",
            ],
        ),
        ("\"thing-{n}\"", "\"thing\"", vec!["{n}", "acct-{n}"]),
        (
            "\"thing-{n}\"",
            "\"thing-{n\"",
            vec!["{n is not closed", "write {n}"],
        ),
        (
            "{etcd.entity}",
            "{etcd.entity",
            vec!["{etcd.entity is not closed", "write {etcd.entity}"],
        ),
        (
            "path = \"/things/{key}\"",
            "path = \"/things/{kye}\"",
            vec!["{kye}", "{key}"],
        ),
        (
            "{etcd.entity}",
            "{etcd.coord}",
            vec!["\"coord\"", "there are entity"],
        ),
        (
            "\"{id}\"",
            "\"{resource}\"",
            vec!["{resource} has no value here", "{id}"],
        ),
        (
            "gates = [\"before-send\"]",
            "gate = \"before-send\"",
            vec!["unknown field `gate`", "gates"],
        ),
        (
            "gates = [\"before-send\"]",
            "gates = [\"before-sendd\"]",
            vec![
                "before-sendd",
                "after-grant",
                "after-read",
                "before-send",
                "before-commit",
            ],
        ),
        (
            "guard_sql = \"guard\"",
            "guard_sql = \"gaurd\"",
            vec!["gaurd", "*.sql"],
        ),
        ("\"defeat.sql\"", "\"deefat.sql\"", vec!["deefat.sql", "no file"]),
        ("\"defeat.sql\"", "\"guard/0001.sql\"", vec!["inside guard_sql"]),
        (
            "{ sql = \"SELECT fence",
            "{ sql = \"{resource}\" }, { sql = \"SELECT fence",
            vec!["{resource} has no value"],
        ),
        (
            "{ sql = \"SELECT fence",
            "{ }, { sql = \"SELECT fence",
            vec!["exactly one of command, sql, request"],
        ),
        (
            "ready = \"listening on \"",
            "ready = \"\"",
            vec!["ready is empty"],
        ),
        (
            "deadline_ms = 2000",
            "deadline_ms = 0",
            vec!["deadline_ms is 1 to 60000 milliseconds, got 0"],
        ),
        (
            "deadline_ms = 2000",
            "deadline_ms = \"2s\"",
            vec!["expected a whole number", "write it like deadline_ms = 2000"],
        ),
        (
            "idle_ms = 5000",
            "idle_ms = -1",
            vec!["`-1`, expected a whole number", "write it like idle_ms = 5000"],
        ),
        (
            "gates = [\"before-send\"]",
            "gates = \"before-send\"",
            vec!["expected a list", "write it like gates = [\"before-send\"]"],
        ),
        (
            "idle_ms = 5000",
            "idle_ms = 0",
            vec!["idle_ms is 1 to 60000 milliseconds, got 0"],
        ),
        (
            "table = \"public.write\"",
            "table = \"write\"",
            vec!["schema.table", "\"write\""],
        ),
        (
            "{ method = \"POST\", path",
            "{ method = \"post it\", path",
            vec!["method is capital letters", "\"post it\""],
        ),
        (
            "[\"{bin}/fence\", \"{etcd.entity}\"",
            "[\"{bin}/fense\", \"{etcd.entity}\"",
            vec!["/fense", "no program"],
        ),
        (
            "command = [\"{bin}/fence\", \"{database_url}\"]",
            "command = [\"no-such-program\", \"{database_url}\"]",
            vec!["\"no-such-program\"", "PATH"],
        ),
        (
            "{ sql = \"SELECT fence",
            "{ command = [\"{fence}s\"] }, { sql = \"SELECT fence",
            vec!["/fences", "no program"],
        ),
    ] {
        let (said, line) = with(sound, fault);
        assert_eq!(said.code, 2, "{fault}: {}", said.err);
        assert!(
            said.err.contains(&format!("fence.toml:{line}: ")),
            "{fault} on line {line}: {}",
            said.err
        );
        for word in named {
            assert!(
                said.err.contains(word),
                "{fault} should name {word}: {}",
                said.err
            );
        }
        assert_eq!(said.out, "", "{fault}");
    }
}

#[test]
fn a_file_that_is_no_toml_is_named_with_its_line() {
    let (said, line) = with("guard_sql = \"guard\"", "guard_sql = guard");
    assert_eq!(said.code, 2);
    assert!(said.err.contains(&format!("fence.toml:{line}: ")), "{}", said.err);
}

#[test]
fn a_part_that_is_missing_is_named_where_it_belongs() {
    let (said, line) = with(
        "[classes.\"app.thing\".proof.read]\npath = \"/things/{key}/writes\"\nid = \"id\"\n",
        "",
    );
    assert_eq!(said.code, 2);
    assert!(said.err.contains("`read`"), "{}", said.err);
    // The table that lacks it begins before the place where it was taken out.
    let after = said.err.split("fence.toml:").nth(1).unwrap();
    let named: usize = after.split(':').next().unwrap().parse().unwrap();
    assert!((1..=line).contains(&named), "{}", said.err);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let said = fence_in(folder.path(), &["prove", "--config", "nowhere.toml"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("nowhere.toml"), "{}", said.err);
    let said = fence_in(folder.path(), &["prove"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err.contains("there is no fence.toml in") && said.err.contains("--config FILE"),
        "{}",
        said.err
    );
}

#[test]
fn the_file_is_found_from_a_folder_below_it() {
    let folder = project();
    let below = folder.path().join("a/b");
    std::fs::create_dir_all(&below).unwrap();
    let said = fence_in(&below, &["prove", "--class", "app.other"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err.contains("\"app.other\"") && said.err.contains("app.thing"),
        "{}",
        said.err
    );
}
