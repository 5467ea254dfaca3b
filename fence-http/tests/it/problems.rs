//! Problem details: one type and one status each, and no number that a reader could round.

use fence_core::{MissingPart, Refusal, Token};
use fence_http::{Problem, ProblemKind};
use http::header::RETRY_AFTER;

use super::*;

const KINDS: [(ProblemKind, u16); 15] = [
    (ProblemKind::MissingToken, 428),
    (ProblemKind::MissingGrant, 428),
    (ProblemKind::Malformed, 400),
    (ProblemKind::MoreThanOne, 400),
    (ProblemKind::MalformedKey, 400),
    (ProblemKind::Stale, 412),
    (ProblemKind::Collision, 412),
    (ProblemKind::UnknownEpoch, 409),
    (ProblemKind::Blocked, 503),
    (ProblemKind::Retryable, 503),
    (ProblemKind::Unavailable, 503),
    (ProblemKind::UnknownOutcome, 500),
    (ProblemKind::NoRule, 404),
    (ProblemKind::NoReceipt, 500),
    (ProblemKind::Misconfigured, 500),
];

#[test]
fn each_kind_has_its_own_type_and_its_status() {
    let mut types = std::collections::BTreeSet::new();
    for (kind, status) in KINDS {
        assert_eq!(kind.status().as_u16(), status, "{kind:?}");
        assert!(types.insert(kind.uri()), "{kind:?} shares its type");
        assert_eq!(ProblemKind::from_uri(kind.uri()), Some(kind));
    }
    assert_eq!(ProblemKind::ALL.map(|kind| kind.uri()).len(), types.len());
    assert_eq!(ProblemKind::from_uri("urn:fence:problem:other"), None);
}

#[test]
fn only_a_503_says_when_to_come_back() {
    for (kind, status) in KINDS {
        let response: Response<Body> = Problem::new(kind, "x").into_response();
        let retry_after = response
            .headers()
            .get(RETRY_AFTER)
            .map(|value| value.to_str().unwrap());
        assert_eq!(retry_after, (status == 503).then_some("1"), "{kind:?}");
    }
}

#[tokio::test]
async fn refusals_become_their_problems_and_echo_no_mark() {
    // Epoch 32, revision 1 and 2: doubles cannot tell the two apart.
    let presented = Token::new(9_007_199_254_740_993).unwrap();
    let seen = Token::new(9_007_199_254_740_994).unwrap();
    for (refusal, status, kind) in [
        (Refusal::Stale { presented, seen }, 412, "stale"),
        (Refusal::Collision { token: presented }, 412, "collision"),
        (Refusal::UnknownEpoch { presented }, 409, "unknown-epoch"),
        (Refusal::Missing(MissingPart::Token), 428, "missing-token"),
        (Refusal::Missing(MissingPart::GrantId), 428, "missing-grant"),
        (Refusal::Malformed, 400, "malformed"),
    ] {
        let response: Response<Body> = Problem::from(&refusal).into_response();
        let body = problem(response, StatusCode::from_u16(status).unwrap(), kind).await;
        assert!(
            !body.to_string().contains(&seen.to_string()),
            "{body} echoes the mark"
        );
        if status == 412 || status == 409 {
            assert_eq!(body["presented"], "9007199254740993", "a string, digit for digit");
        }
    }
}
