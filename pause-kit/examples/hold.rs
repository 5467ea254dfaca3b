//! Starts PostgreSQL, etcd and some processes, stops one of them and a backend, says so, and waits to be killed.
//!
//! Kill it in any way, and look whether anything is left:
//!
//! ```text
//! cargo run -p pause-kit --example hold [signal|freezer|auto]
//! ```

use std::error::Error;

use pause_kit::reaper::ReaperCommand;
use pause_kit::services::{ProcessSpec, Services, ServicesConfig};
use tokio_postgres::NoTls;

/// A process in a session of its own whose parent has gone, beside one that ignores every request to end.
const STUBBORN: &str = "(setsid sh -c 'trap \"\" TERM INT HUP QUIT; while :; do sleep 1; done' &) ; \
                        trap '' TERM INT HUP QUIT; echo up; while :; do sleep 1; done";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let config = ServicesConfig {
        reaper: ReaperCommand::find()?,
        postgres: true,
        etcd: vec!["held".to_owned()],
    };
    let services = Services::start(config).await?;
    let means = std::env::args().nth(1).map(|means| means.parse()).transpose()?;
    services.stop_with(means.unwrap_or_default()).await?;
    let postgres = services.postgres().ok_or("PostgreSQL was asked for")?;
    let (client, connection) = tokio_postgres::connect(postgres.superuser_url().as_str(), NoTls).await?;
    tokio::spawn(connection);
    let backend: i32 = client.query_one("SELECT pg_backend_pid()", &[]).await?.get(0);
    let stubborn = services
        .spawn(ProcessSpec::new("stubborn", "/bin/sh").args(["-c", STUBBORN]))
        .await?;
    stubborn
        .wait_line("up", std::time::Duration::from_secs(10))
        .await?;
    let process = stubborn.stop().await?;
    let backend = services.stop(u32::try_from(backend)?).await?;
    println!("folder {}", services.folder().display());
    println!("postmaster {}", postgres.process().pid());
    println!("stopped {} {}", process.pid(), backend.pid());
    std::future::pending::<()>().await;
    Ok(())
}
