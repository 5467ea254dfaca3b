//! One PostgreSQL and one etcd for all tests of a process.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::OnceCell;

use super::{DatabaseUrl, Etcd, Postgres, ServiceError, Services, ServicesConfig};
use crate::reaper::ReaperCommand;

static SHARED: OnceCell<TestServices> = OnceCell::const_new();

const ETCD: &str = "tests";

/// The services that the tests of one process share. Each test takes a database and a key prefix of its own.
#[derive(Debug)]
pub struct TestServices {
    services: Services,
    next: AtomicU64,
}

/// The shared services, started by the first test that asks. They go when the process ends, however it ends.
///
/// # Panics
///
/// When a service is not installed or does not start; the message says what to do. A test must not pass unrun.
pub async fn for_tests() -> &'static TestServices {
    match SHARED.get_or_try_init(start).await {
        Ok(services) => services,
        Err(error) => panic!("{}", with_causes(&error)),
    }
}

impl TestServices {
    /// Everything that was started.
    #[must_use]
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// The shared PostgreSQL.
    ///
    /// # Panics
    ///
    /// Never: it was started with the rest.
    #[must_use]
    pub fn postgres(&self) -> &Postgres {
        self.services
            .postgres()
            .expect("PostgreSQL was asked for at the start")
    }

    /// The shared etcd.
    ///
    /// # Panics
    ///
    /// Never: it was started with the rest.
    #[must_use]
    pub fn etcd(&self) -> &Etcd {
        self.services
            .etcd(ETCD)
            .expect("this etcd was asked for at the start")
    }

    /// A new, empty database with an owner of its own, who is no superuser.
    ///
    /// # Panics
    ///
    /// When the server does not make it.
    pub async fn fresh_database(&self) -> DatabaseUrl {
        let number = self.number();
        let name = format!("test_{number}");
        match self
            .postgres()
            .create_database(&name, &format!("{name}_owner"))
            .await
        {
            Ok(database) => database,
            Err(error) => panic!("{}", with_causes(&error)),
        }
    }

    /// A prefix for keys in etcd that no other test has, such as `test-7/`.
    #[must_use]
    pub fn fresh_prefix(&self) -> String {
        format!("test-{}/", self.number())
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

async fn start() -> Result<TestServices, ServiceError> {
    let config = ServicesConfig {
        reaper: ReaperCommand::find()?,
        postgres: true,
        etcd: vec![ETCD.to_owned()],
    };
    Ok(TestServices {
        services: Services::start(config).await?,
        next: AtomicU64::new(1),
    })
}

fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}
