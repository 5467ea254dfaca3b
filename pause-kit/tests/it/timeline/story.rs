//! What the page says happened.

use pause_kit::evidence::Verdict;
use pause_kit::history::{Attempt, Half, Outcome};

use super::{between, drawing, let_in};
use crate::judge::forms::{held, idle, late_send, queued};
use crate::judge::tape::{Tape, http};

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
        "H1 was stopped for 31 ms. H1's lease ran out; H2 took over with token …690 and wrote. H1 woke up and sent its \
         write with token …689; the resource refused it, because it had seen …690. Without the guard the same write went \
         through: order-7 was refunded twice."
    );
    assert_eq!(
        pair(|half| queued(half, true)),
        "The resource was stopped for 31 ms, while H1's write and then H2's write lay unread in its socket. H1 was \
         killed. H1's lease was revoked; H2 took over with token …690 and wrote. The resource went on and read H1's \
         write, with token …689; the resource refused it, because it had seen …690. Without the guard the same write went \
         through: order-7 was refunded twice."
    );
    assert_eq!(
        pair(held),
        "H1 sent its write; 17 bytes of it were let through, and the rest was held on its way for 34 ms. H1's lease was \
         revoked; H2 took over with token …690 and wrote. Then the rest of H1's write arrived, with token …689; the \
         resource refused it, because it had seen …690. Without the guard the same write went through: order-7 was \
         refunded twice."
    );
    assert_eq!(
        pair(idle),
        "H1 was stopped for 9.0 s inside its open transaction. H1's lease was revoked; H2 took over with token …690, was \
         told twice that an older transaction was in the way and wrote after 5.0 s. H1 woke up and sent its write with \
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
        "H1 was stopped for 31 ms. H1's lease was revoked; H2 took over with token …690 and wrote. H1 woke up and sent its \
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
         stopped for 31 ms. H1's lease was revoked; H2 took over with token …690 and wrote. H1 woke up and sent its write \
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
        .lease_end(50, "g1", "released");
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
