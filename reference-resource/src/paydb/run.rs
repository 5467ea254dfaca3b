//! Starting and stopping.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::filter::LevelFilter;

use super::connect::{self, ConnectError};
use super::options::{DatabaseUrl, Options};
use super::router::service;
use super::schema;
use super::serve::{HEAD_TIME, serve};

/// The exit codes of `paydb`, in words.
pub const EXIT_CODES: &str = "Exit codes:
  0  ended by SIGTERM or SIGINT, with every request answered
  1  anything else
  2  wrong usage
  3  ended by SIGTERM or SIGINT, with requests cut off after 10 s
  4  the database cannot be reached";

/// How long a stop waits for the requests in flight.
const GRACE: Duration = Duration::from_secs(10);

/// Why the service ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The database cannot be reached. Start it, or correct its address, as the text says.
    #[error(transparent)]
    Connect(ConnectError),
    /// The database was reached, and then lost.
    #[error("the database cannot be reached any more")]
    Database(#[source] sqlx::Error),
    /// The database is not in order. Its source says what to mend.
    #[error("the database's schema cannot be used")]
    Schema(#[source] schema::SchemaError),
    /// The address cannot be listened on. Choose another.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The system refused something that a service needs.
    #[error("cannot serve")]
    Serve(#[source] std::io::Error),
    /// Some requests were not answered within 10 s after the signal, and were cut off.
    #[error("requests were still in flight 10 s after the signal")]
    CutOff,
}

impl RunError {
    /// The process's exit code, as [`EXIT_CODES`] lists them.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            RunError::Connect(_) | RunError::Database(_) => 4,
            RunError::CutOff => 3,
            RunError::Schema(_) | RunError::Listen { .. } | RunError::Serve(_) => 1,
        })
    }
}

/// Serves until SIGTERM or SIGINT. Prints `listening on ADDRESS` on standard output when requests are answered.
///
/// # Errors
///
/// [`RunError`], whose exit code tells its kind.
pub async fn run(options: Options) -> Result<(), RunError> {
    log_up_to(options.log);
    let pool = open(&options.database_url).await?;
    let listening = TcpListener::bind(options.listen)
        .await
        .and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = listening.map_err(|source| RunError::Listen {
        address: options.listen,
        source,
    })?;
    let mut stop = stop_signal().map_err(RunError::Serve)?;
    let server = serve(listener, service(pool.clone()), stop.clone(), HEAD_TIME);
    println!("listening on {address}");
    let overdue = async {
        // An error means that nobody is left to send the signal: stop then, too.
        let _ = stop.wait_for(|stop| *stop).await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        () = server => {}
        () = overdue => return Err(RunError::CutOff),
    }
    // Waits for what a client that went away left behind: its transactions are rolled back first.
    let closed = tokio::time::timeout(GRACE, pool.close()).await;
    closed.map_err(|_| RunError::CutOff)
}

/// Logs on standard error.
pub(super) fn log_up_to(level: LevelFilter) {
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
}

/// Connects to the database and brings its schema up to date.
pub(super) async fn open(database_url: &DatabaseUrl) -> Result<PgPool, RunError> {
    let database = database_url
        .connect_options()
        .application_name("paydb")
        // An admission waits for 2 s at most by itself; this bounds the other waits of a transaction.
        .options([("lock_timeout", "5000")]);
    connect::try_out(&database).await.map_err(RunError::Connect)?;
    let pool = PgPoolOptions::new()
        .max_connections(16)
        .acquire_timeout(Duration::from_secs(5))
        .connect_with(database)
        .await
        .map_err(RunError::Database)?;
    schema::prepare(&pool).await.map_err(RunError::Schema)?;
    Ok(pool)
}

/// Becomes true at the first SIGTERM or SIGINT.
fn stop_signal() -> std::io::Result<watch::Receiver<bool>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (send, receive) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        send.send_replace(true);
    });
    Ok(receive)
}
