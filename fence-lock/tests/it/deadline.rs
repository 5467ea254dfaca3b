//! Until when a hold may be used: the signals that end it, and the deadline that comes before the next grant.

use std::time::Duration;

use fence_core::{Phase, Ttl};
use fence_lock::{AcquireError, EtcdStore, Hold, NotHeld, Revoked, Session, SessionConfig};

use crate::clock::{ManualClock, SkewedClock, now};
use crate::proxy::Proxy;
use crate::support::{
    Etcd, class, endpoint, fresh_prefix, key, session, session_of, store, store_at, store_in, ttl,
};

/// A hold of a session that reaches etcd through a path of its own, and a store that reaches it directly.
struct Behind {
    proxy: Proxy,
    direct: EtcdStore,
    session: Session,
    hold: Hold,
}

async fn behind_a_proxy(ttl: Ttl) -> Behind {
    behind_a_proxy_with(SessionConfig::new(ttl)).await
}

async fn behind_a_proxy_with(config: SessionConfig) -> Behind {
    let prefix = fresh_prefix();
    let direct = store_in(&prefix).await;
    let proxy = Proxy::to(&endpoint().await).await;
    let store = store_at(&proxy.endpoint(), &prefix).await;
    let session = Session::open_with(store, config).await.unwrap();
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    Behind {
        proxy,
        direct,
        session,
        hold,
    }
}

/// Waits until the session's keepalive has a stream of its own, and returns its connection.
async fn keepalive_stream(proxy: &Proxy) {
    until(|| proxy.connections().len() == 2 && proxy.connection(1).answered() > 0).await;
}

async fn until(mut so: impl FnMut() -> bool) {
    for _ in 0..15_000 {
        if so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it never came to be");
}

/// The hold ends within its TTL, and the next holder comes after that.
async fn fenced_before_the_next_grant(direct: &EtcdStore, hold: &Hold) {
    let next = session(direct).await;
    let fenced = hold.lost();
    let (fenced_at, granted_at) = tokio::join!(
        async {
            fenced.await;
            let at = now();
            assert_eq!(hold.token(), Err(NotHeld::Fenced));
            assert_eq!(hold.phase(), Phase::Fenced);
            at
        },
        async {
            let next = next.acquire(&class(), &key("acct-1")).await.unwrap();
            let at = now();
            let _ = next.release().await.unwrap();
            at
        }
    );
    assert!(
        fenced_at < granted_at,
        "fenced {:?} after the next grant",
        granted_at.until(fenced_at)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_ends_between_two_keepalives_drains_the_hold_at_once() {
    let prefix = fresh_prefix();
    store_in(&prefix).await;
    let proxy = Proxy::to(&endpoint().await).await;
    let store = store_at(&proxy.endpoint(), &prefix).await;
    // Often enough for a stream soon, and then not for a long time.
    let config = SessionConfig::new(Ttl::from_secs(60).unwrap()).keepalive_every(Duration::from_secs(3));
    let session = Session::open_with(store, config).await.unwrap();
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    keepalive_stream(&proxy).await;
    proxy.refuse(true);
    proxy.cut();
    let began = now();
    until(|| hold.token() == Err(NotHeld::Draining)).await;
    assert!(
        began.until(now()) < Duration::from_secs(2),
        "only the next keepalive noticed"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_ends_and_stays_away_fences_before_the_next_grant() {
    let Behind {
        proxy,
        direct,
        session: _session,
        hold,
    } = behind_a_proxy(ttl()).await;
    keepalive_stream(&proxy).await;
    proxy.refuse(true);
    proxy.cut();
    fenced_before_the_next_grant(&direct, &hold).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_that_comes_back_in_time_ends_the_draining() {
    let ttl = Ttl::from_secs(4).unwrap();
    let Behind {
        proxy, session, hold, ..
    } = behind_a_proxy(ttl).await;
    keepalive_stream(&proxy).await;
    let token = hold.token().unwrap();
    proxy.refuse(true);
    proxy.cut();
    until(|| hold.phase() == Phase::Draining).await;
    proxy.refuse(false);
    until(|| hold.phase() == Phase::Live).await;
    // And the hold outlives the lease that it began with.
    let began = now();
    until(|| began.until(now()) > ttl.as_duration()).await;
    assert_eq!(hold.token(), Ok(token));
    session.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_drains_and_then_fences_before_the_next_grant() {
    let Behind {
        proxy,
        direct,
        session: _session,
        hold,
    } = behind_a_proxy(Ttl::from_secs(4).unwrap()).await;
    keepalive_stream(&proxy).await;
    proxy.silence();
    until(|| hold.token() == Err(NotHeld::Draining)).await;
    fenced_before_the_next_grant(&direct, &hold).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_keepalive_that_cannot_be_started_drains_and_then_fences() {
    let Behind {
        proxy,
        direct,
        session: _session,
        hold,
    } = behind_a_proxy(Ttl::from_secs(4).unwrap()).await;
    // Before the first keepalive.
    assert_eq!(proxy.connections().len(), 1);
    proxy.refuse(true);
    until(|| hold.token() == Err(NotHeld::Draining)).await;
    fenced_before_the_next_grant(&direct, &hold).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_lease_fences_the_hold_at_its_next_keepalive() {
    let long = Ttl::from_secs(60).unwrap();
    for already_streaming in [false, true] {
        let prefix = fresh_prefix();
        let direct = store_in(&prefix).await;
        let proxy = Proxy::to(&endpoint().await).await;
        let store = store_at(&proxy.endpoint(), &prefix).await;
        let config = SessionConfig::new(long).keepalive_every(Duration::from_millis(500));
        let session = Session::open_with(store, config).await.unwrap();
        let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
        if already_streaming {
            keepalive_stream(&proxy).await;
        }
        let revoked = direct
            .revoke_grant(&class(), &key("acct-1"), hold.grant_id())
            .await
            .unwrap();
        assert_eq!(revoked, Revoked::Revoked);
        // The deadline alone would have taken 54 s.
        let fenced = tokio::time::timeout(Duration::from_secs(20), hold.lost()).await;
        assert!(fenced.is_ok(), "not fenced, streaming: {already_streaming}");
        assert_eq!(hold.token(), Err(NotHeld::Fenced));
        let error = session.acquire(&class(), &key("acct-2")).await.unwrap_err();
        assert!(matches!(error, AcquireError::SessionOver), "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_outlives_a_restart_of_etcd_that_is_shorter_than_its_deadline() {
    let mut etcd = Etcd::start().await;
    let store = store_at(&etcd.endpoint(), "p").await;
    store.init(fence_core::Epoch::FIRST, "a test").await.unwrap();
    let session = Session::open(store.clone(), Ttl::from_secs(10).unwrap())
        .await
        .unwrap();
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    let token = hold.token().unwrap();
    etcd.kill().await;
    until_slowly(|| hold.phase() != Phase::Live).await;
    assert_eq!(hold.token(), Err(NotHeld::Draining));
    etcd.start_again().await;
    until_slowly(|| hold.phase() == Phase::Live).await;
    assert_eq!(hold.token(), Ok(token));
    assert_eq!(
        store
            .holder(&class(), &key("acct-1"))
            .await
            .unwrap()
            .unwrap()
            .grant_id,
        *hold.grant_id()
    );
    session.close().await.unwrap();
}

async fn until_slowly(mut so: impl FnMut() -> bool) {
    for _ in 0..1200 {
        if so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it never came to be");
}

#[tokio::test]
async fn a_runtime_that_was_blocked_past_the_lease_finds_its_hold_fenced() {
    let session = session_of(&store().await, ttl()).await;
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    assert!(hold.token().is_ok());
    // No task of this runtime runs meanwhile: neither the keepalive nor the deadline's timer.
    std::thread::sleep(ttl().as_duration() * 2);
    assert_eq!(hold.token(), Err(NotHeld::Fenced));
    assert_eq!(hold.claim(), Err(NotHeld::Fenced));
    hold.lost().await;
}

#[tokio::test]
async fn the_deadline_fences_while_a_keepalive_is_still_unanswered() {
    let prefix = fresh_prefix();
    store_in(&prefix).await;
    let proxy = Proxy::to(&endpoint().await).await;
    let store = store_at(&proxy.endpoint(), &prefix).await;
    let clock = ManualClock::new();
    let session = Session::open_with(store, SessionConfig::new(ttl()).clock(clock.clone()))
        .await
        .unwrap();
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    let token = hold.token().unwrap();
    proxy.silence();
    let nanosecond = Duration::from_nanos(1);
    clock.forward(ttl().as_duration() - ttl().margin() - nanosecond);
    assert_eq!(hold.token(), Ok(token));
    clock.forward(nanosecond);
    // Nobody looks: the hold's own timer has to tell.
    let fenced = tokio::time::timeout(Duration::from_secs(20), hold.lost()).await;
    assert!(fenced.is_ok(), "the deadline passed unnoticed");
    assert_eq!(hold.token(), Err(NotHeld::Fenced));
}

#[tokio::test]
async fn a_clock_that_jumps_forward_fences_at_the_first_look() {
    let clock = ManualClock::new();
    let config = SessionConfig::new(ttl()).clock(clock.clone());
    let session = Session::open_with(store().await, config).await.unwrap();
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    clock.forward(Duration::from_secs(3600));
    assert_eq!(hold.token(), Err(NotHeld::Fenced));
    // Fenced is for good: the clock cannot take it back.
    clock.back(Duration::from_secs(3600));
    assert_eq!(hold.token(), Err(NotHeld::Fenced));
}

#[tokio::test]
async fn a_clock_that_falls_fences_at_the_first_look() {
    let clock = ManualClock::new();
    let config = SessionConfig::new(ttl()).clock(clock.clone());
    let session = Session::open_with(store().await, config).await.unwrap();
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    clock.back(Duration::from_secs(3600));
    assert_eq!(hold.token(), Err(NotHeld::Fenced));
}

/// What no holder can see by itself, and the resource must refuse: the stale token is the smaller one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_frozen_clock_the_next_holder_has_the_larger_token() {
    let clock = ManualClock::new();
    let store = store().await;
    let config = SessionConfig::new(ttl()).clock(clock.clone());
    let frozen = Session::open_with(store.clone(), config).await.unwrap();
    let hold = frozen.acquire(&class(), &key("acct-1")).await.unwrap();
    let next = session(&store)
        .await
        .acquire(&class(), &key("acct-1"))
        .await
        .unwrap();
    let stale = hold.token().unwrap();
    assert!(stale.as_i64() < next.token().unwrap().as_i64());
    // Running again, it fences before it renews anything.
    clock.forward(Duration::from_secs(60));
    assert_eq!(hold.token(), Err(NotHeld::Fenced));
}

/// The margin, a tenth of the TTL, is there for this too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_is_slow_by_less_than_the_margin_fences_before_the_next_grant() {
    let config = SessionConfig::new(Ttl::from_secs(4).unwrap()).clock(SkewedClock::at(950));
    let Behind {
        proxy,
        direct,
        session: _session,
        hold,
    } = behind_a_proxy_with(config).await;
    keepalive_stream(&proxy).await;
    proxy.silence();
    fenced_before_the_next_grant(&direct, &hold).await;
}
