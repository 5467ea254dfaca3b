//! Application roles: what `fence.grant_application` gives, and takes back.

use pause_kit::services::{Login, for_tests};
use tokio_postgres::{AsyncMessage, Client, NoTls};

use crate::support::{CLASS, Database, admit, client, code, failure, token};

/// A guarded database, an application role in it with rights on the table, and a connection as that role.
struct Application {
    database: Database,
    login: Login,
}

impl Application {
    async fn granted() -> Application {
        let application = Application::stranger().await;
        application
            .database
            .run(&format!(
                "SELECT fence.grant_application('{}')",
                application.login.role
            ))
            .await;
        application
    }

    /// The same without the guard's grants.
    async fn stranger() -> Application {
        let database = Database::guarded().await;
        let name = database.url.database().to_owned();
        let login = for_tests()
            .await
            .postgres()
            .create_login(&format!("{name}_app"))
            .await
            .unwrap();
        let role = &login.role;
        database
            .run(&format!(
                "GRANT CONNECT ON DATABASE {name} TO {role};
                 GRANT SELECT, INSERT, UPDATE, DELETE ON transfer TO {role}"
            ))
            .await;
        Application { database, login }
    }

    async fn client(&self) -> Client {
        let postgres = for_tests().await.postgres();
        client(&postgres.url(self.database.url.database(), &self.login)).await
    }
}

/// What the server says besides, while the owner runs a statement.
pub(crate) async fn warnings(database: &Database, sql: &str) -> Vec<String> {
    let (client, mut connection) = tokio_postgres::connect(database.url.as_str(), NoTls)
        .await
        .unwrap();
    let said = tokio::spawn(async move {
        let mut said = Vec::new();
        while let Some(message) = std::future::poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notice(notice) = message.unwrap() {
                said.push(notice.message().to_owned());
            }
        }
        said
    });
    client.batch_execute(sql).await.unwrap();
    drop(client);
    said.await.unwrap()
}

const INSERT: &str = "INSERT INTO transfer (from_account, amount) VALUES ('acct-1', 5)";

#[tokio::test]
async fn a_granted_role_writes_under_the_guard_and_can_do_nothing_else_of_it() {
    let application = Application::granted().await;
    let app = application.client().await;
    app.batch_execute(&format!("BEGIN; {} {INSERT}; COMMIT", admit("acct-1", 34)))
        .await
        .unwrap();
    let raise = format!(
        "SELECT fence.raise_mark('{CLASS}', fence.key('a', 'b'), {}, 'g34')",
        token(34)
    );
    app.batch_execute(&raise).await.unwrap();
    assert_eq!(code(&app, INSERT).await, "ZF002");
    assert_eq!(code(&app, &admit("acct-1", 33)).await, "ZF001");

    // Every function that is not the application's own, whatever it is called: asked of the catalog, so that none is forgotten.
    let open: Vec<String> = app
        .query(
            "SELECT p.proname::text FROM pg_proc p
             WHERE p.pronamespace = 'fence'::regnamespace AND has_function_privilege(p.oid, 'EXECUTE') ORDER BY 1",
            &[],
        )
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    for name in &open {
        let known = [
            "admit",
            "admit_many",
            "describe_backend",
            "describe_holder",
            "explain_block",
            "explain_column",
            "key",
            "raise_mark",
        ];
        assert!(known.contains(&name.as_str()), "{name} is not for applications");
    }
    assert!(open.contains(&"admit".to_owned()), "{open:?}");
    let readable: i64 = app
        .query_one(
            "SELECT count(*) FROM pg_class c
             WHERE c.relnamespace = 'fence'::regnamespace AND c.relkind IN ('r', 'v', 'S', 'p', 'm')
               AND (has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
                    OR c.relkind <> 'S' AND has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE, REFERENCES'))",
            &[],
        )
        .await
        .unwrap()
        .get(0);
    assert_eq!(readable, 0);
    for sql in [
        "SELECT fence.grant_application('postgres')",
        "SELECT * FROM fence.doctor()",
        "CREATE TABLE fence.mine ()",
        "TRUNCATE transfer",
    ] {
        assert_eq!(code(&app, sql).await, "42501", "{sql}");
    }
}

#[tokio::test]
async fn granting_again_takes_back_what_was_granted_besides() {
    let application = Application::granted().await;
    let role = &application.login.role;
    application
        .database
        .run(&format!(
            "GRANT ALL ON SCHEMA fence TO {role}; GRANT ALL ON ALL TABLES IN SCHEMA fence TO {role};
             GRANT SELECT (token), UPDATE (token) ON fence.high_water TO {role};
             GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA fence TO {role}"
        ))
        .await;
    let app = application.client().await;
    app.batch_execute("SELECT fence.declare('paydb.mine'); SELECT token FROM fence.high_water")
        .await
        .unwrap();
    application
        .database
        .run(&format!("SELECT fence.grant_application('{role}')"))
        .await;
    for sql in [
        "SELECT fence.declare('paydb.other')",
        "SELECT token FROM fence.high_water",
        "CREATE TABLE fence.mine ()",
    ] {
        assert_eq!(code(&app, sql).await, "42501", "{sql}");
    }
    app.batch_execute(&admit("acct-1", 34)).await.unwrap();

    application
        .database
        .run(&format!("SELECT fence.revoke_application('{role}')"))
        .await;
    assert_eq!(code(&app, &admit("acct-1", 34)).await, "42501");
    assert_eq!(code(&app, "SELECT fence.key('a', 'b')").await, "42501");
}

#[tokio::test]
async fn the_guards_owner_is_no_application_and_a_risky_one_is_warned_of() {
    let application = Application::stranger().await;
    let owner = application.database.client().await;
    let owner_name = &application.database.url.login().role;
    let refused = failure(&owner, &format!("SELECT fence.grant_application('{owner_name}')")).await;
    assert_eq!(refused.code().code(), "22023");
    assert!(
        refused.message().contains("owns schema fence"),
        "{}",
        refused.message()
    );
    assert!(refused.hint().unwrap().contains("CREATE ROLE"));
    let nobody = failure(&owner, "SELECT fence.grant_application('No Body')").await;
    assert_eq!(nobody.code().code(), "42704");
    assert!(
        nobody
            .hint()
            .unwrap()
            .starts_with("CREATE ROLE \"No Body\" LOGIN")
    );
    assert_eq!(
        code(&owner, "SELECT fence.revoke_application(NULL)").await,
        "42704"
    );

    let role = &application.login.role;
    let superuser = application.database.superuser().await;
    for (risk, undo) in [
        (
            format!("GRANT {owner_name} TO {role}"),
            format!("REVOKE {owner_name} FROM {role}"),
        ),
        (
            format!("ALTER ROLE {role} SUPERUSER"),
            format!("ALTER ROLE {role} NOSUPERUSER"),
        ),
    ] {
        superuser.batch_execute(&risk).await.unwrap();
        let warned = warnings(
            &application.database,
            &format!("SELECT fence.grant_application('{role}')"),
        )
        .await;
        assert!(
            warned.iter().any(|said| said.contains(role.as_str())),
            "{risk}: {warned:?}"
        );
        superuser.batch_execute(&undo).await.unwrap();
    }
    let warned = warnings(
        &application.database,
        &format!("SELECT fence.grant_application('{role}')"),
    )
    .await;
    assert_eq!(warned, Vec::<String>::new());
}
