//! What PostgreSQL and its clients said, read from the path.

use std::net::SocketAddr;

use pause_kit::path::{Connection, ConnectionNumber, Direction, Hold, Path, PathOptions, Replacement};
use pause_kit::services::for_tests;
use pause_kit::wire::postgres::{
    Completion, Parameter, ServerMessage, Statement, TransactionStatus, server_messages, statements,
};
use tokio::task::AbortHandle;
use tokio_postgres::{Client, Config, NoTls};

use crate::wait::soon;

/// A path to a fresh database, and a client on it.
async fn connected() -> (Path, Client) {
    let services = for_tests().await;
    let database = services.fresh_database().await;
    let path = open(services.postgres().port()).await;
    let (client, _) = connect(path.address().port(), database.as_str()).await;
    (path, client)
}

async fn open(port: u16) -> Path {
    Path::open(SocketAddr::from(([127, 0, 0, 1], port)), PathOptions::postgres())
        .await
        .unwrap()
}

/// A client of the database as `url` names it, through another port, and what ends its socket.
async fn connect(port: u16, url: &str) -> (Client, AbortHandle) {
    let named: Config = url.parse().unwrap();
    let mut config = Config::new();
    config
        .host("127.0.0.1")
        .port(port)
        .user(named.get_user().unwrap());
    config
        .password(named.get_password().unwrap())
        .dbname(named.get_dbname().unwrap());
    let (client, connection) = config.connect(NoTls).await.unwrap();
    (client, tokio::spawn(connection).abort_handle())
}

fn first(path: &Path) -> Connection {
    path.read(|log| log.connections()[0].clone())
}

/// The last statement whose text contains `part`.
fn find(connection: &Connection, part: &str) -> Statement {
    let all = statements(connection).unwrap();
    all.into_iter()
        .rfind(|statement| statement.text.contains(part))
        .unwrap()
}

#[tokio::test]
async fn statements_are_listed_with_parameters_answers_and_times() {
    let (path, client) = connected().await;
    client
        .batch_execute("CREATE TABLE t (id bigint, name text); BEGIN")
        .await
        .unwrap();
    let insert = "INSERT INTO t VALUES ($1, $2)";
    client
        .execute(insert, &[&562_949_953_421_399_i64, &"acct-1"])
        .await
        .unwrap();
    client
        .execute(insert, &[&1_i64, &Option::<&str>::None])
        .await
        .unwrap();
    client.batch_execute("COMMIT").await.unwrap();

    let connection = first(&path);
    let created = find(&connection, "CREATE TABLE");
    let done = |tag: &str| Completion::Done(tag.to_owned());
    assert_eq!(created.completions, [done("CREATE TABLE"), done("BEGIN")]);
    assert_eq!(created.ready.unwrap().0, TransactionStatus::Open);

    let inserts: Vec<Statement> = statements(&connection)
        .unwrap()
        .into_iter()
        .filter(|statement| statement.text == insert)
        .collect();
    let parameters: Vec<_> = inserts
        .iter()
        .map(|one| {
            (
                one.parameters[0].as_integer(),
                one.parameters[1].as_text(),
                one.tag(),
            )
        })
        .collect();
    assert_eq!(
        parameters,
        [
            (Some(562_949_953_421_399), Some("acct-1"), Some("INSERT 0 1")),
            (Some(1), None, Some("INSERT 0 1"))
        ]
    );
    assert_eq!(inserts[1].parameters[1], Parameter::Null);
    for one in &inserts {
        let times = [
            one.began,
            one.sent.unwrap(),
            one.completed.unwrap(),
            one.ready.unwrap().1,
        ];
        assert!(times.is_sorted(), "{times:?}");
    }
    let committed = find(&connection, "COMMIT");
    assert_eq!(
        (committed.tag(), committed.ready.unwrap().0),
        (Some("COMMIT"), TransactionStatus::Idle)
    );
}

#[tokio::test]
async fn a_refusal_is_read_with_its_sqlstate_and_detail_and_a_failed_commit_says_rollback() {
    let (path, client) = connected().await;
    let refuse = "CREATE FUNCTION refuse(presented bigint) RETURNS void LANGUAGE plpgsql AS $$ BEGIN \
                  RAISE EXCEPTION 'stale' USING ERRCODE = 'ZF001', DETAIL = format('presented %s, seen 9', presented); \
                  END $$; BEGIN";
    client.batch_execute(refuse).await.unwrap();
    client.execute("SELECT refuse($1)", &[&7_i64]).await.unwrap_err();
    client.execute("SELECT 1", &[]).await.unwrap_err();
    client.batch_execute("COMMIT").await.unwrap();

    let connection = first(&path);
    let refused = find(&connection, "SELECT refuse");
    let error = refused.error().unwrap();
    assert_eq!(
        (
            error.severity.as_str(),
            error.sqlstate.as_str(),
            error.message.as_str()
        ),
        ("ERROR", "ZF001", "stale")
    );
    assert_eq!(error.detail.as_deref(), Some("presented 7, seen 9"));
    assert_eq!(refused.ready.unwrap().0, TransactionStatus::Failed);
    assert_eq!(find(&connection, "COMMIT").tag(), Some("ROLLBACK"));
}

#[tokio::test]
async fn the_end_of_an_idle_session_is_charged_to_no_statement() {
    let (path, client) = connected().await;
    client
        .batch_execute("SET idle_in_transaction_session_timeout = 50; BEGIN")
        .await
        .unwrap();
    let told = path.wait(|log| {
        let connection = log.last()?;
        let server = server_messages(connection.to_holder.bytes(), connection.to_resource.bytes()).unwrap();
        server
            .messages
            .into_iter()
            .find_map(|framed| match framed.message {
                ServerMessage::Error(notice) => Some(notice),
                _ => None,
            })
    });
    let notice = soon(told).await;
    assert_eq!(
        (notice.severity.as_str(), notice.sqlstate.as_str()),
        ("FATAL", "25P03")
    );
    client.batch_execute("COMMIT").await.unwrap_err();
    let connection = first(&path);
    assert!(
        statements(&connection)
            .unwrap()
            .iter()
            .all(|statement| statement.error().is_none())
    );
}

#[tokio::test]
async fn a_statement_held_on_the_path_is_known_and_not_sent() {
    let (path, client) = connected().await;
    let before = first(&path).to_resource.received();
    let hold = path.hold(
        Hold::new(Direction::ToResource)
            .on(first(&path).number)
            .at_byte(before + 3),
    );
    let running = tokio::spawn(async move { client.batch_execute("SELECT 42").await });
    let kept = soon(hold.engaged()).await;
    assert_eq!(kept.at_byte, before + 3);
    let held = soon(path.wait(|log| statements(log.last()?).unwrap().pop())).await;
    assert_eq!(
        (held.text.as_str(), held.sent, held.completions.len()),
        ("SELECT 42", None, 0)
    );
    let released = hold.release();
    soon(running).await.unwrap().unwrap();
    let run = find(&first(&path), "SELECT 42");
    assert!(run.sent.unwrap() >= released);
    assert_eq!(run.tag(), Some("SELECT 1"));
}

#[tokio::test]
async fn bounds_are_replaced_on_their_way_to_the_server() {
    let (path, client) = connected().await;
    let timeout = Replacement::new(
        Direction::ToResource,
        "lock_timeout = 2000",
        "lock_timeout = 0000",
    )
    .unwrap();
    let replaced = path.replace(timeout);
    client.batch_execute("SET lock_timeout = 2000").await.unwrap();
    let shown: String = client.query_one("SHOW lock_timeout", &[]).await.unwrap().get(0);
    assert_eq!((shown.as_str(), replaced.fired()), ("0", 1));
    let number: ConnectionNumber = first(&path).number;
    assert_eq!(path.connection(number).unwrap().to_resource.impatient(), 0);
}

#[tokio::test]
async fn a_clients_close_waits_until_the_server_has_answered_its_query() {
    let services = for_tests().await;
    let database = services.fresh_database().await;
    let path = open(services.postgres().port()).await;
    let (blocker, _) = connect(services.postgres().port(), database.as_str()).await;
    blocker.batch_execute("CREATE TABLE t (id int)").await.unwrap();
    blocker.batch_execute("BEGIN; LOCK TABLE t").await.unwrap();

    let (client, socket) = connect(path.address().port(), database.as_str()).await;
    tokio::spawn(async move { client.batch_execute("INSERT INTO t VALUES (1)").await });
    soon(path.wait(|log| statements(log.last()?).unwrap().pop()?.sent)).await;
    socket.abort();
    soon(path.wait(|log| log.last()?.to_resource.close())).await;
    assert_eq!(
        path.read(|log| log.last().unwrap().to_resource.close_passed()),
        None
    );
    blocker.batch_execute("COMMIT").await.unwrap();

    let record = soon(path.wait(|log| log.last()?.ended.map(|_| log.last().cloned())))
        .await
        .unwrap();
    let late = find(&record, "INSERT");
    assert_eq!(late.tag(), Some("INSERT 0 1"));
    assert!(record.to_resource.close_passed() >= late.ready.map(|(_, at)| at));
}
