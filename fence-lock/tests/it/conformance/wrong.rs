//! Stores that are wrong on purpose, each in one way. The suite must fail each by the case named beforehand.

mod mistakes;
mod shell;

use fence_lock::conformance::run;

use mistakes::Mistake;
use shell::WrongBench;

/// Every mistake, and the case that must find it.
const NAMED: [(Mistake, &str); 10] = [
    (Mistake::TokenFromARead, "token-of-a-waiter"),
    (Mistake::TokensFall, "tokens-rise"),
    (Mistake::ReleaseByName, "release-own-only"),
    (Mistake::GivenUpLands, "given-up-on-its-way"),
    (Mistake::BreaksStaleLocks, "one-heir"),
    (Mistake::WaiterOpensANewLease, "waiter-lapses"),
    (Mistake::LossKeepsHolds, "session-loss"),
    (Mistake::QueuesAnew, "first-come"),
    (Mistake::KeyByKey, "several-all-or-none"),
    (Mistake::UnconfirmedGrant, "lost-before-confirmed"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_suite_fails_every_wrong_store_by_the_case_named_beforehand() {
    let mut runs = Vec::new();
    for (mistake, named) in NAMED {
        runs.push(tokio::spawn(async move {
            let report = run(&WrongBench(Some(mistake))).await;
            assert!(
                report.broken().contains(&named),
                "{mistake:?} was not found by {named}\n{report}"
            );
            println!("{mistake:?}: failed by {}", report.broken().join(", "));
        }));
    }
    for run in runs {
        if let Err(error) = run.await {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_shell_around_a_wrong_store_is_not_what_the_suite_fails() {
    let report = run(&WrongBench(None)).await;
    assert!(report.conforms(), "\n{report}");
}
