//! What the page says where a COMMIT was held, where the lock store was stopped or gone, and where a holder could not be stopped.

use pause_kit::evidence::Verdict;
use pause_kit::history::Half;

use super::{between, drawing};
use crate::judge::tape::Tape;
use crate::judge::{store, uncommitted};

fn story(verdict: Verdict, halves: Vec<Tape>) -> String {
    between(
        &drawing([(verdict, halves)]).page(),
        "<p class=\"story\">",
        "</p>",
    )
    .concat()
}

const HELD: &str = "H1 sent its write; it was made, and the resource's COMMIT was held on its way.";

#[test]
fn a_commit_that_was_held_is_told_with_who_waited_for_it_and_what_became_of_it() {
    let halves = vec![
        uncommitted::client_stopped(Half::Guarded),
        uncommitted::client_stopped(Half::Defeated),
    ];
    assert_eq!(
        story(Verdict::Proven, halves),
        format!(
            "{HELD} The resource was stopped for 32 ms. H1's lease was revoked; H2 was granted token …690. H2's raise of the mark \
             came to this: blocked: an older transaction is in the way (HTTP 503). H3 was granted token …691, raised the mark, \
             read and wrote. The COMMIT was let go, and H1's write came to this: not done (HTTP 503). The path sent H1's \
             answered write again, with token …689; the resource refused it, because it had seen …691. Without the guard and its \
             bounds, H2's raise of the mark (token …690) was kept waiting for 3.001 s; the bound with its slack is 2.500 s."
        )
    );
    assert_eq!(
        story(Verdict::Held, vec![uncommitted::backend_stopped()]),
        format!(
            "{HELD} The database's backend was stopped for 22 ms. H1's lease was revoked; H2 was granted token …690. H2 went to \
             raise the mark with token …690; it came to this: blocked: an older transaction is in the way (HTTP 503). The \
             COMMIT was let go, and H1's write came to this: accepted (HTTP 201). H3 was granted token …691, raised the mark and \
             read."
        )
    );
    assert_eq!(
        story(Verdict::Held, vec![uncommitted::commit_failed()]),
        "A statement failed (22012) in H1's transaction, of which H1 heard nothing. H1 sent its write with token …689; it came to \
         this: not done (22012). H2 was granted token …690 and wrote."
    );
}

#[test]
fn a_lock_store_that_was_stopped_or_killed_is_told() {
    let halves = vec![store::stopped(Half::Guarded), store::stopped(Half::Defeated)];
    assert_eq!(
        story(Verdict::Proven, halves),
        "The lock store was stopped for 26 ms. A keepalive of H1's came to lie unread in its socket. H1's lease ran out; H2 was \
         granted token …690, raised the mark, read and wrote. H1 sent its write with token …689; the resource refused it, because \
         it had seen …690. Without the guard the same write went through: order-7 part 1 was refunded twice."
    );
    assert_eq!(
        story(Verdict::Held, vec![store::gone()]),
        "H1 was stopped for 31 ms. H1's lease was revoked; H2 was granted token …690, raised the mark, read and wrote. The lock \
         store was killed. H1 woke up and sent its write with token …689; the resource refused it, because it had seen …690. H2 \
         sent its write with token …690; the resource accepted it, and rightly: nobody newer had been in touch."
    );
}

#[test]
fn a_holder_that_could_not_be_stopped_is_told_with_what_that_means() {
    assert_eq!(
        story(Verdict::Held, vec![store::unstoppable()]),
        "H1 was to be stopped and could not be, so that the run is void, as it must be."
    );
}
