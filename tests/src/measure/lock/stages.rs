//! What is timed: single locks, many keys at once, a steady rate, a line of waiters, a token's read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fence_core::Key;
use fence_lock::{EtcdStore, Keys, Session};
use pause_kit::services::{Child, ProcessSpec, Services, free_port, locate};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{class, counted, key};
use crate::measure::Failure;

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A cluster of three members, on this machine's disk.
pub(super) struct Cluster {
    _members: Vec<Child>,
    pub(super) endpoints: Vec<String>,
}

impl Cluster {
    pub(super) async fn start(services: &Services) -> Result<Cluster, Failure> {
        let program = locate::etcd()?;
        let url = || Ok::<_, Failure>(format!("http://127.0.0.1:{}", free_port()?));
        let endpoints = [url()?, url()?, url()?].to_vec();
        let peers = [url()?, url()?, url()?];
        let all: Vec<String> = (0..3)
            .map(|number| format!("m{number}={}", peers[number]))
            .collect();
        let mut members = Vec::new();
        for number in 0..3 {
            let (client, peer) = (&endpoints[number], &peers[number]);
            let spec = ProcessSpec::new(&format!("etcd-m{number}"), &program)
                .args([
                    format!("--name=m{number}"),
                    format!(
                        "--data-dir={}",
                        services.folder().join(format!("m{number}")).display()
                    ),
                    format!("--listen-client-urls={client}"),
                    format!("--advertise-client-urls={client}"),
                    format!("--listen-peer-urls={peer}"),
                    format!("--initial-advertise-peer-urls={peer}"),
                    format!("--initial-cluster={}", all.join(",")),
                ])
                .env(
                    "ETCD_UNSUPPORTED_ARCH",
                    if cfg!(target_arch = "aarch64") {
                        "arm64"
                    } else {
                        ""
                    },
                );
            members.push(services.spawn(spec).await?);
        }
        for endpoint in &endpoints {
            healthy(endpoint).await?;
        }
        Ok(Cluster {
            _members: members,
            endpoints,
        })
    }
}

async fn healthy(endpoint: &str) -> Result<(), Failure> {
    for _ in 0..3000 {
        if let Ok(answer) = reqwest::get(format!("{endpoint}/health")).await
            && answer.text().await.unwrap_or_default().contains("true")
        {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err(format!("{endpoint} is not healthy").into())
}

/// A key that nobody has locked.
fn fresh() -> Result<Key, Failure> {
    key(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// How long so many acquisitions and releases take, one after the other.
pub(super) async fn singly(session: &Session, count: u32) -> Result<Duration, Failure> {
    let class = class()?;
    let began = Instant::now();
    for _ in 0..count {
        let hold = session.acquire(&class, &fresh()?).await?;
        let _ = hold.release().await?;
    }
    Ok(began.elapsed())
}

/// How long one acquisition and release of so many keys takes.
pub(super) async fn together(session: &Session, count: u32) -> Result<Duration, Failure> {
    let keys: Vec<Key> = (0..count).map(|_| fresh()).collect::<Result<_, _>>()?;
    let (class, keys) = (class()?, Keys::new(keys)?);
    let began = Instant::now();
    let hold = session.acquire_all(&class, keys).await?;
    let _ = hold.release().await?;
    Ok(began.elapsed())
}

/// Grants at a steady rate, whatever the store does: how long each was waited for, counted from when it was due, sorted.
pub(super) async fn steadily(
    session: &Session,
    rate: u32,
    lasting: Duration,
) -> Result<Vec<Duration>, Failure> {
    let mut running = JoinSet::new();
    let (began, apart) = (tokio::time::Instant::now(), Duration::from_secs(1) / rate);
    let count = u32::try_from(lasting.as_millis())? * rate / 1000;
    for number in 0..count {
        let due = began + apart * number;
        tokio::time::sleep_until(due).await;
        let session = session.clone();
        running.spawn(async move {
            let hold = session.acquire(&class()?, &fresh()?).await?;
            let waited = due.elapsed();
            let _ = hold.release().await?;
            Ok::<_, Failure>(waited)
        });
    }
    let mut waited = Vec::new();
    while let Some(one) = running.join_next().await {
        waited.push(one??);
    }
    waited.sort();
    Ok(waited)
}

/// Hand-overs of one lock in a line of waiters whose length stays.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// From one grant to the next.
    pub(super) each: Duration,
    /// Messages that the member received for each.
    pub(super) messages: f64,
}

pub(super) async fn in_line(
    store: &EtcdStore,
    session: &Session,
    endpoint: &str,
    waiters: usize,
    hand_overs: usize,
) -> Result<Line, Failure> {
    let (class, wanted) = (class()?, fresh()?);
    let first = session.acquire(&class, &wanted).await?;
    let granted = Arc::new(AtomicUsize::new(0));
    let enough = watch::Sender::new(false);
    let mut line = JoinSet::new();
    for number in 0..waiters {
        // In portions, as they would come: each has its answer in time.
        if number % 50 == 0 {
            while waiting(store).await? < number {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        let (session, class, wanted) = (session.clone(), class.clone(), wanted.clone());
        let (granted, mut over) = (Arc::clone(&granted), enough.subscribe());
        line.spawn(async move {
            loop {
                let hold = tokio::select! {
                    _ = over.wait_for(|over| *over) => return Ok::<_, Failure>(()),
                    hold = session.acquire(&class, &wanted) => hold?,
                };
                granted.fetch_add(1, Ordering::SeqCst);
                let _ = hold.release().await?;
            }
        });
    }
    while waiting(store).await? < waiters {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let messages = "grpc_server_msg_received_total";
    let before = counted(endpoint, messages, &[]).await?;
    let began = Instant::now();
    let _ = first.release().await?;
    while granted.load(Ordering::SeqCst) < hand_overs {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (took, done) = (began.elapsed(), granted.load(Ordering::SeqCst));
    let received = counted(endpoint, messages, &[]).await? - before;
    enough.send_replace(true);
    while let Some(one) = line.join_next().await {
        one??;
    }
    // What was given up is gone before the next line forms.
    while waiting(store).await? > 0 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(Line {
        each: took / u32::try_from(done)?,
        messages: received / f64::from(u32::try_from(done)?),
    })
}

async fn waiting(store: &EtcdStore) -> Result<usize, Failure> {
    Ok(store.locks().await?.iter().map(|lock| lock.waiting.len()).sum())
}

/// Nanoseconds that a read of the token from a live hold takes: the least of several rounds.
pub(super) async fn reads(session: &Session) -> Result<f64, Failure> {
    const READS: u32 = 1_000_000;
    let hold = session.acquire(&class()?, &fresh()?).await?;
    let mut least = f64::INFINITY;
    for _ in 0..5 {
        let began = Instant::now();
        for _ in 0..READS {
            std::hint::black_box(hold.token()?);
        }
        #[expect(clippy::cast_precision_loss, reason = "seconds in nanoseconds have 53 bits")]
        let each = began.elapsed().as_nanos() as f64 / f64::from(READS);
        least = least.min(each);
    }
    let _ = hold.release().await?;
    Ok(least)
}
