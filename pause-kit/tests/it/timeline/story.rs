//! What the page says happened.

use pause_kit::evidence::Verdict;
use pause_kit::history::{Attempt, Cause, Event, Half, History, Op, Outcome, ProbeKind, Reply, Work};

use super::{between, drawing, let_in};
use crate::judge::forms::{held, idle, late_send, queued};
use crate::judge::takeovers::{fence_then_read, from_disk, in_turn, legal_gap, short_pause, stale_read};
use crate::judge::tape::{NEW, Tape, http, presented};

fn told(verdict: Verdict, halves: Vec<Tape>) -> String {
    let page = drawing([(verdict, halves)]).page();
    let mut stories = between(&page, "<p class=\"story\">", "</p>");
    assert_eq!(stories.len(), 1);
    stories.remove(0)
}

#[test]
fn each_form_is_told_from_what_its_histories_hold() {
    let pair =
        |form: fn(Half) -> Tape| told(Verdict::Proven, vec![form(Half::Guarded), form(Half::Defeated)]);
    assert_eq!(
        pair(|half| late_send("S01", half)),
        "H1 was stopped for 31 ms. H1's lease ran out; H2 was granted token …690, raised the mark, read and wrote. H1 woke up and sent its \
         write with token …689; the resource refused it, because it had seen …690. Without the guard the same write went \
         through: order-7 was refunded twice."
    );
    assert_eq!(
        pair(|half| queued(half, true)),
        "The resource was stopped for 31 ms. H1's write came to lie unread in the resource's socket. H1 was killed. H1's lease \
         was revoked; H2 was granted token …690, raised the mark and read. H2's write came to lie unread in the resource's \
         socket. The resource went on and read H1's write, with token …689; the resource refused it, because it had seen \
         …690. The resource read H2's write and accepted it. Without the guard the same write went through: order-7 was \
         refunded twice."
    );
    assert_eq!(
        pair(held),
        "H1 sent its write; 17 bytes of it were let through, and the rest was held on its way for 34 ms. H1's lease was \
         revoked; H2 was granted token …690, raised the mark, read and wrote. Then the rest of H1's write arrived, with token …689; the \
         resource refused it, because it had seen …690. Without the guard the same write went through: order-7 was \
         refunded twice."
    );
    assert_eq!(
        pair(idle),
        "H1 was stopped for 9.0 s inside its open transaction. H1's lease was revoked; H2 was granted token …690 and was told \
         twice that an older transaction was in the way. PostgreSQL ended H1's idle transaction. H2 wrote after 5.0 s. H1 woke up and sent its write with \
         token …689; PostgreSQL refused it, because it had seen …690. Without the guard's bounds, H2's write (token …690) was kept \
         waiting for 9.000 s; the bound with its slack is 2.500 s."
    );
}

#[test]
fn a_guard_that_let_the_late_write_in_is_told_with_the_rule_that_it_broke() {
    let halves = vec![
        let_in(late_send("S02", Half::Defeated)),
        late_send("S02", Half::Defeated),
    ];
    assert_eq!(
        told(Verdict::Violated, halves),
        "H1 was stopped for 31 ms. H1's lease was revoked; H2 was granted token …690, raised the mark, read and wrote. H1 woke up and sent its \
         write with token …689; the resource accepted it, although it had seen …690. So order-7 was refunded twice. That \
         breaks rule 2 (real-time refusal), and 4 more rules. Without the guard the same write went through: order-7 was \
         refunded twice."
    );
}

#[test]
fn a_run_without_the_guard_and_one_that_shows_nothing_are_told_as_such() {
    let unfenced = told(Verdict::Violated, vec![late_send("S02", Half::Defeated)]);
    assert!(
        unfenced.starts_with("This was run without the guard. H1 was stopped"),
        "{unfenced}"
    );
    assert!(unfenced.contains("So order-7 was refunded twice."), "{unfenced}");
    let halves = vec![late_send("S02", Half::Guarded), late_send("S02", Half::Defeated)];
    let void = told(Verdict::Inconclusive, halves);
    assert!(
        void.ends_with("This shows nothing either way: the holder was never granted."),
        "{void}"
    );
}

#[test]
fn several_attempts_are_told_in_the_order_of_time_and_a_rightful_one_as_such() {
    let mut tape = late_send("S03", Half::Guarded);
    tape.run.attempts = vec![
        Attempt::new("H1-early", Outcome::Legal),
        Attempt::new("H1-late", Outcome::Refused),
    ];
    tape.request("H1-early", "g1", Some("g1:2"), 5, 5)
        .answer("H1-early", 6, http(201, None));
    let told = told(Verdict::Proven, vec![tape]);
    let expected = "H1 sent its write with token …689; the resource accepted it, and rightly: nobody newer had been in touch. H1 was \
         stopped for 31 ms. H1's lease was revoked; H2 was granted token …690, raised the mark, read and wrote. H1 woke up and sent its write \
         with token …689; the resource refused it, because it had seen …690.";
    assert!(told.starts_with(expected), "{told}");
}

#[test]
fn a_write_of_a_holder_whose_lease_still_runs_is_not_called_late() {
    let mut tape = Tape::new("S18", Half::Guarded, pause_kit::history::Exercise::Control);
    tape.run.attempts = vec![Attempt::new("H1-write", Outcome::Legal)];
    tape.grant(0, "H1", "g1").stop("H1", 10, 40);
    tape.request("H1-write", "g1", Some("g1:1"), 41, 41)
        .answer("H1-write", 43, http(201, None))
        .lease_end(50, "g1", Cause::Released);
    let page = drawing([(Verdict::Held, vec![tape])]).page();
    assert!(!page.contains("late write<"), "{page}");
    let pictures = between(&page, "<section class=\"meet\">", "</section>");
    assert!(
        pictures[0].contains("H1&#8217;s write") && pictures[0].contains("accepted, rightly"),
        "{pictures:?}"
    );
    let steps = between(&page, "<li class=\"right", "</li>");
    assert!(steps[0].contains("H1 sends its write with token"), "{steps:?}");
}

/// What must be told, in the order of the history's lines.
fn to_be_told(history: &History) -> Vec<String> {
    let attempts: Vec<&Op> = history.run().attempts.iter().map(|one| &one.op).collect();
    let request = |op: &Op| {
        let mut events = history.events();
        events.find_map(|(_, _, event)| match event {
            Event::Request(request) if request.op == *op => Some(request),
            _ => None,
        })
    };
    let mut phrases = Vec::new();
    for (_, _, event) in history.events() {
        match event {
            Event::Stop(stop) if stop.target == "R" => {
                phrases.push("The resource was stopped for".to_owned());
            }
            Event::Stop(stop) => phrases.push(format!("{} was stopped for", stop.target)),
            Event::Killed(killed) => phrases.push(format!("{} was killed.", killed.target)),
            Event::Restarted(again) => phrases.push(format!("{} was started again", again.target)),
            Event::Queued(queued) => {
                let holder = &request(&queued.op).unwrap().holder;
                phrases.push(format!("{holder}'s write came to lie unread"));
            }
            Event::Grant(grant) if grant.holder != "H1" => {
                phrases.push(format!("{} was granted token", grant.holder));
            }
            Event::Read(read) if !["H1", "kit"].contains(&read.by.as_str()) => {
                phrases.push(" read".to_owned());
            }
            Event::Probe(probe) if probe.probe == ProbeKind::RolledBack => {
                phrases.push("was made and rolled back".to_owned());
            }
            Event::Answer(answer) => {
                let request = request(&answer.op).unwrap();
                let accepted = matches!(
                    &answer.reply,
                    Reply::Http {
                        status: 201 | 204,
                        ..
                    }
                ) || matches!(&answer.reply, Reply::Sql { tag: Some(tag), .. } if tag == "COMMIT");
                match (attempts.contains(&&answer.op), accepted, request.work) {
                    (true, true, _) => phrases.push("accepted it".to_owned()),
                    (true, false, _) => phrases.push("refused it".to_owned()),
                    (false, true, Work::Raise) if request.holder != "H1" => {
                        phrases.push("raised the mark".to_owned())
                    }
                    (false, true, Work::Write) if history.run().scenario == "S05" => {
                        phrases.push("accepted it".to_owned());
                    }
                    (false, true, Work::Write) => phrases.push("wrote".to_owned()),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    phrases
}

#[test]
fn every_scenario_is_told_whole_and_in_the_order_of_its_history() {
    let on = Half::Guarded;
    for tape in [
        late_send("S01", on),
        late_send("S02", on),
        legal_gap(on),
        stale_read(on),
        fence_then_read(on),
        queued(on, true),
        queued(on, false),
        held(on),
        in_turn(on),
        short_pause(),
        from_disk(on),
        idle(on),
    ] {
        let scenario = tape.run.scenario.clone();
        let (run, events) = (tape.run.clone(), tape.events.clone());
        let phrases = to_be_told(&History::new(run, events));
        let story = told(Verdict::Proven, vec![tape]);
        let mut rest = story.as_str();
        for phrase in &phrases {
            let place = rest.find(phrase.as_str());
            let place =
                place.unwrap_or_else(|| panic!("{scenario}: {phrase:?} is not in its place: {story}"));
            rest = &rest[place + phrase.len()..];
        }
        for word in [
            "was stopped",
            "was granted",
            "raised the mark",
            "wrote",
            "refused it",
            "accepted it",
            "was killed",
        ] {
            let due = phrases.iter().filter(|phrase| phrase.contains(word)).count();
            assert_eq!(
                story.matches(word).count(),
                due,
                "{scenario}: {word:?} in {story}"
            );
        }
    }
}

#[test]
fn a_rightful_write_in_the_twin_is_not_drawn_as_wrong_but_the_write_from_an_old_read_is() {
    let halves = || vec![fence_then_read(Half::Guarded), fence_then_read(Half::Defeated)];
    let story = told(Verdict::Proven, halves());
    assert!(
        story.ends_with(
            "H2 wrote. Without raising the mark before the read, H1's write came after H2's read and was accepted, and \
             rightly; H2 then wrote from that read."
        ),
        "{story}"
    );
    let page = drawing([(Verdict::Proven, halves())]).page();
    let twin = page.split("<section class=\"meet\">").nth(2).unwrap();
    let shots: Vec<&str> = twin.split("<div class=\"shot ").skip(1).collect();
    assert_eq!(shots.len(), 2, "{twin}");
    assert!(shots[0].starts_with("passed") && shots[0].contains("H1&#8217;s late write"));
    assert!(shots[0].contains("accepted, rightly"), "{}", shots[0]);
    assert!(shots[1].starts_with("went-through") && shots[1].contains("H2&#8217;s write"));
    let drawn = &between(shots[1], "<span class=\"end\">", "</div>")[0];
    assert_eq!(
        drawn.trim(),
        "an old readit rests on a read that misses H1's write"
    );
    // The late write alone is wrong in the twin of S03.
    let page = drawing([(
        Verdict::Proven,
        vec![legal_gap(Half::Guarded), legal_gap(Half::Defeated)],
    )])
    .page();
    let twin = page.split("<section class=\"meet\">").nth(2).unwrap();
    let shots: Vec<&str> = twin
        .split("<div class=\"shot ")
        .skip(1)
        .map(|shot| shot.split('"').next().unwrap())
        .collect();
    assert_eq!(shots, ["passed", "went-through", "passed"]);
}

#[test]
fn a_token_that_was_replaced_on_the_way_is_said_to_be_so() {
    let mut twin = late_send("S02", Half::Defeated);
    for (_, event) in &mut twin.events {
        if let Event::Request(request) = event
            && request.op == Op::new("H1-late")
        {
            request.presented = presented(NEW, "g2");
        }
    }
    let halves = || vec![late_send("S02", Half::Guarded), twin_of(&twin)];
    let story = told(Verdict::Proven, halves());
    assert!(
        story.ends_with(
            "With its successor's token put into it on the way the same write went through: order-7 was refunded twice."
        ),
        "{story}"
    );
    let page = drawing([(Verdict::Proven, halves())]).page();
    let twin_shown = &between(&page, "<section class=\"meet\">", "</section>")[1];
    assert!(
        twin_shown.contains("With the successor's token put into the late write"),
        "{twin_shown}"
    );
    assert!(twin_shown.contains("token …690for its own, …689"), "{twin_shown}");
    assert!(
        between(&page, "<span class=\"what\">", "</summary>")
            .iter()
            .any(|step| step.contains("token …690, put in the place of its own, …689, on the way")),
        "{page}"
    );
    let alone = told(Verdict::Violated, vec![twin_of(&twin)]);
    assert!(
        alone.contains(
            "which the kit had put in the place of its own, …689, on the way; the resource accepted it"
        ),
        "{alone}"
    );
}

fn twin_of(tape: &Tape) -> Tape {
    let mut twin = Tape::new("S02", Half::Defeated, tape.run.exercise);
    (twin.run, twin.events) = (tape.run.clone(), tape.events.clone());
    twin
}

#[test]
fn a_refused_write_that_took_effect_is_the_headline_and_not_a_green_refusal() {
    let halves = || {
        let mut on = late_send("S02", Half::Guarded);
        on.written(13, "acct-1", "g1", "g1:1");
        vec![on, late_send("S02", Half::Defeated)]
    };
    let story = told(Verdict::Violated, halves());
    assert!(
        story.contains("the resource refused it, because it had seen …690, and yet it took effect. So order-7 was refunded twice. That breaks rule 4 (no effect)"),
        "{story}"
    );
    let page = drawing([(Verdict::Violated, halves())]).page();
    assert!(
        !page.contains("stopped-at-wall\""),
        "a refusal is drawn as one that held"
    );
    let guarded = &between(&page, "<section class=\"meet\">", "</section>")[0];
    assert!(
        guarded.contains("took effectrefused") && guarded.contains("refused, and yet it took effect"),
        "{guarded}"
    );
    let broken = &between(&page, "<section class=\"broken\">", "</section>")[0];
    assert!(broken.contains("Broken: rule 4 (no effect)"), "{broken}");
    assert!(
        broken.contains("H1's write was refused, and yet it took effect on acct-1."),
        "{broken}"
    );
}

#[test]
fn a_rightful_write_that_was_refused_is_drawn_as_wrong() {
    let mut tape = legal_gap(Half::Guarded);
    for (_, event) in &mut tape.events {
        if let Event::Answer(answer) = event
            && answer.op == Op::new("H2-write-1")
        {
            answer.reply = http(412, Some("stale"));
        }
    }
    tape.events
        .retain(|(_, event)| !matches!(event, Event::Commit(commit) if commit.xid == 14));
    let page = drawing([(Verdict::Violated, vec![tape])]).page();
    let shown = &between(&page, "<section class=\"meet\">", "</section>")[0];
    assert!(shown.contains("refused, wrongly"), "{shown}");
}

#[test]
fn bytes_and_questions_are_counted_as_they_were() {
    let mut tape = held(Half::Guarded);
    for (_, event) in &mut tape.events {
        if let Event::Hold(hold) = event {
            hold.byte = 1;
        }
    }
    let page = drawing([(Verdict::Proven, vec![tape])]).page();
    let text = between(&page, "<main", "</main>").concat();
    assert!(!text.contains("1 bytes"), "{text}");
    assert!(text.contains("1 byte of it was let through"), "{text}");
    assert!(text.contains("The path lets 1 byte of"), "{text}");
    assert!(
        text.contains("The guard is asked 33 questions with known answers: 3 on this key and 30 on others"),
        "{text}"
    );
    // What is done in a holder's name is no question.
    let page = drawing([(Verdict::Proven, vec![legal_gap(Half::Guarded)])]).page();
    let text = between(&page, "<main", "</main>").concat();
    assert!(text.contains("The guard is asked 33 questions"), "{text}");
    assert!(
        text.contains("An admission of H3, with token …691, is rolled back"),
        "{text}"
    );
}
