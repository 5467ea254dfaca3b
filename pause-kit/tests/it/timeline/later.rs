//! What the page says of a write that the resource accepted for later.

use pause_kit::evidence::Verdict;
use pause_kit::history::Half;

use super::{between, drawing};
use crate::judge::later::made_later;

#[test]
fn a_write_that_a_worker_makes_later_is_told_as_its_holders() {
    let halves = vec![made_later(Half::Guarded), made_later(Half::Defeated)];
    let page = drawing([(Verdict::Proven, halves)]).page();
    assert_eq!(
        between(&page, "<p class=\"story\">", "</p>").concat(),
        "H1 sent its write; the resource accepted it, to make it later. H1's lease was revoked; H2 was granted token …690, \
         raised the mark, read and wrote. The resource's worker was started. It came to H1's write, with token …689; \
         PostgreSQL refused it, because it had seen …690. Without the guard the same write went through: order-7 part 1 was \
         refunded twice."
    );
    let steps = between(&page, "<span class=\"what\">", "</summary>");
    let drawn = |text: &str| steps.iter().filter(|step| step.contains(text)).count();
    for step in [
        "H1 sends its write with token …689 accepted for later (HTTP 202)",
        "The resource's worker is started",
        "The worker makes H1's late write with token …689",
    ] {
        assert_eq!(drawn(step), 2, "{step}: {steps:#?}");
    }
    let shots = between(&page, "<section class=\"meet\">", "</section>").concat();
    assert!(
        shots.contains("H1&#8217;s late write") || shots.contains("H1’s late write"),
        "{shots}"
    );
}
