//! Files of the registers that are no texts, or whose texts are not what they look like; and faults told as JSON.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::command::{Said, fence_in};

const DECLARED: &str = r#"[tiers.entity]
about = "many keys"

[classes."app.mail"]
purpose = "correctness"
enforcement = "advisory"
tier = "entity"
"#;

const SOUND: &str = r#"[[risk]]
class = "app.mail"
owner = "team-1"
reason = "The provider takes no token."
blast_radius = "One mail, sent twice."
mitigation = "The provider drops repeats."
accepted_on = 2026-11-02
review_by = 2027-04-30
"#;

fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("fence.toml"), DECLARED).unwrap();
    std::fs::write(folder.path().join("risk-register.toml"), SOUND).unwrap();
    folder
}

fn check(folder: &Path) -> Said {
    fence_in(folder, &["register", "check", "--today", "2026-11-29"])
}

#[test]
fn what_is_no_regular_file_is_refused_and_not_waited_for() {
    let folder = project();
    assert_eq!(check(folder.path()).code, 0);
    for name in ["fence.toml", "risk-register.toml"] {
        for (kind, words) in [
            ("pipe", "it is a pipe, not a regular file"),
            ("folder", "it is a folder, not a regular file"),
            ("device", "it is a device, not a regular file"),
            ("link", "it is a symbolic link to nothing"),
        ] {
            let folder = project();
            let file = folder.path().join(name);
            std::fs::remove_file(&file).unwrap();
            match kind {
                "pipe" => assert!(Command::new("mkfifo").arg(&file).status().unwrap().success()),
                "folder" => std::fs::create_dir(&file).unwrap(),
                "device" => symlink("/dev/zero", &file).unwrap(),
                _ => symlink("nowhere.toml", &file).unwrap(),
            }
            let said = check(folder.path());
            assert_eq!(
                (said.code, said.out.as_str()),
                (2, ""),
                "{name}, {kind}: {}",
                said.err
            );
            assert!(
                said.err.contains(name) && said.err.contains(words),
                "{name}, {kind}: {}",
                said.err
            );
        }
    }
}

#[test]
fn a_link_to_a_file_is_read_as_the_file() {
    let folder = project();
    for name in ["fence.toml", "risk-register.toml"] {
        let file = folder.path().join(name);
        std::fs::rename(&file, folder.path().join("kept")).unwrap();
        symlink("kept", &file).unwrap();
        let said = check(folder.path());
        assert_eq!(said.code, 0, "{name}: {}{}", said.out, said.err);
        std::fs::remove_file(&file).unwrap();
        std::fs::rename(folder.path().join("kept"), &file).unwrap();
    }
}

#[test]
fn the_first_byte_that_is_no_utf_8_is_named_by_line_and_column() {
    for name in ["fence.toml", "risk-register.toml"] {
        let folder = project();
        let file = folder.path().join(name);
        let mut bytes = "# Zwölf\n# Zw".as_bytes().to_vec();
        bytes.extend(b"\xf6lf\n");
        bytes.extend(std::fs::read(&file).unwrap());
        std::fs::write(&file, bytes).unwrap();
        let said = check(folder.path());
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{name}: {}", said.err);
        assert!(
            said.err.contains(&format!(
                "{name}:2: the byte 0xf6 in column 5 is no UTF-8; save the file as UTF-8"
            )),
            "{name}: {}",
            said.err
        );
    }
}

#[test]
fn a_text_that_would_steer_a_terminal_or_turn_what_is_read_is_refused() {
    for (code, words) in [
        ("\\u001b[2J", "owner is one line"),
        ("\\u0085", "owner is one line"),
        ("\\u009b2J", "owner is one line"),
        ("\\u2028", "owner is one line"),
        ("\\u202a", "owner holds U+202A"),
        ("\\u202e", "owner holds U+202E"),
        ("\\u2066", "owner holds U+2066"),
        ("\\u2069", "owner holds U+2069"),
    ] {
        let folder = project();
        let register = SOUND.replace("team-1", &format!("team{code}-1"));
        std::fs::write(folder.path().join("risk-register.toml"), register).unwrap();
        let said = check(folder.path());
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{code}: {}", said.err);
        let place = format!("risk-register.toml:3: {words}");
        assert!(said.err.contains(&place), "{code}: {}", said.err);
    }
}

#[test]
fn a_message_repeats_no_character_that_would_steer_a_terminal() {
    let folder = project();
    let declared = format!("{DECLARED}\"no\\u001b[2J\\u202e\" = 1\n");
    std::fs::write(folder.path().join("fence.toml"), declared).unwrap();
    let said = check(folder.path());
    assert_eq!(said.code, 2);
    let words = "fence.toml:8: unknown field `no\\u{1b}[2J\\u{202e}`";
    assert!(said.err.contains(words), "{}", said.err);
    assert!(!said.err.contains(['\u{1b}', '\u{202e}']), "{:?}", said.err);
}

#[test]
fn what_is_wrong_is_told_as_json_too_where_json_was_asked_for() {
    let folder = project();
    std::fs::write(
        folder.path().join("risk-register.toml"),
        SOUND.replace("\"team-1\"", "1"),
    )
    .unwrap();
    let said = fence_in(folder.path(), &["register", "check", "--json"]);
    assert_eq!(said.code, 2);
    let told: Value = serde_json::from_str(&said.out).unwrap();
    let error = &told["error"];
    assert_eq!(error["code"], 2);
    assert_eq!(error["line"], 3);
    let file = error["file"].as_str().unwrap();
    assert!(file.ends_with("risk-register.toml"), "{file}");
    assert_eq!(
        said.err,
        format!("error: {}\n", error["message"].as_str().unwrap())
    );

    let nowhere = fence_in(
        folder.path(),
        &["register", "check", "--json", "--config", "nowhere.toml"],
    );
    let told: Value = serde_json::from_str(&nowhere.out).unwrap();
    assert_eq!(
        (nowhere.code, &told["error"]["file"]),
        (2, &"nowhere.toml".into())
    );

    let words = fence_in(folder.path(), &["register", "check", "--json", "--today", "soon"]);
    let told: Value = serde_json::from_str(&words.out).unwrap();
    let message = told["error"]["message"].as_str().unwrap();
    assert_eq!(words.code, 2);
    assert!(
        message.contains("--today") && message.contains("soon"),
        "{message}"
    );
    assert!(
        words.err.contains(message.lines().next().unwrap()),
        "{}",
        words.err
    );

    let help = fence_in(folder.path(), &["register", "check", "--json", "--help"]);
    assert_eq!(help.code, 0);
    assert!(!help.out.contains("\"error\""), "{}", help.out);
}
