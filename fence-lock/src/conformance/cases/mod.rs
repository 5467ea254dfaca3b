//! The cases themselves.

mod expiry;
mod giving_up;
mod holds;
mod queue;
mod release;
mod session;
mod several;
mod tokens;

use super::case::Case;

macro_rules! cases {
    ($($name:literal, $play:path, $asserts:literal;)+) => {
        /// All of them, in the order in which they are reported.
        pub(super) const ALL: &[Case] = &[
            $(Case::new($name, $asserts, |place| Box::pin($play(place)))),+
        ];
    };
}

cases! {
    "tokens-rise", tokens::rise,
        "each grant of a key has a larger token than the one before, whoever is granted";
    "token-of-a-waiter", tokens::of_a_waiter,
        "a waiter's token is larger than that of every grant it waited for";
    "race-exact-sum", tokens::race,
        "a race of sessions and tasks adds up exactly, with rising tokens and never two holders";
    "one-session-two-tasks", tokens::one_session_two_tasks,
        "two attempts of one session exclude each other";
    "names-apart", tokens::names_apart,
        "locks whose names begin alike do not wait for each other";
    "lapse-frees", expiry::lapse,
        "a lease that nobody renews frees its lock after its TTL and not before";
    "renewals-hold", expiry::renewals_hold,
        "a lease that is renewed keeps its lock";
    "one-heir", expiry::one_heir,
        "of many waiters one inherits a lapsed lock";
    "waiter-lapses", expiry::waiter_lapses,
        "a waiter whose lease lapsed in the queue is never told that it holds, and stands in nobody's way";
    "release-own-only", release::own_only,
        "a release frees its own grant and no other, however often it is sent";
    "release-answer-lost", release::answer_lost,
        "a release whose answer was lost is sent again and leaves the next holder alone";
    "first-come", queue::first_come,
        "waiters are served in the order in which they queued";
    "no-overtaking", queue::no_overtaking,
        "a newcomer does not overtake a waiter that is slow to take its turn";
    "cancelled-waiter", queue::cancelled_waiter,
        "a waiter that is cancelled leaves the queue, is granted nothing, and breaks no chain";
    "given-up-on-its-way", giving_up::on_its_way,
        "an acquisition that was given up never lands on the living session";
    "given-up-landed", giving_up::landed,
        "an acquisition that landed while it was given up is taken back";
    "given-up-place", giving_up::place,
        "a place in the queue that was given up on its way is never taken";
    "lost-before-confirmed", giving_up::lost_before_confirmed,
        "a grant whose lease ended while its answer was held up is handed to nobody";
    "session-loss", session::loss,
        "a session that is ended takes every hold and every place with it, and is told so";
    "session-lapse", session::lapse,
        "a session that lapses takes every hold with it";
    "session-told", session::told,
        "a session whose lease was ended fences its holds at the next keepalive";
    "session-close", session::close_frees,
        "closing a session frees every hold at once; closing again is no error";
    "hold-dropped", holds::dropped,
        "a hold that is dropped stays locked for one full TTL, and comes free then";
    "hold-released", holds::released,
        "a hold gives its token while it lives, and its lock back when it is released";
    "hold-of-several", holds::several,
        "a hold of several keys claims each with one token, and frees all when it is released";
    "several-capability", several::capability,
        "as many keys as the store says are granted in one step, and one more is refused unsent";
    "several-all-or-none", several::all_or_none,
        "several keys are granted all or none, with one token, and none is held while one is missing";
    "several-crossing", several::crossing,
        "acquisitions that want the same keys in every order end, and add up exactly";
    "several-loss", several::loss,
        "several keys come free together, by release, by giving up and by the session's end";
}
