//! `risk-register.toml`: forty and more faults, each with its line and message; and what is due.

use std::path::Path;

use super::command::{Said, fence_in};

/// A `fence.toml` of one class that nothing enforces.
const DECLARED: &str = r#"[tiers.entity]
about = "many keys"

[classes."app.mail"]
purpose = "correctness"
enforcement = "advisory"
tier = "entity"
"#;

/// A sound register.
const SOUND: &str = r#"[[risk]]
class = "app.mail"
owner = "team-1"
reason = "The provider takes no token."
blast_radius = "One mail, sent twice."
mitigation = "The provider drops repeats."
accepted_on = 2026-11-02
review_by = 2027-04-30
"#;

const FIELDS: &str =
    "expected one of `class`, `owner`, `reason`, `blast_radius`, `mitigation`, `accepted_on`, `review_by`";
const DAY: &str = "a day is a date without quotes and without a time, such as 2026-11-29; got ";
const NAME: &str = "a class name is 1 to 64 characters: parts of [a-z0-9_-] that begin with a letter, joined by points, got ";
const NOTHING: &str = "says nothing; write it in words";
const ONE_LINE: &str = "is one line, without spaces around it";

fn project(declared: &str, register: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("fence.toml"), declared).unwrap();
    std::fs::write(folder.path().join("risk-register.toml"), register).unwrap();
    folder
}

fn check(folder: &Path, today: &str) -> Said {
    fence_in(folder, &["register", "check", "--today", today])
}

#[test]
fn each_fault_in_the_register_is_code_2_with_its_line_and_message() {
    let without = |line: &str| (line.to_owned(), String::new());
    let instead = |sound: &str, fault: &str| (sound.to_owned(), fault.to_owned());
    let long = format!("\"{}\"", "x".repeat(501));
    let twice = format!("review_by = 2027-04-30\n\n{SOUND}");
    let name = "\"app.mail\"";
    let owner = "\"team-1\"";
    let reason = "\"The provider takes no token.\"";
    let radius = "\"One mail, sent twice.\"";
    let mitigation = "\"The provider drops repeats.\"";
    let accepted = "2026-11-02";
    let review = "2027-04-30";
    let cases = [
        // Fields that are unknown or missing.
        (
            instead("owner = ", "ownr = "),
            3,
            format!("unknown field `ownr`, {FIELDS}"),
        ),
        (
            instead("review_by = ", "review_on = "),
            8,
            format!("unknown field `review_on`, {FIELDS}"),
        ),
        (
            instead("[[risk]]\n", "[[risk]]\nnote = 1\n"),
            2,
            format!("unknown field `note`, {FIELDS}"),
        ),
        (
            instead("[[risk]]", "[[risks]]"),
            1,
            "unknown field `risks`, expected `risk`".into(),
        ),
        (
            without("class = \"app.mail\"\n"),
            1,
            "missing field `class`; write it like class = \"app.thing\"".into(),
        ),
        (without("owner = \"team-1\"\n"), 1, "missing field `owner`; write it like owner = \"team-1\"".into()),
        (
            without("reason = \"The provider takes no token.\"\n"),
            1,
            "missing field `reason`; write it like reason = \"the provider takes no token\"".into(),
        ),
        (
            without("blast_radius = \"One mail, sent twice.\"\n"),
            1,
            "missing field `blast_radius`; write it like blast_radius = \"one order's webhook, sent twice\"".into(),
        ),
        (
            without("mitigation = \"The provider drops repeats.\"\n"),
            1,
            "missing field `mitigation`; write it like mitigation = \"the provider drops repeats\"".into(),
        ),
        (
            without("accepted_on = 2026-11-02\n"),
            1,
            "missing field `accepted_on`; write it like accepted_on = 2026-11-02".into(),
        ),
        (
            without("review_by = 2027-04-30\n"),
            1,
            "missing field `review_by`; write it like review_by = 2027-04-30".into(),
        ),
        // Values of another type.
        (
            instead("[[risk]]", "[risk]"),
            1,
            "invalid type: table, expected a list whose entries begin with [[risk]]".into(),
        ),
        (
            instead(name, "17"),
            2,
            "invalid type: integer `17`, expected a class name; write it like class = \"app.thing\"".into(),
        ),
        (
            instead(name, "[\"app.mail\"]"),
            2,
            "invalid type: list, expected a class name; write it like class = \"app.thing\"".into(),
        ),
        (
            instead(owner, "1"),
            3,
            "invalid type: integer `1`, expected a string; write it like owner = \"team-1\"".into(),
        ),
        (
            instead(owner, "[\"team-1\", \"team-2\"]"),
            3,
            "invalid type: list, expected a string; write it like owner = \"team-1\"".into(),
        ),
        (
            instead(reason, "true"),
            4,
            "invalid type: boolean `true`, expected a string; write it like reason = \"the provider takes no token\"".into(),
        ),
        (
            instead(radius, "{ mails = 1 }"),
            5,
            "invalid type: table, expected a string; write it like blast_radius = \"one order's webhook, sent twice\"".into(),
        ),
        (
            instead(mitigation, "1.5"),
            6,
            "invalid type: floating point `1.5`, expected a string; write it like mitigation = \"the provider drops repeats\"".into(),
        ),
        // Names and texts.
        (instead(name, "\"\""), 2, format!("{NAME}\"\"")),
        (instead(name, "\"App.Mail\""), 2, format!("{NAME}\"App.Mail\"")),
        (instead(owner, "\"\""), 3, format!("owner {NOTHING}")),
        (instead(owner, "\"  \""), 3, format!("owner {NOTHING}")),
        (instead(owner, "\" team-1\""), 3, format!("owner {ONE_LINE}")),
        (instead(owner, "\"team-1\\n\""), 3, format!("owner {ONE_LINE}")),
        (instead(reason, "\"?\""), 4, format!("reason {NOTHING}")),
        (
            instead(reason, &long),
            4,
            "reason has 501 characters; at most 500".into(),
        ),
        (instead(radius, "\"...\""), 5, format!("blast_radius {NOTHING}")),
        (instead(mitigation, "\"-\""), 6, format!("mitigation {NOTHING}")),
        (
            instead(mitigation, "\"one\\ntwo\""),
            6,
            format!("mitigation {ONE_LINE}"),
        ),
        // Days.
        (
            instead(accepted, "\"2026-11-02\""),
            7,
            format!("{DAY}\"2026-11-02\""),
        ),
        (
            instead(accepted, "2026-11-02T10:00:00Z"),
            7,
            format!("{DAY}2026-11-02T10:00:00Z"),
        ),
        (instead(accepted, "20261102"), 7, format!("{DAY}20261102")),
        (instead(accepted, "10:00:00"), 7, format!("{DAY}10:00:00")),
        (
            instead(review, "\"in half a year\""),
            8,
            format!("{DAY}\"in half a year\""),
        ),
        (
            instead(accepted, "2026-11-31"),
            7,
            "invalid date, expected day between 01 and 30".into(),
        ),
        (
            instead(accepted, "2026-02-29"),
            7,
            "invalid date, expected day between 01 and 28".into(),
        ),
        (
            instead(accepted, "2026-11-2"),
            7,
            "invalid date, expected a two-digit day (DD)".into(),
        ),
        (
            instead(review, "2027-13-01"),
            8,
            "invalid date, expected month between 01 and 12".into(),
        ),
        (
            instead(review, "2026-11-01"),
            8,
            "review_by lies before accepted_on".into(),
        ),
        (
            instead(review, "2027-05-02"),
            8,
            "review_by lies 181 days after accepted_on; at most 180 days".into(),
        ),
        (
            instead(review, "2072-04-30"),
            8,
            "review_by lies 16616 days after accepted_on; at most 180 days".into(),
        ),
        // The file as a whole.
        (
            instead("review_by = 2027-04-30\n", &twice),
            11,
            "app.mail is on the register twice: first on line 2; keep one".into(),
        ),
        (
            instead("\"team-1\"\n", "\"team-1\"\nowner = \"team-2\"\n"),
            4,
            "duplicate key".into(),
        ),
        (
            instead("[[risk]]", "[[risk]"),
            1,
            "unclosed array table, expected `]`".into(),
        ),
        (
            instead("reason = ", "reason "),
            4,
            "key with no value, expected `=`".into(),
        ),
    ];
    assert!(cases.len() >= 40);
    for ((sound, fault), line, message) in cases {
        assert_eq!(
            SOUND.matches(&sound).count(),
            1,
            "{sound:?} stands once in the sound register"
        );
        let folder = project(DECLARED, &SOUND.replace(&sound, &fault));
        let file = folder.path().join("risk-register.toml");
        let expected = format!("error: {}:{line}: {message}\n", file.display());
        for command in ["check", "list"] {
            let said = fence_in(folder.path(), &["register", command, "--today", "2026-11-29"]);
            assert_eq!(
                (said.code, said.err.as_str(), said.out.as_str()),
                (2, expected.as_str(), ""),
                "{fault}"
            );
        }
    }
}

#[test]
fn a_register_is_in_order_until_the_day_of_the_review_and_says_whom_to_ask_on_the_next() {
    let folder = project(DECLARED, SOUND);
    for today in ["2026-11-02", "2027-04-30"] {
        let said = check(folder.path(), today);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{today}: {}", said.out);
        assert!(
            said.out.contains("accepted by team-1, review by 2027-04-30"),
            "{}",
            said.out
        );
    }
    let said = check(folder.path(), "2027-05-01");
    assert_eq!(said.code, 1, "{}", said.out);
    for words in [
        "app.mail: its review was due by 2027-04-30, and today is 2027-05-01",
        "risk-register.toml:8",
        "next  review it with its owner",
    ] {
        assert!(said.out.contains(words), "{words:?} in {}", said.out);
    }
}

#[test]
fn a_risk_accepted_on_a_day_to_come_is_found() {
    let folder = project(DECLARED, SOUND);
    let said = check(folder.path(), "2026-11-01");
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(
        said.out.contains("app.mail: its risk was accepted on 2026-11-02"),
        "{}",
        said.out
    );
    assert!(said.out.contains("risk-register.toml:7"), "{}", said.out);
}

#[test]
fn a_correctness_class_that_nothing_enforces_is_on_the_register_or_found() {
    let folder = project(DECLARED, SOUND);
    for register in ["", "# nothing here\n", "risk = []\n"] {
        std::fs::write(folder.path().join("risk-register.toml"), register).unwrap();
        let said = check(folder.path(), "2026-11-29");
        assert_eq!(said.code, 1, "{register:?}: {}", said.out);
        assert!(
            said.out.contains("app.mail: a double holder corrupts"),
            "{}",
            said.out
        );
        assert!(said.out.contains("fence.toml:6"), "{}", said.out);
    }
    std::fs::remove_file(folder.path().join("risk-register.toml")).unwrap();
    assert_eq!(check(folder.path(), "2026-11-29").code, 1);
}

#[test]
fn what_stands_on_the_register_and_has_no_business_there_is_found() {
    for (sound, fault, words) in [
        (
            "app.mail",
            "app.post",
            "app.mail: it is on the register, and fence.toml declares no such class",
        ),
        (
            "\"correctness\"",
            "\"efficiency\"",
            "app.mail: it is on the register, and a double holder of it only wastes work",
        ),
        (
            "\"advisory\"",
            "\"fenced\"",
            "app.mail: it is on the register, and fence.toml calls it fenced",
        ),
    ] {
        let folder = project(&DECLARED.replace(sound, fault), SOUND);
        let said = check(folder.path(), "2026-11-29");
        assert_eq!(said.code, 1, "{fault}: {}", said.out);
        assert!(said.out.contains(words), "{words:?} in {}", said.out);
        assert!(said.out.contains("risk-register.toml:2"), "{}", said.out);
    }
}

#[test]
fn a_class_that_is_only_called_fenced_is_found_where_it_is_called_so() {
    let folder = project(&DECLARED.replace("\"advisory\"", "\"fenced\""), "");
    let said = check(folder.path(), "2026-11-29");
    assert_eq!(said.code, 1, "{}", said.out);
    assert!(
        said.out
            .contains("app.mail: it is called fenced, and nothing says how that is proven"),
        "{}",
        said.out
    );
    assert!(said.out.contains("fence.toml:6"), "{}", said.out);
}

#[test]
fn the_age_of_a_proof_is_a_number_of_days_of_a_fenced_class() {
    for (text, message) in [
        (
            "\"advisory\"\nproof_max_age_days = 30",
            "an advisory class has no proof that could grow old",
        ),
        (
            "\"fenced\"\nproof_max_age_days = 0",
            "proof_max_age_days is 1 to 365, got 0",
        ),
        (
            "\"fenced\"\nproof_max_age_days = 366",
            "proof_max_age_days is 1 to 365, got 366",
        ),
        (
            "\"fenced\"\nproof_max_age_days = \"30d\"",
            "invalid type: string \"30d\"",
        ),
    ] {
        let folder = project(&DECLARED.replace("\"advisory\"", text), SOUND);
        let said = check(folder.path(), "2026-11-29");
        assert_eq!(said.code, 2, "{text}: {}", said.out);
        assert!(
            said.err.contains("fence.toml:7: ") && said.err.contains(message),
            "{}",
            said.err
        );
    }
}

#[test]
fn what_is_due_is_listed_by_urgency_with_the_days_that_are_left() {
    let second = SOUND
        .replace("app.mail", "app.post")
        .replace("team-1", "team-22")
        .replace("2027-04-30", "2026-12-29");
    let folder = project(DECLARED, &format!("{SOUND}\n{second}"));
    let list = |arguments: &[&str]| {
        let said = fence_in(folder.path(), &[&["register", "list"], arguments].concat());
        assert_eq!(said.code, 0, "{}", said.err);
        said.out
    };
    assert_eq!(
        list(&["--today", "2026-11-29"]),
        "class     owner    review by   on 2026-11-29\n\
         app.post  team-22  2026-12-29  30 days left\n\
         app.mail  team-1   2027-04-30  152 days left\n"
    );
    let due = list(&["--due", "30d", "--today", "2026-11-29"]);
    assert!(due.contains("app.post") && !due.contains("app.mail"), "{due}");
    assert_eq!(
        list(&["--due", "29d", "--today", "2026-11-29"]),
        "nothing is due within 29 days of 2026-11-29\n"
    );
    let overdue = list(&["--due", "0d", "--today", "2026-12-30"]);
    assert!(
        overdue.contains("app.post  team-22  2026-12-29  1 day overdue"),
        "{overdue}"
    );
}

#[test]
fn a_wrong_argument_is_named_with_the_right_form() {
    let folder = project(DECLARED, SOUND);
    for (arguments, form) in [
        (["check", "--today", "29.11.2026"], "such as 2026-11-29"),
        (["check", "--today", "2026-02-30"], "such as 2026-11-29"),
        (["check", "--today", "20261129"], "such as 2026-11-29"),
        (["check", "--config", "nowhere.toml"], "nowhere.toml"),
        (["list", "--due", "30"], "such as 30d"),
        (["list", "--due", "-1d"], "such as 30d"),
    ] {
        let said = fence_in(folder.path(), &[&["register"], &arguments[..]].concat());
        assert_eq!(said.code, 2, "{arguments:?}: {}", said.err);
        assert!(
            said.err.contains(form),
            "{arguments:?} should name {form}: {}",
            said.err
        );
    }
}
