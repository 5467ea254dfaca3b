//! The suite for drivers on each driver, PostgreSQL release, isolation level and way to the server.

use std::error::Error;
use std::path::Path;

use fence_pg::Isolation;
use fence_pg::conformance::{Driver, Sqlx, TokioPostgres, run};
use pause_kit::reaper::ReaperCommand;
use pause_kit::services::{DatabaseUrl, PgBouncer, Postgres, Services, ServicesConfig, locate};

use super::{Failure, Figure};

const RELEASES: [&str; 2] = ["15", "18"];
const DRIVERS: [&str; 2] = ["sqlx", "tokio-postgres"];
const LEVELS: [Isolation; 3] = [
    Isolation::ReadCommitted,
    Isolation::RepeatableRead,
    Isolation::Serializable,
];
/// Fewer connections to the server than the suite's clients, so that these share them.
const POOL: u16 = 4;

pub(crate) fn pg_matrix() -> Result<Figure, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(matrix())
}

async fn matrix() -> Result<Figure, Failure> {
    let config = ServicesConfig {
        reaper: ReaperCommand::find()?,
        postgres: false,
        etcd: Vec::new(),
    };
    let services = Services::start(config).await?;
    let (mut passed, mut asked, mut cases) = (0, 0, 0);
    for release in RELEASES {
        let server = Server::start(&services, release).await;
        for way in ["direct", "PgBouncer"] {
            for driver in DRIVERS {
                for isolation in LEVELS {
                    asked += 1;
                    let leg = Leg {
                        driver,
                        isolation,
                        pooled: way != "direct",
                        number: asked,
                    };
                    let (name, told) = match &server {
                        Ok(server) => (server.name(way), leg.run(server).await),
                        Err(why) => (
                            format!("PostgreSQL {release}, {way}"),
                            Err(format!("not run: {why}")),
                        ),
                    };
                    match told {
                        Ok(number) => {
                            passed += 1;
                            cases += number;
                            println!("{driver}, {isolation:?}, {name}: {number} cases passed");
                        }
                        Err(why) => println!("{driver}, {isolation:?}, {name}: {why}"),
                    }
                }
            }
        }
    }
    Ok(Figure {
        line: format!("{passed} of {asked} legs passed, {cases} cases in all"),
        reached: passed == asked,
    })
}

/// A server of one release, and the pooler before it.
struct Server {
    postgres: Postgres,
    pooler: PgBouncer,
}

impl Server {
    async fn start(services: &Services, release: &str) -> Result<Server, String> {
        let programs = match release {
            "18" => locate::postgres_18(),
            _ => locate::postgres(),
        };
        let programs = programs.map_err(|error| error.to_string())?;
        let postgres = Self::postgres(services, &programs).await?;
        if !postgres.version().starts_with(&format!("{release}.")) {
            return Err(format!(
                "{} is PostgreSQL {}",
                programs.display(),
                postgres.version()
            ));
        }
        let pooler = services
            .start_pgbouncer(&postgres, POOL)
            .await
            .map_err(in_words)?;
        Ok(Server { postgres, pooler })
    }

    async fn postgres(services: &Services, programs: &Path) -> Result<Postgres, String> {
        services.start_postgres(programs).await.map_err(in_words)
    }

    fn name(&self, way: &str) -> String {
        let way = match way {
            "direct" => way.to_owned(),
            _ => format!("{way} {}", self.pooler.version()),
        };
        format!("PostgreSQL {}, {way}", self.postgres.version())
    }
}

/// One run of the suite, in a database of its own.
struct Leg {
    driver: &'static str,
    isolation: Isolation,
    pooled: bool,
    number: usize,
}

impl Leg {
    async fn run(&self, server: &Server) -> Result<usize, String> {
        let name = format!("leg_{}", self.number);
        let database = server
            .postgres
            .create_database(&name, &format!("{name}_owner"))
            .await
            .map_err(in_words)?;
        install(&database).await?;
        let url = match self.pooled {
            true => database.through(server.pooler.port()),
            false => database,
        };
        match self.driver {
            "sqlx" => self.suite(async || Sqlx::connect(url.as_str()).await).await,
            _ => {
                self.suite(async || TokioPostgres::connect(url.as_str()).await)
                    .await
            }
        }
    }

    async fn suite<D: Driver, E: Error>(
        &self,
        connect: impl AsyncFn() -> Result<D, E>,
    ) -> Result<usize, String> {
        let report = run(connect, self.isolation).await;
        report.map(|report| report.cases.len()).map_err(in_words)
    }
}

/// As the database's owner, directly: installers take turns by a lock of the session.
async fn install(database: &DatabaseUrl) -> Result<(), String> {
    let (client, connection) = tokio_postgres::connect(database.as_str(), tokio_postgres::NoTls)
        .await
        .map_err(in_words)?;
    let connection = tokio::spawn(connection);
    fence_pg::tokio_postgres::install(&client)
        .await
        .map_err(in_words)?;
    drop(client);
    connection.await.map_err(in_words)?.map_err(in_words)
}

fn in_words(error: impl Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
