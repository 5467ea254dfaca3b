//! What the page says where the path itself sent something.

use pause_kit::evidence::Verdict;
use pause_kit::history::Half;

use super::{between, drawing};
use crate::judge::relayed::{altered, closed, repeated, replayed};
use crate::judge::tape::Tape;

fn told(verdict: Verdict, halves: Vec<Tape>) -> String {
    let page = drawing([(verdict, halves)]).page();
    between(&page, "<p class=\"story\">", "</p>").concat()
}

#[test]
fn what_the_path_sent_is_told_with_what_it_changed() {
    let pair =
        |form: &dyn Fn(Half) -> Tape| told(Verdict::Proven, vec![form(Half::Guarded), form(Half::Defeated)]);
    let cut = "H1 sent its write; all of it was held on its way and never arrived. H1's lease was revoked; H2 was granted token \
               …690, raised the mark, read and wrote. The path sent H1's write again";
    assert_eq!(
        pair(&replayed),
        format!(
            "H1 sent its write and was answered. {}, with token …689; the resource knew it, gave the answer of the first \
             time, and did nothing more. The path sent H1's write again, with token …689; the resource refused it, because \
             it had seen …690. Without the guard the write that was refused went through: order-7 part 2 was refunded twice.",
            cut.replace("H1's write", "H1's answered write")
        )
    );
    for (scenario, how, without) in [
        (
            "S39",
            "with its successor's token and its own grant; the resource refused it, as collision",
            "the guard the same write",
        ),
        (
            "S67",
            "3 times with its successor's claim beside its own; the resource refused it each time, as malformed",
            "the guard and the second claim the write that was refused",
        ),
        (
            "S69",
            "without its Fencing-Token, as a proxy takes out what Connection names; the resource refused it, as missing",
            "the guard and the proxy the same write",
        ),
    ] {
        assert_eq!(
            pair(&|half| altered(scenario, half)),
            format!("{cut} {how}. Without {without} went through: order-7 part 1 was refunded twice.")
        );
    }
    let rightly = "with token …689; the resource accepted it, and rightly: nobody newer had been in touch.";
    assert_eq!(
        told(Verdict::Held, vec![repeated()]),
        format!(
            "H1 sent its write and was answered. The path sent H1's answered write again, with token …689; the resource knew \
             it, gave the answer of the first time, and did nothing more. H1 sent its write {rightly}"
        )
    );
    for (scenario, how, why) in [
        ("S47", "with what is no token", "malformed"),
        ("S48", "without a whole token", "missing"),
    ] {
        assert_eq!(
            told(Verdict::Held, vec![closed(scenario)]),
            format!(
                "H1 sent its write; all of it was held on its way for 30 ms. The path sent H1's write again twice {how}; the \
                 resource refused it each time, as {why}. Then the rest of H1's write arrived, {rightly}"
            )
        );
    }
}

#[test]
fn what_the_path_sent_is_drawn_as_the_paths_and_a_known_write_as_known() {
    let page = drawing([(Verdict::Proven, vec![replayed(Half::Guarded)])]).page();
    let steps = between(&page, "<span class=\"what\">", "</summary>");
    let again = "The path sends H1's late write again, with token …689";
    let drawn = steps.iter().filter(|step| step.contains(again)).count();
    assert_eq!(drawn, 2, "{steps:?}");
    let shots = between(&page, "<section class=\"meet\">", "</section>");
    assert!(shots[0].contains("known already"), "{}", shots[0]);
    let twice = drawing([(Verdict::Proven, vec![altered("S67", Half::Guarded)])]).page();
    assert!(
        between(&twice, "<main", "</main>")
            .concat()
            .contains("token …689 and …690")
    );
}
