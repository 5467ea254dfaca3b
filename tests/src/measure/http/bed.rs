//! paydb's replicas on a database of their own.

use std::time::Duration;

use pause_kit::reaper::ReaperCommand;
use pause_kit::services::{Child, DatabaseUrl, ProcessSpec, Services, ServicesConfig};
use reqwest::Client as Http;
use serde_json::json;
use tokio_postgres::{Client, NoTls};

use super::super::Failure;

/// A PostgreSQL with one database, and whatever replicas are started on it.
pub(super) struct Bed {
    services: Services,
    database: DatabaseUrl,
}

/// A replica that listens.
pub(super) struct Replica {
    pub(super) child: Child,
    pub(super) address: String,
}

impl Bed {
    /// With paydb's schema, epoch 1, and so many accounts of this balance.
    pub(super) async fn new(accounts: u64, balance: i64) -> Result<(Bed, Replica), Failure> {
        let config = ServicesConfig {
            reaper: ReaperCommand::find()?,
            postgres: true,
            etcd: Vec::new(),
        };
        let services = Services::start(config).await?;
        let postgres = services.postgres().ok_or("no PostgreSQL")?;
        let database = postgres.create_database("paydb", "paydb").await?;
        let bed = Bed { services, database };
        let replica = bed.replica().await?;
        bed.sql()
            .await?
            .batch_execute("SELECT fence.register_epoch('entity', 1)")
            .await?;
        let http = Http::new();
        for account in 1..=accounts {
            let body = json!({"id": format!("acct-{account}"), "balance": balance});
            let url = format!("http://{}/accounts", replica.address);
            http.post(url).json(&body).send().await?.error_for_status()?;
        }
        Ok((bed, replica))
    }

    /// Starts a replica and waits until it listens.
    pub(super) async fn replica(&self) -> Result<Replica, Failure> {
        // It was built together with this program.
        let paydb = std::env::current_exe()?.with_file_name("paydb");
        let arguments = [
            "--listen",
            "127.0.0.1:0",
            "--log",
            "off",
            "--database-url",
            self.database.as_str(),
        ];
        let child = self
            .services
            .spawn(ProcessSpec::new("paydb", paydb).args(arguments))
            .await?;
        let address = child.wait_line("listening on ", Duration::from_secs(60)).await?;
        Ok(Replica { child, address })
    }

    /// A connection to the database.
    pub(super) async fn sql(&self) -> Result<Client, Failure> {
        let (client, connection) = tokio_postgres::connect(self.database.as_str(), NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }
}

/// A token of epoch 1, as the header holds it, of grant `g<number>`.
pub(super) fn header(number: u64) -> String {
    format!("\"{}\";grant=\"g{number}\"", (1 << 48) + number)
}
