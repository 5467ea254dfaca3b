use std::time::Duration;

use fence_core::{BootInstant, LeaseView, Phase, Ttl};
use proptest::prelude::*;

const fn at(millis: u64) -> BootInstant {
    BootInstant::from_nanos(millis * 1_000_000)
}

fn ttl(millis: u64) -> Ttl {
    Ttl::new(Duration::from_millis(millis)).unwrap()
}

#[test]
fn the_margin_is_a_tenth_but_never_under_a_quarter_second() {
    assert_eq!(ttl(2000).margin(), Duration::from_millis(250));
    assert_eq!(ttl(2500).margin(), Duration::from_millis(250));
    assert_eq!(ttl(10_000).margin(), Duration::from_secs(1));
    assert_eq!(ttl(10_000).deadline(at(500)), at(9500));
    assert_eq!(ttl(3000).keepalive_timeout(), Duration::from_secs(1));
}

#[test]
fn a_ttl_outside_its_range_is_refused_with_the_range() {
    assert_eq!(
        Ttl::from_secs(1).unwrap_err().to_string(),
        "a TTL is 2 s to 3600 s, got 1s"
    );
    assert!(Ttl::from_secs(3601).is_err());
    assert_eq!("10s".parse::<Ttl>().unwrap(), Ttl::default());
    assert_eq!("2500ms".parse::<Ttl>().unwrap().to_string(), "2500ms");
    assert_eq!(
        "10".parse::<Ttl>().unwrap_err().to_string(),
        "a TTL is written like 10s or 2500ms, got \"10\""
    );
    assert_eq!(
        "s".parse::<Ttl>().unwrap_err().to_string(),
        "a TTL is written like 10s or 2500ms, got \"s\""
    );
    assert!("+3s".parse::<Ttl>().is_err());
    assert_eq!(
        "500ms".parse::<Ttl>().unwrap_err().to_string(),
        "a TTL is 2 s to 3600 s, got 500ms"
    );
    assert!(serde_json::from_str::<Ttl>("10").is_err());
}

#[test]
fn a_failed_keepalive_drains_and_an_answered_one_ends_the_draining() {
    let mut lease = LeaseView::granted(at(0), ttl(10_000));
    assert_eq!(lease.phase(at(8999)), Phase::Live);
    lease.keepalive_failed();
    assert_eq!(lease.phase(at(4000)), Phase::Draining);
    lease.renewed(at(5000), at(4900), ttl(10_000));
    assert_eq!(lease.phase(at(5000)), Phase::Live);
    assert_eq!(lease.deadline(), at(13_900));
}

#[test]
fn the_deadline_counts_from_when_the_answered_keepalive_was_sent() {
    let mut lease = LeaseView::granted(at(0), ttl(10_000));
    lease.renewed(at(8000), at(3000), ttl(10_000));
    assert_eq!(lease.deadline(), at(12_000));
    assert_eq!(lease.phase(at(11_999)), Phase::Live);
    assert_eq!(lease.phase(at(12_000)), Phase::Fenced);
}

#[test]
fn a_renewal_heard_of_after_the_deadline_does_not_bring_the_hold_back() {
    let mut lease = LeaseView::granted(at(0), ttl(10_000));
    lease.renewed(at(9000), at(8999), ttl(10_000));
    assert_eq!(lease.phase(at(9000)), Phase::Fenced);
    assert_eq!(
        lease.phase(at(0)),
        Phase::Fenced,
        "fenced is terminal, whatever a clock says"
    );
}

#[test]
fn a_lease_that_the_store_calls_gone_is_fenced_at_once() {
    let mut lease = LeaseView::granted(at(0), ttl(10_000));
    lease.lease_gone();
    assert_eq!(lease.phase(at(1)), Phase::Fenced);
    lease.renewed(at(2), at(1), ttl(10_000));
    assert_eq!(lease.phase(at(2)), Phase::Fenced);
}

#[test]
fn arithmetic_at_the_end_of_time_saturates_instead_of_wrapping() {
    let end = BootInstant::from_nanos(u64::MAX);
    assert_eq!(end.after(Duration::from_secs(1)), end);
    assert_eq!(end.until(at(0)), Duration::ZERO);
    assert_eq!(at(1000).until(at(3000)), Duration::from_secs(2));
}

#[derive(Clone, Debug)]
enum Happened {
    Renewed { sent_ago: u64 },
    Failed,
}

proptest! {
    /// The law the hold rests on: a store that keeps a lease for its TTL from when it heard the keepalive, which is never
    /// before it was sent, has not let it lapse while the holder may still read its token.
    #[test]
    fn the_holder_stops_at_least_a_margin_before_the_store_lets_go(
        millis in 2000..60_000u64,
        events in prop::collection::vec((0..5000u64, prop_oneof![
            (0..3000u64).prop_map(|sent_ago| Happened::Renewed { sent_ago }),
            Just(Happened::Failed),
        ]), 0..40),
        delay in 0..2000u64,
    ) {
        let ttl = ttl(millis);
        let mut now = 0;
        let mut lease = LeaseView::granted(at(0), ttl);
        let mut store_keeps_until = at(0).after(ttl.as_duration());
        for (later, event) in events {
            let before = now;
            now += later;
            if let Happened::Renewed { sent_ago } = event {
                let sent = now.saturating_sub(sent_ago).max(before);
                let heard = (sent + delay).min(now);
                if at(heard) < store_keeps_until {
                    store_keeps_until = store_keeps_until.max(at(heard).after(ttl.as_duration()));
                    lease.renewed(at(now), at(sent), ttl);
                }
            } else {
                lease.keepalive_failed();
            }
            prop_assert!(lease.deadline().after(ttl.margin()) <= store_keeps_until);
            if at(now) >= store_keeps_until {
                prop_assert_eq!(lease.phase(at(now)), Phase::Fenced);
            }
        }
    }
}
