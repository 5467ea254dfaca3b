//! What `fence.doctor` finds: each way around that a database's state leaves open, by its name, and not one where there is none.

mod column;
mod guard;
mod roles;
mod tables;

use pause_kit::services::{Login, for_tests};
use tokio_postgres::Client;

use crate::support::{Database, OPEN, client, code};

/// One finding, without its words.
type Finding = (String, String, String);

/// A database as it should be, but for what the tests' server is set to.
struct Sound {
    database: Database,
    superuser: Client,
    app: Login,
}

impl Sound {
    async fn new() -> Sound {
        let database = Database::guarded().await;
        let name = database.url.database().to_owned();
        let app = for_tests()
            .await
            .postgres()
            .create_login(&format!("{name}_app"))
            .await
            .unwrap();
        let role = &app.role;
        database
            .run(&format!(
                "GRANT CONNECT ON DATABASE {name} TO {role};
                 GRANT SELECT, INSERT, UPDATE, DELETE ON transfer TO {role};
                 SELECT fence.grant_application('{role}');
                 CREATE TABLE opened (id bigint PRIMARY KEY); SELECT fence.protect('opened', '{OPEN}', 'id');
                 SELECT fence.remember()"
            ))
            .await;
        let superuser = database.superuser().await;
        Sound {
            database,
            superuser,
            app,
        }
    }

    /// What is found beyond what the tests' server, whose `fsync` is off and which can prepare transactions, is found by.
    async fn findings(&self) -> Vec<Finding> {
        self.all().await.into_iter().map(|(finding, _)| finding).collect()
    }

    /// The same with the fixes.
    async fn all(&self) -> Vec<(Finding, String)> {
        let owner = self.database.client().await;
        let rows = owner.query("SELECT * FROM fence.doctor()", &[]).await.unwrap();
        let of_the_server = ["server-not-durable", "prepared-transactions"];
        let mut server = 0;
        let mut found = Vec::new();
        for row in rows {
            let text = |column: &str| -> String { row.get(column) };
            assert!(
                !text("detail").is_empty() && !text("fix").is_empty(),
                "{}",
                text("finding")
            );
            match of_the_server.contains(&text("finding").as_str()) {
                true => server += 1,
                false => found.push(((text("severity"), text("finding"), text("object")), text("fix"))),
            }
        }
        assert_eq!(server, 2, "the tests' server has both");
        found
    }

    /// Makes a state as a superuser would, expects this finding alone, does what its fix says, and expects none.
    async fn finds(&self, state: &str, severity: &str, finding: &str, object: &str) {
        let fix = self.finds_only(state, severity, finding, object).await;
        self.superuser
            .batch_execute(&self.as_whoever_may(&fix))
            .await
            .unwrap_or_else(|error| panic!("{finding}'s fix, {fix}: {error:?}"));
        assert_eq!(self.findings().await, [], "after {fix}");
    }

    /// The same, where the fix needs a person; undone by other statements.
    async fn finds_until(&self, state: &str, severity: &str, finding: &str, object: &str, undo: &str) {
        self.finds_only(state, severity, finding, object).await;
        let undo = self.as_whoever_may(undo);
        self.superuser.batch_execute(&undo).await.unwrap();
        assert_eq!(self.findings().await, [], "after {undo}");
    }

    /// Tables are guarded by the role that installed the guard, which owns them here, and by nobody else.
    fn as_whoever_may(&self, sql: &str) -> String {
        match ["fence.protect", "fence.unprotect", "CREATE TABLE"]
            .iter()
            .any(|word| sql.contains(word))
        {
            true => format!(
                "SET ROLE {}_owner; {sql}; RESET ROLE",
                self.database.url.database()
            ),
            false => sql.to_owned(),
        }
    }

    async fn finds_only(&self, state: &str, severity: &str, finding: &str, object: &str) -> String {
        self.superuser
            .batch_execute(&self.as_whoever_may(state))
            .await
            .unwrap();
        let found = self.all().await;
        let wanted = (severity.to_owned(), finding.to_owned(), object.to_owned());
        assert_eq!(
            found.iter().map(|(found, _)| found).collect::<Vec<_>>(),
            [&wanted],
            "{state}"
        );
        found.into_iter().next().unwrap().1
    }
}

#[tokio::test]
async fn nothing_is_found_where_nothing_is_open() {
    let sound = Sound::new().await;
    assert_eq!(sound.findings().await, []);
    let app = client(
        &for_tests()
            .await
            .postgres()
            .url(sound.database.url.database(), &sound.app),
    )
    .await;
    assert_eq!(code(&app, "SELECT * FROM fence.doctor()").await, "42501");
}
