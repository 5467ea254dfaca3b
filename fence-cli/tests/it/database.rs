//! A database of its own for each test, and the command run against it.

use std::path::Path;
use std::process::Command;

use pause_kit::services::{DatabaseUrl, Login, for_tests};
use serde_json::Value;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, Row as _};

use crate::command::Said;

/// A database, whose owner is no superuser.
pub(crate) struct Database {
    pub(crate) url: DatabaseUrl,
}

impl Database {
    /// Without anything in it but a table.
    pub(crate) async fn bare() -> Database {
        let url = for_tests().await.fresh_database().await;
        let database = Database { url };
        database
            .run("CREATE TABLE orders (id bigint PRIMARY KEY, state text NOT NULL)")
            .await;
        database
    }

    /// With the guard.
    pub(crate) async fn migrated() -> Database {
        let database = Database::bare().await;
        let said = database.fence(&["pg", "migrate"]);
        assert_eq!(said.code, 0, "{}", said.err);
        database
    }

    /// With the table guarded too, for tokens of epoch 1.
    pub(crate) async fn guarded() -> Database {
        let database = Database::migrated().await;
        database
            .run("SELECT fence.declare('shop.order', 'entity'); SELECT fence.register_epoch('entity', 1)")
            .await;
        let said = database.fence(&["pg", "protect", "orders", "shop.order", "id"]);
        assert_eq!(said.code, 0, "{}", said.err);
        database
    }

    /// Runs `fence` with its URL.
    pub(crate) fn fence(&self, arguments: &[&str]) -> Said {
        fence_with(arguments, &[("DATABASE_URL", self.url.as_str())])
    }

    /// The same, in a folder.
    pub(crate) fn fence_in(&self, folder: &Path, arguments: &[&str]) -> Said {
        said(
            command(arguments)
                .env("DATABASE_URL", self.url.as_str())
                .current_dir(folder),
        )
    }

    /// What it says as JSON, and its code.
    pub(crate) fn json(&self, arguments: &[&str]) -> (i32, Value) {
        let said = self.fence(&[arguments, &["--json"]].concat());
        let value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
        (said.code, value)
    }

    /// A connection as the owner.
    pub(crate) async fn connection(&self) -> PgConnection {
        PgConnection::connect(self.url.as_str()).await.unwrap()
    }

    /// Runs statements as the owner.
    pub(crate) async fn run(&self, sql: &str) -> Vec<PgRow> {
        run(&mut self.connection().await, sql).await.unwrap()
    }

    /// Runs statements as a superuser.
    pub(crate) async fn run_as_superuser(&self, sql: &str) -> Vec<PgRow> {
        let url = for_tests().await.postgres().superuser_url_of(self.url.database());
        run(&mut PgConnection::connect(url.as_str()).await.unwrap(), sql)
            .await
            .unwrap()
    }

    /// One number, read by the owner.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        self.run(sql).await[0].get(0)
    }

    /// The SQLSTATE of statements that must fail.
    pub(crate) async fn code(&self, sql: &str) -> String {
        match run(&mut self.connection().await, sql).await {
            Ok(_) => panic!("not refused: {sql}"),
            Err(error) => error.as_database_error().unwrap().code().unwrap().into_owned(),
        }
    }

    /// A role that may log in and write the table.
    pub(crate) async fn application(&self) -> Login {
        let name = self.url.database();
        let login = for_tests()
            .await
            .postgres()
            .create_login(&format!("{name}_app"))
            .await
            .unwrap();
        self.run(&format!(
            "GRANT CONNECT ON DATABASE {name} TO {0}; GRANT SELECT, INSERT, UPDATE, DELETE ON orders TO {0}",
            login.role
        ))
        .await;
        login
    }
}

/// Runs statements as one text.
pub(crate) async fn run(connection: &mut PgConnection, sql: &str) -> Result<Vec<PgRow>, sqlx::Error> {
    connection
        .fetch_all(sqlx::raw_sql(AssertSqlSafe(sql.to_owned())))
        .await
}

/// Runs `fence` with these variables, and none of the machine's own about PostgreSQL.
pub(crate) fn fence_with(arguments: &[&str], variables: &[(&str, &str)]) -> Said {
    said(command(arguments).envs(variables.iter().copied()))
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fence"));
    command.args(arguments).env_remove("DATABASE_URL");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command
}

fn said(command: &mut Command) -> Said {
    let output = command.output().unwrap();
    Said {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
