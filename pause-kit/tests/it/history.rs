//! The history file: what is written is read again, and whatever is not wholly understood is refused, by line.

use std::error::Error;
use std::time::{Duration, Instant};

use pause_kit::history::{At, Event, Half, History, Killed, ReadError, Recorder};

use super::judge::forms::{held, idle, late_send, queued};

fn written(history: &History) -> String {
    let mut file = Vec::new();
    history.write(&mut file).unwrap();
    String::from_utf8(file).unwrap()
}

fn good() -> String {
    written(&late_send("S02", Half::Guarded).history())
}

#[test]
fn what_is_written_is_read_again() {
    let tapes = [
        late_send("S01", Half::Guarded),
        late_send("S02", Half::Defeated),
        queued(Half::Guarded, true),
        held(Half::Guarded),
        idle(Half::Guarded),
        idle(Half::Defeated),
    ];
    for tape in tapes {
        let history = tape.history();
        let file = written(&history);
        assert_eq!(History::read(file.as_bytes()).unwrap(), history);
        assert_eq!(written(&History::read(file.as_bytes()).unwrap()), file);
    }
}

#[test]
fn every_line_is_an_object_with_a_kind_and_tokens_are_strings() {
    for line in good().lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(value["kind"].is_string(), "{line}");
        assert!(!line.contains(r#""token":2"#), "a token as a number: {line}");
    }
    assert!(good().contains(r#""token":"281474976710689""#));
}

#[test]
fn lines_are_numbered_as_in_the_file() {
    let history = late_send("S02", Half::Guarded).history();
    let file = written(&history);
    let lines: Vec<&str> = file.lines().collect();
    for (line, at, _) in history.events() {
        let value: serde_json::Value = serde_json::from_str(lines[line - 1]).unwrap();
        assert_eq!(value["at"], at.as_nanos(), "line {line}");
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let file = good();
    for end in 0..file.len() {
        assert!(
            History::read(&file.as_bytes()[..end]).is_err(),
            "cut at byte {end} of {}",
            file.len()
        );
    }
    let without_the_last: String = file
        .lines()
        .take(file.lines().count() - 1)
        .map(|line| format!("{line}\n"))
        .collect();
    let cut = file.lines().count() - 1;
    assert!(matches!(
        History::read(without_the_last.as_bytes()),
        Err(ReadError::Cut { line }) if line == cut
    ));
}

#[test]
fn a_line_more_or_less_is_refused() {
    let file = good();
    let count = file.lines().count();
    let lines: Vec<&str> = file.lines().collect();
    let joined = |lines: &[&str]| lines.join("\n") + "\n";

    let mut fewer = lines.clone();
    fewer.remove(5);
    let error = History::read(joined(&fewer).as_bytes()).unwrap_err();
    assert!(
        matches!(error, ReadError::Count { line, counted } if line == count - 1 && counted == count),
        "{error}"
    );
    let mut more = lines.clone();
    more.insert(5, lines[5]);
    assert!(matches!(
        History::read(joined(&more).as_bytes()),
        Err(ReadError::Count { .. })
    ));
    let after = file.clone() + lines[5] + "\n";
    let error = History::read(after.as_bytes()).unwrap_err();
    assert!(
        matches!(error, ReadError::AfterTheEnd { line } if line == count + 1),
        "{error}"
    );
    let after = file.clone() + "\n";
    assert!(matches!(
        History::read(after.as_bytes()),
        Err(ReadError::AfterTheEnd { .. })
    ));
    let headless = joined(&lines[1..]);
    assert!(matches!(
        History::read(headless.as_bytes()),
        Err(ReadError::NoHeader { line: 1 })
    ));
    let mut two = lines.clone();
    two.insert(3, lines[0]);
    assert!(matches!(
        History::read(joined(&two).as_bytes()),
        Err(ReadError::SecondHeader { line: 4 })
    ));
}

#[test]
fn what_is_not_understood_is_refused_and_its_line_named() {
    let file = good();
    let faults = [
        (
            r#""kind":"lease_end""#,
            r#""kind":"lease_ending""#,
            "unknown variant",
        ),
        (
            r#""cause":"revoked""#,
            r#""cause":"revoked","by":"kit""#,
            "unknown field",
        ),
        (r#","cause":"revoked""#, "", "missing field"),
        (r#""cause":"revoked""#, r#""cause":"martians""#, "unknown variant"),
        (
            r#""token":"281474976710689""#,
            r#""token":281474976710689"#,
            "expected a string",
        ),
        (
            r#""token":"281474976710689""#,
            r#""token":"0281474976710689""#,
            "token number",
        ),
        (r#""at":15000000"#, r#""at":"15000000""#, "invalid type"),
        (r#""at":15000000,"#, "", "invalid type"),
        (r#""at":15000000"#, r#""at":-1"#, "invalid value"),
        (r#"{"at":15000000"#, r#"[{"at":15000000"#, "expected a map"),
        (r#""half":"guarded""#, r#""half":"on""#, "unknown variant"),
        (r#""schema":2"#, r#""schema":2,"note":"x""#, "unknown field"),
    ];
    for (right, wrong, word) in faults {
        let line = 1 + file.lines().position(|line| line.contains(right)).unwrap();
        let error = History::read(file.replacen(right, wrong, 1).as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), format!("line {line} is no event"), "{wrong}");
        let source = error.source().unwrap().to_string();
        assert!(source.contains(word), "{wrong}: {source}");
    }
    let other = file.replacen(r#""schema":2"#, r#""schema":3"#, 1);
    let error = History::read(other.as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "line 1 says schema 3, which is not known here");
}

#[test]
fn the_recorder_puts_events_of_all_threads_in_the_order_of_time() {
    let recorder = Recorder::start();
    let killed = |pid| Killed {
        target: "H1".to_owned(),
        pid,
    };
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let recorder = &recorder;
            scope.spawn(move || {
                for step in (0..100).rev() {
                    let at = At::from_nanos(step * 4 + thread);
                    recorder.record(at, killed(u32::try_from(at.as_nanos()).unwrap()));
                }
            });
        }
    });
    let run = late_send("S02", Half::Guarded).run;
    let history = recorder.into_history(run);
    let order: Vec<u64> = history
        .events()
        .map(|(_, at, event)| match event {
            Event::Killed(killed) if u64::from(killed.pid) == at.as_nanos() => at.as_nanos(),
            other => panic!("not what was recorded: {other:?}"),
        })
        .collect();
    assert_eq!(order, (0..400).collect::<Vec<u64>>());
}

#[test]
fn the_recorders_clock_takes_instants_from_elsewhere() {
    let before = Instant::now();
    let recorder = Recorder::start();
    let later = Instant::now() + Duration::from_millis(5);
    assert_eq!(recorder.at(before), At::from_nanos(0));
    let at = recorder.at(later).as_nanos();
    assert!((5_000_000..5_000_000_000).contains(&at), "{at}");
    assert!(recorder.now() <= recorder.now());
}
