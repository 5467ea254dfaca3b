//! Malformed and ambiguous requests as raw bytes, valid ones among them; then headers and keys at random.

use std::time::Duration;

use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::super::{Failure, Figure};
use super::bed::{Bed, header};
use super::raw::{FROM, Raw, malformed, valid};
use super::{fuzz, is_trial, seed};

/// How many must be malformed or ambiguous, and how many valid ones are shuffled in.
const MALFORMED: usize = 300;
const VALID: usize = 50;

pub(in super::super) fn corpus() -> Result<Figure, Failure> {
    let seed = seed()?;
    println!("seed {seed}");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let answered = runtime.block_on(send_all(seed))?;
    let fuzzed = if is_trial() { 200_000 } else { 10_000_000 };
    let found = fuzz::fuzz(seed, fuzzed)?;
    Ok(Figure {
        line: format!(
            "seed {seed}: {} malformed or ambiguous requests and {VALID} valid ones, {} answered wrongly, {} written besides the \
             valid ones; {} headers and {} keys at random, {} let in, {} of them wrongly, 0 panics",
            answered.malformed,
            answered.wrong,
            answered.written.abs_diff(VALID as u64),
            found.headers,
            found.keys,
            found.let_in,
            found.wrong,
        ),
        reached: answered.malformed >= MALFORMED
            && answered.wrong == 0
            && answered.written == VALID as u64
            && found.wrong == 0
            && found.headers + found.keys >= fuzzed
            && found.let_in > 0,
    })
}

struct Answered {
    malformed: usize,
    wrong: usize,
    written: u64,
}

async fn send_all(seed: u64) -> Result<Answered, Failure> {
    let (bed, replica) = Bed::new(2, 1_000_000).await?;
    // The mark stands at the token that the good requests present.
    let raised = reqwest::Client::new()
        .post(format!("http://{}/accounts/{FROM}/fence", replica.address))
        .header("Fencing-Token", header(34))
        .send()
        .await?;
    raised.error_for_status()?;
    let mut all = malformed();
    let count = all.len();
    all.extend((0..VALID).map(valid));
    all.shuffle(&mut ChaCha8Rng::seed_from_u64(seed));
    let mut wrong = 0;
    for raw in &all {
        let status = exchange(&replica.address, raw).await?;
        if !status.is_some_and(|status| raw.right.contains(&status)) {
            wrong += 1;
            println!(
                "wrong: {}: answered {status:?}, right is {:?}",
                raw.what, raw.right
            );
        }
    }
    let sql = bed.sql().await?;
    let written: i64 = sql.query_one("SELECT count(*) FROM transfer", &[]).await?.get(0);
    replica.child.terminate().await?;
    Ok(Answered {
        malformed: count,
        wrong,
        written: written.unsigned_abs(),
    })
}

/// Sends the bytes on a connection of their own, and reads the status.
async fn exchange(address: &str, raw: &Raw) -> Result<Option<u16>, Failure> {
    let mut stream = TcpStream::connect(address).await?;
    // A server that has answered may close before all is written.
    let _ = stream.write_all(&raw.bytes).await;
    let mut seen = Vec::new();
    let reading = async {
        let mut chunk = [0; 4096];
        while seen.len() < 12 {
            match stream.read(&mut chunk).await {
                Ok(0) | Err(_) => break,
                Ok(read) => seen.extend_from_slice(&chunk[..read]),
            }
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(10), reading).await;
    let status = seen
        .get(9..12)
        .and_then(|digits| std::str::from_utf8(digits).ok());
    Ok(status.and_then(|digits| digits.parse().ok()))
}
