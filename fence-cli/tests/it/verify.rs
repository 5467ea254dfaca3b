//! `fence verify` on files alone. Whole proofs are verified in the end to end tests.

use super::command::{Said, fence_in};
use super::timeline::Folder;

fn verify(folder: &Folder, arguments: &[&str]) -> Said {
    fence_in(&folder.path(""), &[&["verify"], arguments].concat())
}

#[test]
fn a_history_is_judged_by_itself_and_each_violation_names_its_lines() {
    let folder = Folder::new();
    let said = verify(&folder, &["ev/S02.defeated.jsonl"]);
    assert_eq!(said.code, 1, "{said:?}");
    for words in ["S02 defeated", "violated", "2 real-time refusal", "lines ["] {
        assert!(said.out.contains(words), "{words}: {said:?}");
    }
    let said = verify(&folder, &["--json", "ev/S02.defeated.jsonl"]);
    let answer: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(answer["judged"][0]["class"], "app.thing");
    assert_eq!(answer["doubts"].as_array().unwrap().len(), 0);
}

#[test]
fn a_history_that_was_cut_or_changed_in_its_form_is_no_history() {
    for (from, to, line) in [
        // A line less.
        ("{\"at\":20000000,", "", ":5: "),
        ("{\"kind\":\"end\"", "{\"kind\":\"no\"", ": "),
        ("\"kind\":\"run\"", "\"kind\":\"ran\"", ":1: "),
        ("\"lines\":", "\"lines\":1", ": "),
    ] {
        let folder = Folder::new();
        folder.edit("S02.defeated.jsonl", from, to);
        let said = verify(&folder, &["ev/S02.defeated.jsonl"]);
        assert_eq!(said.code, 2, "{from}: {said:?}");
        let place = format!("S02.defeated.jsonl{line}");
        assert!(
            said.err.contains(&place) || said.err.contains("no whole history"),
            "{said:?}"
        );
    }
}

#[test]
fn one_half_alone_shows_nothing_and_what_was_changed_in_it_is_found() {
    let folder = Folder::new();
    let said = verify(&folder, &["ev"]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.out.contains("the guarded half is missing"), "{said:?}");
    for (file, from, to, words) in [
        ("S02.defeated.jsonl", "\"H2\"", "\"H3\"", "SHA-256"),
        ("evidence.json", "\"seed\": 7", "\"seed\": 8", "schedule"),
        (
            "evidence.json",
            "\"verdict\": \"violated\"",
            "\"verdict\": \"proven\"",
            "the class's verdict",
        ),
    ] {
        let folder = Folder::new();
        folder.edit(file, from, to);
        let said = verify(&folder, &["ev"]);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(
            said.out.contains("does not agree: ev/") && said.out.contains(words),
            "{said:?}"
        );
    }
    std::fs::write(folder.path("ev/S03.on.jsonl"), "").unwrap();
    let said = verify(&folder, &["ev"]);
    assert!(
        said.code == 1 && said.out.contains("S03.on.jsonl: nothing lists this file"),
        "{said:?}"
    );
}

#[test]
fn where_there_is_nothing_to_judge_the_place_is_named() {
    let folder = Folder::new();
    for (path, words) in [
        ("nowhere", "cannot read nowhere"),
        ("ev/evidence.json", "it is no whole history"),
        ("", "evidence.json: there is no evidence to judge"),
    ] {
        let path = folder.path(path);
        let said = verify(&folder, &[path.to_str().unwrap()]);
        assert_eq!(said.code, 2, "{said:?}");
        let known = words.replace("nowhere", path.to_str().unwrap());
        assert!(said.err.contains(&known), "{said:?}");
    }
}
