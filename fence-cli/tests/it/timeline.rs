//! `fence timeline`: a folder of evidence is drawn again, or it is said why not.

use std::path::Path;

use pause_kit::evidence::{ClassEvidence, DefeatedHalf, Evidence, GuardDigest, HistoryFile, SCHEMA};
use pause_kit::evidence::{InvariantBroken, Place, ScenarioEvidence, Verdict};
use pause_kit::history::{
    Answer, At, Attempt, Bounds, Clock, Event, Exercise, Final, GrantRecord, GuardForm, Half, History, Op,
    Outcome, Presented, Reply, Request, Run, TokenNumber, Work,
};
use pause_kit::judge::judge;
use pause_kit::schedule::Schedule;
use pause_kit::target::Guard;
use sha2::{Digest, Sha256};

use super::command::{Said, fence_in};

/// A half without the guard in which H1's write came after H2's.
fn history() -> History {
    let run = Run {
        schema: Run::SCHEMA,
        scenario: "S02".to_owned(),
        class: "app.thing".to_owned(),
        key: "thing-1".to_owned(),
        half: Half::Defeated,
        seed: "7".to_owned(),
        clock: Clock::Monotonic,
        guard: GuardForm::Column,
        exercise: Exercise::Stopped,
        bounds: Bounds {
            deadline_ns: 2_000_000_000,
            slack_ns: 500_000_000,
        },
        stale_grant: Some("g1".to_owned()),
        attempts: vec![Attempt {
            op: Op::new("H1-write-1"),
            expected: Outcome::Refused,
        }],
        deed: "done".to_owned(),
        opening: Default::default(),
    };
    let mut events = Vec::new();
    for (holder, grant, token, granted, began) in [("H1", "g1", 33, 1, 30), ("H2", "g2", 34, 10, 20)] {
        let op = Op::new(format!("{holder}-write"));
        let at = |millis: u64| At::from_nanos(millis * 1_000_000);
        let (class, key) = ("app.thing".to_owned(), "thing-1".to_owned());
        let own = |text: &str| text.to_owned();
        let record = GrantRecord {
            class: class.clone(),
            key: key.clone(),
            token: TokenNumber::new(token),
            grant: own(grant),
            holder: own(holder),
        };
        events.push((at(granted), Event::Grant(record)));
        let request = Request {
            op: op.clone(),
            holder: own(holder),
            work: Work::Write,
            class,
            key,
            grant: Some(own(grant)),
            presented: Presented {
                token: Some(token.to_string()),
                grant: Some(own(grant)),
            },
            id: Some(own(grant)),
            sent: Some(at(began)),
        };
        events.push((at(began), Event::Request(request)));
        let reply = Reply::Sql {
            sqlstate: None,
            detail: None,
            tag: Some(own("UPDATE 1")),
        };
        events.push((
            at(began + 1),
            Event::Answer(Answer {
                op,
                reply,
                body: None,
            }),
        ));
    }
    let last = Final {
        ids: vec!["g1".to_owned()],
        balances: Default::default(),
        marks: Vec::new(),
    };
    events.push((At::from_nanos(90_000_000), Event::Final(last)));
    History::new(run, events)
}

/// The evidence of that half alone, published in a folder of its own.
fn evidence(folder: &Path) {
    let history = history();
    let judgement = judge(&history);
    let mut violated: Vec<InvariantBroken> = Vec::new();
    for violation in &judgement.violations {
        if violated
            .iter()
            .all(|known| known.name != violation.invariant.name())
        {
            violated.push(InvariantBroken {
                invariant: violation.invariant.number(),
                name: violation.invariant.name().to_owned(),
                why: violation.why.clone(),
                lines: violation.lines.clone(),
            });
        }
    }
    assert!(
        violated.iter().any(|one| one.invariant == Some(2)),
        "{violated:?}"
    );
    let mut text = Vec::new();
    history.write(&mut text).unwrap();
    let half = DefeatedHalf {
        violated: Some(violated),
        corruption: judgement.corruption,
        history: HistoryFile {
            history: "S02.defeated.jsonl".to_owned(),
            sha256: hex::encode(Sha256::digest(&text)),
        },
    };
    let class = "app.thing".parse().unwrap();
    let evidence = Evidence {
        schema: SCHEMA,
        seed: 7,
        schedule: Schedule::draw(7, &[("app.thing".parse().unwrap(), "S02".parse().unwrap())]).digest(),
        started: "2026-01-02T03:04:05Z".to_owned(),
        again: None,
        versions: Default::default(),
        transport: Default::default(),
        guard: GuardDigest {
            sha256: "9".repeat(64),
        },
        classes: vec![ClassEvidence {
            name: class,
            guard: Guard::Column,
            verdict: Verdict::Violated,
            proven_by: None,
        }],
        scenarios: vec![ScenarioEvidence {
            id: "S02".parse().unwrap(),
            class: "app.thing".parse().unwrap(),
            verdict: Verdict::Violated,
            why: None,
            on: None,
            defeated: Some(half),
            stops: Vec::new(),
        }],
    };
    let publication = Place::check(folder).unwrap().prepare().unwrap();
    publication.write("S02.defeated.jsonl", &text).unwrap();
    publication.commit(&evidence).unwrap();
}

pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        evidence(&folder.path("ev"));
        folder
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn timeline(&self, arguments: &[&str]) -> Said {
        fence_in(self.0.path(), &[&["timeline"], arguments].concat())
    }

    /// Replaces a text in a file of the evidence.
    pub(crate) fn edit(&self, name: &str, from: &str, to: &str) {
        let file = self.path("ev").join(name);
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains(from), "{text}");
        std::fs::write(file, text.replacen(from, to, 1)).unwrap();
    }
}

#[test]
fn a_run_without_the_guard_is_drawn_beside_its_evidence_and_where_out_says_byte_for_byte_the_same() {
    let folder = Folder::new();
    let said = folder.timeline(&["ev"]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (0, "drawn: ev/timeline.html\n"),
        "{said:?}"
    );
    let page = std::fs::read_to_string(folder.path("ev/timeline.html")).unwrap();
    assert!(page.contains("This was run without the guard."), "{page}");
    assert!(page.contains("rule 2 (real-time refusal)"), "{page}");
    let digest = hex::encode(Sha256::digest(
        std::fs::read(folder.path("ev/evidence.json")).unwrap(),
    ));
    assert!(
        page.contains(&digest),
        "the page does not name evidence.json's digest"
    );
    assert_eq!(folder.timeline(&["ev", "--out", "page.html"]).code, 0);
    assert_eq!(std::fs::read_to_string(folder.path("page.html")).unwrap(), page);
    // A page of ours may be drawn over.
    assert_eq!(folder.timeline(&["ev", "--out", "page.html"]).code, 0);
    // The page is no reason to leave the folder alone.
    assert!(Place::check(&folder.path("ev")).is_ok());
}

#[test]
fn a_folder_that_contradicts_itself_is_not_drawn_and_the_place_is_named() {
    for (name, from, to, place, why) in [
        (
            "S02.defeated.jsonl",
            "g2",
            "g3",
            "ev/S02.defeated.jsonl: ",
            "SHA-256",
        ),
        (
            "S02.defeated.jsonl",
            "{\"kind\":\"end\"",
            "{\"kind\":\"no\"",
            "ev/S02.defeated.jsonl",
            "SHA-256",
        ),
        (
            "evidence.json",
            "real-time refusal",
            "nothing at all",
            "S02.defeated.jsonl",
            "judged again",
        ),
        (
            "evidence.json",
            "\"schema\": 2",
            "\"schema\": 9",
            "ev/evidence.json:2",
            "schema 9",
        ),
        ("evidence.json", "{", "", "ev/evidence.json:", "no whole evidence"),
    ] {
        let folder = Folder::new();
        folder.edit(name, from, to);
        let said = folder.timeline(&["ev"]);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(
            said.err.starts_with("error: ") && said.err.contains(place) && said.err.contains(why),
            "{said:?}"
        );
        assert!(!folder.path("ev/timeline.html").exists(), "{said:?}");
    }
    let folder = Folder::new();
    let said = folder.timeline(&["nowhere"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err
            .contains("nowhere/evidence.json: there is no evidence to draw"),
        "{said:?}"
    );
}

#[test]
fn a_file_that_is_no_page_of_ours_is_left_alone() {
    let folder = Folder::new();
    for (name, text) in [
        ("thesis.html", "<!doctype html>\n<html>years of work</html>"),
        ("empty.html", ""),
    ] {
        std::fs::write(folder.path(name), text).unwrap();
        let said = folder.timeline(&["ev", "--out", name]);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(
            said.err.contains(name) && said.err.contains("left alone"),
            "{said:?}"
        );
        assert_eq!(std::fs::read_to_string(folder.path(name)).unwrap(), text);
    }
    let said = folder.timeline(&["ev", "--out", "no/such/folder.html"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("cannot write no/such/folder.html"), "{said:?}");
}
