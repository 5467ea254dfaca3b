use fence_core::{
    Decision, Epoch, GrantId, Mark, MissingPart, Presented, Ranges, Refusal, Revision, Token, TokenRange,
    admit,
};
use proptest::prelude::*;

fn token(number: i64) -> Token {
    Token::new(number).unwrap()
}

fn minted(epoch: u16, revision: u64) -> Token {
    Token::mint(Epoch::new(epoch).unwrap(), Revision::new(revision).unwrap())
}

fn grant(id: &str) -> Option<GrantId> {
    Some(GrantId::new(id).unwrap())
}

fn epoch_1() -> Ranges {
    Ranges::Registered(vec![TokenRange::of_epoch(Epoch::FIRST, None).unwrap()])
}

#[test]
fn the_truth_table_holds_row_by_row() {
    let low = minted(1, 33);
    let seen = minted(1, 34);
    let high = minted(1, 35);
    let outside = minted(2, 1);
    let mark = Mark {
        token: seen,
        grant_id: grant("b"),
    };
    let raised = |token| {
        Decision::Raise(Mark {
            token,
            grant_id: grant("a"),
        })
    };
    let refused = Decision::Refuse;
    for (row, mark, presented, decision) in [
        (
            "lower",
            Some(&mark),
            Presented::Token(low, grant("a")),
            refused(Refusal::Stale { presented: low, seen }),
        ),
        (
            "lower, same grant id",
            Some(&mark),
            Presented::Token(low, grant("b")),
            refused(Refusal::Stale { presented: low, seen }),
        ),
        (
            "equal, same grant",
            Some(&mark),
            Presented::Token(seen, grant("b")),
            Decision::Admit,
        ),
        (
            "equal, another grant",
            Some(&mark),
            Presented::Token(seen, grant("a")),
            refused(Refusal::Collision { token: seen }),
        ),
        (
            "higher, in range",
            Some(&mark),
            Presented::Token(high, grant("a")),
            raised(high),
        ),
        (
            "higher, out of range",
            Some(&mark),
            Presented::Token(outside, grant("a")),
            refused(Refusal::UnknownEpoch { presented: outside }),
        ),
        (
            "first, in range",
            None,
            Presented::Token(low, grant("a")),
            raised(low),
        ),
        (
            "first, below every range",
            None,
            Presented::Token(token(5), grant("a")),
            refused(Refusal::UnknownEpoch { presented: token(5) }),
        ),
        (
            "absent",
            Some(&mark),
            Presented::Absent,
            refused(Refusal::Missing(MissingPart::Token)),
        ),
        (
            "without a grant id",
            Some(&mark),
            Presented::Token(high, None),
            refused(Refusal::Missing(MissingPart::GrantId)),
        ),
        (
            "malformed",
            Some(&mark),
            Presented::Malformed,
            refused(Refusal::Malformed),
        ),
    ] {
        assert_eq!(admit(mark, &epoch_1(), &presented), decision, "{row}");
    }
}

#[test]
fn an_open_class_takes_any_token_in_order_and_looks_at_no_grant_id() {
    let mark = Mark {
        token: token(34),
        grant_id: None,
    };
    let open = |n, id: Option<GrantId>| admit(Some(&mark), &Ranges::Open, &Presented::Token(token(n), id));
    assert_eq!(open(34, None), Decision::Admit);
    assert_eq!(open(34, grant("z")), Decision::Admit);
    assert_eq!(
        open(i64::MAX, None),
        Decision::Raise(Mark {
            token: Token::MAX,
            grant_id: None
        })
    );
    assert_eq!(
        open(35, grant("z")),
        Decision::Raise(Mark {
            token: token(35),
            grant_id: None
        })
    );
    assert_eq!(
        open(33, None),
        Decision::Refuse(Refusal::Stale {
            presented: token(33),
            seen: token(34)
        })
    );
}

#[test]
fn a_ceiling_closes_the_range_above_it_and_must_lie_inside_the_epoch() {
    let ceiling = minted(1, 1000);
    let ranges = Ranges::Registered(vec![TokenRange::of_epoch(Epoch::FIRST, Some(ceiling)).unwrap()]);
    let at = |t| admit(None, &ranges, &Presented::Token(t, grant("a")));
    assert_eq!(
        at(ceiling),
        Decision::Raise(Mark {
            token: ceiling,
            grant_id: grant("a")
        })
    );
    let above = minted(1, 1001);
    assert_eq!(
        at(above),
        Decision::Refuse(Refusal::UnknownEpoch { presented: above })
    );
    let error = TokenRange::of_epoch(Epoch::FIRST, Some(minted(2, 1))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ceiling 562949953421313 is no token of epoch 1"
    );
}

proptest! {
    /// The laws of any sequence of claims: the mark never falls, nothing below it is admitted, an admitted token is the
    /// mark afterwards, and a refusal changes nothing.
    #[test]
    fn the_mark_never_falls(claims in prop::collection::vec((1..3u16, 1..6u64, 0..3usize), 1..60)) {
        let ranges = epoch_1();
        let mut mark: Option<Mark> = None;
        for (epoch, revision, id) in claims {
            let presented = minted(epoch, revision);
            let id = grant(["a", "b", "c"][id]);
            let before = mark.clone();
            match admit(mark.as_ref(), &ranges, &Presented::Token(presented, id.clone())) {
                Decision::Admit => prop_assert_eq!(before.unwrap(), Mark { token: presented, grant_id: id }),
                Decision::Raise(raised) => {
                    prop_assert_eq!(&raised, &Mark { token: presented, grant_id: id });
                    prop_assert!(before.is_none_or(|seen| seen.token.as_i64() < presented.as_i64()));
                    prop_assert_eq!(presented.split().unwrap().0, Epoch::FIRST);
                    mark = Some(raised);
                }
                Decision::Refuse(Refusal::Stale { seen, .. }) => {
                    let mark = before.unwrap();
                    prop_assert_eq!(seen, mark.token);
                    prop_assert!(presented.as_i64() < seen.as_i64());
                }
                Decision::Refuse(Refusal::Collision { token }) => {
                    let mark = before.unwrap();
                    prop_assert_eq!(token, mark.token);
                    prop_assert_ne!(id, mark.grant_id);
                }
                Decision::Refuse(Refusal::UnknownEpoch { .. }) => prop_assert_eq!(epoch, 2),
                Decision::Refuse(other) => prop_assert!(false, "unexpected {other}"),
            }
        }
    }
}
