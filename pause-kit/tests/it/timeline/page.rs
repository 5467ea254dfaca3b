//! The page as a file: what it forbids, escapes, links and shows.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pause_kit::evidence::Verdict;
use pause_kit::history::{Change, Event, Half};
use pause_kit::timeline::Drawing;
use sha2::{Digest, Sha256};

use super::{between, drawing, let_in};
use crate::judge::forms::{held, idle, late_send, queued};

/// Every form, one of them violated and one inconclusive.
fn all() -> Drawing {
    let pair = |form: fn(Half) -> crate::judge::tape::Tape| vec![form(Half::Guarded), form(Half::Defeated)];
    drawing([
        (Verdict::Proven, pair(|half| late_send("S01", half))),
        (Verdict::Inconclusive, pair(|half| queued(half, false))),
        (Verdict::Proven, pair(held)),
        (
            Verdict::Violated,
            vec![
                let_in(late_send("S02", Half::Defeated)),
                late_send("S02", Half::Defeated),
            ],
        ),
        (Verdict::Proven, pair(idle)),
    ])
}

#[test]
fn the_same_evidence_gives_the_same_page() {
    assert_eq!(all().page(), all().page());
}

#[test]
fn every_element_is_closed_in_its_order_and_every_id_stands_once() {
    let page = all().page();
    let mut open = Vec::new();
    let mut ids = BTreeSet::new();
    let body = page.strip_prefix("<!doctype html>").unwrap();
    let body = without(&without(body, "<style>", "</style>"), "<script>", "</script>");
    for tag in body
        .split('<')
        .skip(1)
        .map(|rest| rest.split('>').next().unwrap())
    {
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name.to_owned()), "</{name}>");
            continue;
        }
        let name = tag.split(' ').next().unwrap();
        assert_eq!(tag.matches('"').count() % 2, 0, "<{tag}>");
        if let Some(id) = tag.split(" id=\"").nth(1) {
            assert!(
                ids.insert(id.split('"').next().unwrap().to_owned()),
                "twice: {tag}"
            );
        }
        if name != "meta" {
            open.push(name.to_owned());
        }
    }
    assert_eq!(open, Vec::<String>::new());
    let links: Vec<&str> = body
        .split("href=\"#")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    assert!(links.len() > 20, "{links:?}");
    for link in links {
        assert!(ids.contains(link), "nothing is called {link}");
    }
}

/// The text without what stands between two pieces of markup; the markup stays.
fn without(text: &str, open: &str, close: &str) -> String {
    let (before, rest) = text.split_once(open).unwrap();
    let (_, after) = rest.split_once(close).unwrap();
    format!("{before}{open}{close}{after}")
}

#[test]
fn the_page_forbids_every_request_and_holds_nothing_that_would_make_one() {
    let page = all().page();
    let part = |open: &str, close: &str| page.split(open).nth(1).unwrap().split(close).next().unwrap();
    let policy = part("http-equiv=\"Content-Security-Policy\" content=\"", "\"").replace("&#39;", "'");
    assert!(
        policy.starts_with("default-src 'none'; base-uri 'none'; form-action 'none'; "),
        "{policy}"
    );
    for (rule, content) in [
        ("style-src", part("<style>", "</style>")),
        ("script-src", part("<script>", "</script>")),
    ] {
        let digest = STANDARD.encode(Sha256::digest(content));
        assert!(policy.contains(&format!("{rule} 'sha256-{digest}'")), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    for word in [
        "http://",
        "https://",
        " src=",
        "url(",
        "@import",
        "<link",
        "<img",
        "<iframe",
        " style=",
        " onclick=",
    ] {
        assert!(!page.contains(word), "the page holds {word:?}");
    }
    assert_eq!(page.matches("<script").count(), 1);
}

#[test]
fn text_of_a_history_never_becomes_markup() {
    let hostile = "\"><script>alert('x')</script><b onmouseover=x>&amp;";
    let mut tapes = vec![late_send("S02", Half::Guarded), late_send("S02", Half::Defeated)];
    for tape in &mut tapes {
        let key = std::mem::replace(&mut tape.run.key, hostile.to_owned());
        tape.run.class = hostile.to_owned();
        tape.run.deed = hostile.to_owned();
        let own = |class: &mut String, other: &mut String| {
            *class = hostile.to_owned();
            if *other == key {
                *other = hostile.to_owned();
            }
        };
        for (_, event) in &mut tape.events {
            match event {
                Event::Grant(grant) => own(&mut grant.class, &mut grant.key),
                Event::Request(request) => {
                    own(&mut request.class, &mut request.key);
                    request.presented.token = Some(hostile.to_owned());
                }
                Event::Read(read) => own(&mut read.class, &mut read.key),
                Event::Stop(stop) => stop.target = hostile.to_owned(),
                Event::DbAnswer(answer) => {
                    answer.detail = Some(format!("presented {hostile}, seen {hostile}"))
                }
                Event::Commit(commit) => match &mut commit.change {
                    Change::Admission { class, key, .. } => own(class, key),
                    Change::Write { class, key, job, .. } => {
                        own(class, key);
                        *job = Some(hostile.to_owned());
                    }
                },
                _ => {}
            }
        }
    }
    let page = drawing([(Verdict::Violated, tapes)]).page();
    assert!(page.matches("&lt;script&gt;alert(&#39;x&#39;)").count() > 10);
    assert_eq!(page.matches("<script").count(), 1);
    assert_eq!(page.matches("<b onmouseover").count(), 0);
}

#[test]
fn failures_stand_first_and_open_and_the_proven_ones_short_below() {
    let page = all().page();
    let articles: Vec<&str> = page.split("<article class=\"").skip(1).collect();
    let verdicts: Vec<&str> = articles
        .iter()
        .map(|one| one.split('"').next().unwrap())
        .collect();
    assert_eq!(
        verdicts,
        ["violated", "inconclusive", "proven", "proven", "proven"]
    );
    let open: Vec<bool> = articles
        .iter()
        .map(|one| one.contains("<details class=\"run\" open>"))
        .collect();
    assert_eq!(open, [true, true, false, false, false]);
    // A proven run alone: its first picture is there at once.
    let proven = drawing([(Verdict::Proven, vec![held(Half::Guarded), held(Half::Defeated)])]).page();
    assert!(proven.contains("<details class=\"run\" open>"));
}

#[test]
fn a_broken_rule_is_shown_by_its_lines_and_at_the_steps_that_they_belong_to() {
    let violated = let_in(late_send("S02", Half::Defeated));
    let history = violated.history();
    let lines: BTreeMap<usize, String> = history
        .events()
        .map(|(line, _, event)| (line, format!("{event:?}")))
        .collect();
    let page = drawing([(Verdict::Violated, vec![let_in(late_send("S02", Half::Defeated))])]).page();
    let sections = between(&page, "<section class=\"broken\">", "</section>");
    let first = &sections[0];
    assert!(first.contains("Broken: rule 2 (real-time refusal)"), "{first}");
    assert!(
        first.contains(
            "H1's write (token …689) was accepted although it began after H2 (token …690) had been in touch."
        ),
        "{first}"
    );
    let named: Vec<usize> = first
        .split("line ")
        .skip(1)
        .map(|rest| rest.split(' ').next().unwrap().parse().unwrap())
        .collect();
    let shown: Vec<&str> = named.iter().map(|line| lines[line].as_str()).collect();
    assert!(
        shown[0].contains("Answer") && shown[0].contains("H2-raise"),
        "{shown:?}"
    );
    assert!(
        shown[1].contains("Request") && shown[1].contains("H1-late"),
        "{shown:?}"
    );
    for line in named {
        assert!(
            page.contains(&format!("\">line {line}</a>")),
            "line {line} leads to no step"
        );
    }
    let steps = between(&page, "<li class=\"wrong shows\"", "</li>");
    assert!(
        steps.iter().any(|step| step.contains("shows broken rules 1, 2")),
        "{steps:?}"
    );
}

#[test]
fn both_halves_say_what_the_late_write_met() {
    let page = drawing([(Verdict::Proven, vec![held(Half::Guarded), held(Half::Defeated)])]).page();
    let halves = between(&page, "<section class=\"meet\">", "</section>");
    assert_eq!(halves.len(), 2);
    for (half, words) in [
        (
            &halves[0],
            [
                "With the guard",
                "token …689",
                "mark…690",
                "refused",
                "order-7 was refunded once.",
            ],
        ),
        (
            &halves[1],
            [
                "Without the guard",
                "token …689",
                "mark…690",
                "let in",
                "order-7 was refunded twice.",
            ],
        ),
    ] {
        for word in words {
            assert!(half.contains(word), "{word:?} is not in {half:?}");
        }
    }
    assert_eq!(page.matches("<li class=\"right\"").count(), 1);
    assert_eq!(page.matches("<li class=\"wrong shows\"").count(), 1);
}

#[test]
fn the_page_has_rules_for_the_dark_for_paper_and_for_a_narrow_screen() {
    let page = all().page();
    for rule in [
        "@media (prefers-color-scheme: dark)",
        "@media print",
        "@media (max-width: 40em)",
        ":focus-visible",
    ] {
        assert!(page.contains(rule), "no {rule}");
    }
    for moving in ["animation", "transition", "scroll-behavior: smooth"] {
        assert!(!page.contains(moving), "something moves: {moving}");
    }
}

#[test]
fn the_files_that_it_was_drawn_from_are_listed_with_their_digests() {
    let drawing = drawing([(Verdict::Proven, vec![held(Half::Guarded), held(Half::Defeated)])]);
    let page = drawing.page();
    let list = &between(&page, "<ul class=\"digests\">", "</ul>")[0];
    for file in ["evidence.json", "0.Guarded.jsonl", "0.Defeated.jsonl"] {
        assert!(list.contains(file), "{list}");
    }
    let text = &between(&page, "<footer>", "</footer>")[0];
    assert!(text.contains("a picture, not evidence"), "{text}");
}
