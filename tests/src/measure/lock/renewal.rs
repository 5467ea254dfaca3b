//! Ten thousand holds on one session cost the keepalives of one lease.

use std::time::Duration;

use fence_core::Ttl;
use fence_lock::{Hold, Session};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::{block_on, class, counted, key, new_etcd, services, trial};
use crate::measure::{Failure, Figure};

const HOLDS: usize = 10_000;

/// How long the keepalives are counted; a shorter while in a trial.
const MINUTE: Duration = Duration::from_secs(60);

/// What a process sends besides, however many holds it has: every 10 s it looks at the store and writes a link of its lineage,
/// in three messages.
const LINK_EVERY: Duration = Duration::from_secs(10);
const LINK: f64 = 3.0;

pub(crate) fn lock_renewal() -> Result<Figure, Failure> {
    block_on(run())
}

async fn run() -> Result<Figure, Failure> {
    let tried = trial()?;
    let holds = tried.unwrap_or(HOLDS);
    let services = services(false, &["many", "one"]).await?;
    let many = services.etcd("many").ok_or("no etcd")?.endpoint();
    let one = services.etcd("one").ok_or("no etcd")?.endpoint();
    let (crowded, held) = session_with(&many, holds).await?;
    let (lonely, _hold) = session_with(&one, 1).await?;
    // The first one opens its stream, and asks for the TTL besides.
    for endpoint in [&many, &one] {
        while keepalives(endpoint).await? < 2.0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    let before = [keepalives(&many).await?, keepalives(&one).await?];
    let all_before = received(&many).await?;
    let while_counted = if tried.is_some() { MINUTE / 6 } else { MINUTE };
    tokio::time::sleep(while_counted).await;
    let (with_many, with_one) = (
        keepalives(&many).await? - before[0],
        keepalives(&one).await? - before[1],
    );
    let others = received(&many).await? - all_before - with_many;
    let live = held.iter().filter(|hold| hold.token().is_ok()).count();
    println!(
        "{with_many} keepalives for {holds} holds and {with_one} for 1 in {while_counted:?}; other messages: {others}; {live} holds live"
    );
    crowded.close().await?;
    lonely.close().await?;
    let same = (with_many - with_one).abs() <= 1.0 && with_one > 0.0;
    let links = while_counted.as_secs_f64() / LINK_EVERY.as_secs_f64() + 1.0;
    Ok(Figure {
        line: format!(
            "{holds} holds on one session: {with_many} keepalive messages a minute, {with_one} with one hold, read at the server"
        ),
        reached: same && others <= links * LINK && live == holds && holds >= HOLDS && tried.is_none(),
    })
}

async fn session_with(endpoint: &str, holds: usize) -> Result<(Session, Vec<Hold>), Failure> {
    let store = new_etcd(endpoint).await?;
    let session = Session::open(store, Ttl::default()).await?;
    let held = stream::iter(0..holds)
        .map(|number| {
            let session = session.clone();
            async move { Ok::<_, Failure>(session.acquire(&class()?, &key(number)?).await?) }
        })
        .buffer_unordered(64)
        .try_collect()
        .await?;
    Ok((session, held))
}

async fn keepalives(endpoint: &str) -> Result<f64, Failure> {
    counted(endpoint, "grpc_server_msg_received_total", &["LeaseKeepAlive"]).await
}

async fn received(endpoint: &str) -> Result<f64, Failure> {
    counted(endpoint, "grpc_server_msg_received_total", &[]).await
}
