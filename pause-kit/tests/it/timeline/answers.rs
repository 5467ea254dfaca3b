//! What the page says where an answer was held on its way.

use pause_kit::evidence::Verdict;
use pause_kit::history::Half;

use super::{between, drawing};
use crate::judge::answers;

#[test]
fn an_answer_that_was_held_is_told_by_what_it_kept_from_whom() {
    let halves = vec![answers::between(Half::Guarded), answers::between(Half::Defeated)];
    let page = drawing([(Verdict::Proven, halves)]).page();
    assert_eq!(
        between(&page, "<p class=\"story\">", "</p>").concat(),
        "H1 sent its write, and its token passed the door; PostgreSQL had begun the resource's transaction, and its answer was \
         held on its way. The resource was stopped for 32 ms. H1's lease was revoked; H2 was granted token …690, raised the \
         mark, read and wrote. The resource went on with H1's write, with token …689; the resource refused it, because it had \
         seen …690. Without the guard the same write went through: order-7 part 1 was refunded twice."
    );
    let steps = between(&page, "<span class=\"what\">", "</summary>");
    let drawn = |text: &str| steps.iter().filter(|step| step.contains(text)).count();
    assert_eq!(
        drawn("The path holds PostgreSQL's answer to the resource for H1's late write"),
        2
    );
    assert_eq!(
        drawn("The path lets PostgreSQL's answer to the resource for H1's late write go"),
        2
    );
}

#[test]
fn an_answer_that_never_came_is_told_as_unknown_and_who_found_the_write() {
    let page = drawing([(Verdict::Held, vec![answers::lost()])]).page();
    let cut_off = "The resource was stopped for 11 ms. H1 was cut off without an answer.";
    assert_eq!(
        between(&page, "<p class=\"story\">", "</p>").concat(),
        format!(
            "H1 sent its write; it was committed, and PostgreSQL's answer was held on its way. {cut_off} H1 sent its write; it \
             was committed and answered, and the answer was held on its way. {} H2 was granted token …690, raised the mark \
             and read.",
            cut_off.replace("The resource", "H1")
        )
    );
    let shots = between(&page, "<section class=\"meet\">", "</section>").concat();
    assert!(
        !shots.contains("refused") && !shots.contains("not done"),
        "{shots}"
    );
    assert_eq!(shots.matches("not known").count(), 2, "{shots}");
}
