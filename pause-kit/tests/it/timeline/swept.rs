//! What the page says of a byte sweep.

use pause_kit::evidence::Verdict;
use pause_kit::history::Half;

use super::{between, drawing};
use crate::judge::swept::swept;

#[test]
fn a_sweep_is_told_once_for_all_its_writes_and_drawn_by_the_first_and_the_last() {
    let halves = vec![swept(Half::Guarded), swept(Half::Defeated)];
    let page = drawing([(Verdict::Proven, halves)]).page();
    assert_eq!(
        between(&page, "<p class=\"story\">", "</p>").concat(),
        "H1 sent 6 writes; of each another number of bytes was let through, from none to 5 of 6, and all the rest was held on \
         its way for 30 ms. H1's lease was revoked; H2 was granted token …690, raised the mark, read and wrote. Then the rest \
         of each arrived, with token …689; the resource refused 6 of 6, because it had seen …690. Without the guard the same \
         6 writes went through: order-7 part 1 was refunded twice."
    );
    let shots = between(&page, "<section class=\"meet\">", "</section>");
    assert_eq!(shots[0].matches("late write").count(), 1, "{}", shots[0]);
    let steps = between(&page, "<span class=\"what\">", "</summary>");
    let held = steps
        .iter()
        .filter(|step| step.contains("and holds the rest"))
        .count();
    assert_eq!(held, 4, "{steps:?}");
}
