//! One process of the storm: takes locks, ends them in ways of its own choosing, and says each step.

use std::time::Duration;

use fence_core::Ttl;
use fence_lock::{Release, Session};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::{class, key, open};
use crate::measure::Failure;

/// The locks of the storm.
pub(super) const KEYS: usize = 50;

/// Of a hundred holds so many are left to lapse.
const LAPSES: u32 = 8;

/// Arguments: the store's address, the seed.
pub(super) async fn run(arguments: &[String]) -> Result<(), Failure> {
    let [address, seed] = arguments else {
        return Err("a keeper takes a store and a seed".into());
    };
    let mut rng = ChaCha8Rng::seed_from_u64(seed.parse()?);
    let store = open(address).await?;
    loop {
        // A store that is out of reach for a moment is asked again: this process has nothing else to do.
        let Ok(session) = Session::open(std::sync::Arc::clone(&store), Ttl::MIN).await else {
            continue;
        };
        keep(&session, &mut rng).await?;
        // Not closed: what is held lapses with the lease.
    }
}

/// Takes and ends locks until the session is over, or is left to lapse.
async fn keep(session: &Session, rng: &mut ChaCha8Rng) -> Result<(), Failure> {
    loop {
        let number = rng.random_range(0..KEYS);
        let wanted = session
            .acquire_within(&class()?, &key(number)?, Duration::from_secs(10))
            .await;
        let hold = match wanted {
            Ok(hold) => hold,
            Err(fence_lock::AcquireError::SessionOver) => return Ok(()),
            Err(_) => continue,
        };
        let Ok(token) = hold.token() else { return Ok(()) };
        let grant = hold.grant_id().clone();
        println!("granted {number} {token} {grant}");
        tokio::time::sleep(Duration::from_micros(rng.random_range(0..20_000))).await;
        if rng.random_range(0..100) < LAPSES {
            println!("lapsing {grant}");
            drop(hold);
            return Ok(());
        }
        println!("releasing {grant}");
        match hold.release().await {
            Ok(Release::Released) => println!("released {grant}"),
            Ok(Release::NotHeld) => println!("lost {grant}"),
            Err(_) => {}
        }
    }
}
