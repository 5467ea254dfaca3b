//! What the store on PostgreSQL does besides what every store does.

use std::time::Duration;

use fence_core::{Epoch, Ttl};
use fence_lock::{AcquireError, InitError, PostgresStore, SealReason, Session, StoreError};
use pause_kit::services::DatabaseUrl;

use crate::support::{class, database, key, postgres, psql, tier};

async fn installed() -> (DatabaseUrl, PostgresStore) {
    let address = database().await;
    let store = PostgresStore::connect(address.as_str(), tier()).await.unwrap();
    store.install().await.unwrap();
    store.init(Epoch::FIRST, "a test").await.unwrap();
    (address, store)
}

async fn session(store: &PostgresStore) -> Session {
    Session::open(store.clone(), Ttl::from_secs(20).unwrap())
        .await
        .unwrap()
}

/// A connection to a database as the server's superuser.
async fn superuser(database: &str) -> tokio_postgres::Client {
    psql(&postgres().await.superuser_url_of(database)).await
}

async fn text(client: &tokio_postgres::Client, query: &str) -> String {
    client.query_one(query, &[]).await.unwrap().get(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_sees_who_holds_and_who_waits() {
    let (address, store) = installed().await;
    let (holder, waiter) = (session(&store).await, session(&store).await);
    let hold = holder.acquire(&class(), &key("acct-1")).await.unwrap();
    let waiting = tokio::spawn({
        let waiter = waiter.clone();
        async move { waiter.acquire(&class(), &key("acct-1")).await }
    });
    while store.waiters(&class(), &key("acct-1")).await.unwrap() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let person = psql(&address).await;
    let held =
        "SELECT concat_ws(' ', class, key, token, grant_id, session, application_name) FROM fence_lock.held";
    assert_eq!(
        text(&person, held).await,
        format!(
            "paydb.account acct-1 {} {} {} fence-lock",
            hold.token().unwrap(),
            hold.grant_id(),
            holder.id()
        )
    );
    let queue = "SELECT concat_ws(' ', class, key, number, session) FROM fence_lock.waiting";
    assert_eq!(
        text(&person, queue).await,
        format!("paydb.account acct-1 1 {}", waiter.id())
    );
    let _ = hold.release().await.unwrap();
    let next = waiting.await.unwrap().unwrap();
    let _ = next.release().await.unwrap();
    assert_eq!(
        text(&person, "SELECT count(*)::text FROM fence_lock.held").await,
        "0"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_without_the_store_or_without_an_epoch_grants_nothing() {
    let address = database().await;
    let store = PostgresStore::connect(address.as_str(), tier()).await.unwrap();
    let nothing = Session::open(store.clone(), Ttl::default()).await.unwrap_err();
    let source = std::error::Error::source(&nothing).unwrap().to_string();
    assert_eq!(
        source,
        "the lock store is not installed in this database: run its files, fence-lock/sql/*.sql, there in order"
    );
    store.install().await.unwrap();
    store.install().await.unwrap();
    let session = session(&store).await;
    let outcome = session.acquire(&class(), &key("acct-1")).await;
    assert!(
        matches!(outcome, Err(AcquireError::NotInitialised { .. })),
        "{outcome:?}"
    );
    let (one, two) = (Epoch::FIRST, Epoch::new(2).unwrap());
    let (first, second) = tokio::join!(store.init(one, "a test"), store.init(two, "a test"));
    assert_eq!(
        [&first, &second].iter().filter(|begun| begun.is_ok()).count(),
        1,
        "{first:?} {second:?}"
    );
    let again = store.init(Epoch::new(3).unwrap(), "again").await;
    assert!(matches!(again, Err(InitError::Exists { .. })), "{again:?}");
    assert!(session.acquire(&class(), &key("acct-1")).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sequence_that_fell_behind_the_last_token_grants_nothing() {
    let (address, store) = installed().await;
    let session = session(&store).await;
    for _ in 0..3 {
        let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
        let _ = hold.release().await.unwrap();
    }
    // The sequence comes from an older backup than the tables.
    psql(&address)
        .await
        .batch_execute("SELECT setval('fence_lock.token', 1)")
        .await
        .unwrap();
    let outcome = session.acquire(&class(), &key("acct-1")).await;
    assert!(
        matches!(
            outcome,
            Err(AcquireError::Store(StoreError::Regressed {
                seen: 3,
                answered: 2
            }))
        ),
        "{outcome:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_the_database_is_sealed_until_a_higher_epoch_begins() {
    let (address, store) = installed().await;
    let original = session(&store).await;
    let hold = original.acquire(&class(), &key("acct-1")).await.unwrap();
    let before = hold.token().unwrap();
    original.close().await.unwrap();
    drop((original, hold, store));

    let (name, copy) = (
        address.database().to_owned(),
        format!("{}_copy", address.database()),
    );
    let administrator = superuser("postgres").await;
    let owner = address.login().role.clone();
    administrator
        .execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1",
            &[&name],
        )
        .await
        .unwrap();
    administrator
        .batch_execute(&format!("CREATE DATABASE {copy} TEMPLATE {name} OWNER {owner}"))
        .await
        .unwrap();

    let at_the_copy = postgres().await.url(&copy, address.login());
    let store = PostgresStore::connect(at_the_copy.as_str(), tier())
        .await
        .unwrap();
    let session = session(&store).await;
    let outcome = session.acquire(&class(), &key("acct-1")).await;
    assert!(
        matches!(
            outcome,
            Err(AcquireError::Sealed(SealReason::OtherCluster { .. }))
        ),
        "{outcome:?}"
    );
    let operator = superuser(&copy).await;
    let low = operator
        .batch_execute("SELECT fence_lock.advance(1, 'a copy')")
        .await;
    assert!(low.is_err(), "an epoch that is not higher was begun");
    operator
        .batch_execute("SELECT fence_lock.advance(2, 'a copy')")
        .await
        .unwrap();
    let after = session.acquire(&class(), &key("acct-1")).await.unwrap();
    let (epoch, _) = after.token().unwrap().split().unwrap();
    assert_eq!(epoch.as_u16(), 2);
    assert_ne!(after.token().unwrap(), before);
    let record = store.epoch().await.unwrap().unwrap();
    assert_eq!((record.epoch.as_u16(), record.reason.as_str()), (2, "a copy"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_role_that_is_let_in_takes_locks_and_writes_no_table() {
    let (address, _store) = installed().await;
    let owner = psql(&address).await;
    let role = format!("{}_holder", address.database());
    let login = postgres().await.create_login(&role).await.unwrap();
    let theirs = postgres().await.url(address.database(), &login);
    owner
        .batch_execute(&format!(
            "GRANT CONNECT ON DATABASE {} TO {role}",
            address.database()
        ))
        .await
        .unwrap();
    let store = PostgresStore::connect(theirs.as_str(), tier()).await.unwrap();
    assert!(Session::open(store.clone(), Ttl::default()).await.is_err());
    owner
        .batch_execute(&format!("SELECT fence_lock.let_in('{role}')"))
        .await
        .unwrap();
    // However the role is set up, a lock is taken as it must be.
    set_up_badly(&role).await;
    let store = PostgresStore::connect(theirs.as_str(), tier()).await.unwrap();
    let session = session(&store).await;
    let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
    assert!(store.holder(&class(), &key("acct-1")).await.unwrap().is_some());
    let _ = hold.release().await.unwrap();
    session.close().await.unwrap();

    let client = psql(&theirs).await;
    client
        .batch_execute("SET default_transaction_read_only = off")
        .await
        .unwrap();
    for statement in [
        "UPDATE fence_lock.lock SET last_token = 1",
        "DELETE FROM fence_lock.session",
        "INSERT INTO fence_lock.epoch VALUES (2, '', 'entity', 'x')",
        "SELECT nextval('fence_lock.token')",
        "SELECT fence_lock.advance(2, 'x')",
        "SELECT fence_lock.end_lapsed('x')",
        "SELECT fence_lock.let_in('x')",
    ] {
        let error = client.batch_execute(statement).await.unwrap_err();
        assert_eq!(
            error.code(),
            Some(&tokio_postgres::error::SqlState::INSUFFICIENT_PRIVILEGE),
            "{statement}"
        );
    }
}

/// Settings that would break the grant if it relied on them.
async fn set_up_badly(role: &str) {
    let administrator = superuser("postgres").await;
    administrator
        .batch_execute(&format!(
            "ALTER ROLE {role} SET default_transaction_isolation = 'serializable';
             ALTER ROLE {role} SET default_transaction_read_only = on;
             ALTER ROLE {role} SET synchronous_commit = off;
             ALTER ROLE {role} SET standard_conforming_strings = off;
             ALTER ROLE {role} SET search_path = ''"
        ))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewal_on_its_way_to_commit_wins_over_whoever_finds_the_lease_expired() {
    let (address, store) = installed().await;
    let mut holder = psql(&address).await;
    holder
        .batch_execute(
            "SELECT fence_lock.open('slow', 2000);
             SELECT fence_lock.acquire('slow', 'paydb.account', '{acct-1}', 'g1', 'entity')",
        )
        .await
        .unwrap();
    // Renewed in time, and committed when it has been over for long.
    let renewal = holder.transaction().await.unwrap();
    renewal
        .batch_execute("SELECT fence_lock.renew('slow')")
        .await
        .unwrap();
    let taker = session(&store).await;
    let taking = tokio::spawn(async move { taker.acquire(&class(), &key("acct-1")).await });
    tokio::time::sleep(Duration::from_millis(2500)).await;
    assert!(!taking.is_finished(), "a lease was ended under its renewal");
    renewal
        .batch_execute("UPDATE fence_lock.session SET expires_at = clock_timestamp() + interval '1 h'")
        .await
        .unwrap();
    renewal.commit().await.unwrap();
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(
        !taking.is_finished(),
        "a lock was taken from a lease that was renewed"
    );
    assert_eq!(
        text(&psql(&address).await, "SELECT grant_id FROM fence_lock.held").await,
        "g1"
    );
    taking.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_listening_connection_is_lost_is_granted_all_the_same() {
    let (address, store) = installed().await;
    let (holder, waiter) = (session(&store).await, session(&store).await);
    let hold = holder.acquire(&class(), &key("acct-1")).await.unwrap();
    let waiting = tokio::spawn(async move { waiter.acquire(&class(), &key("acct-1")).await });
    let administrator = superuser(address.database()).await;
    let mut ended = 0;
    while ended == 0 {
        ended = administrator
            .execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                 WHERE datname = current_database() AND query LIKE 'LISTEN %'",
                &[],
            )
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let _ = hold.release().await.unwrap();
    let granted = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    assert!(granted.unwrap().unwrap().is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hand_over_wakes_its_waiter_long_before_any_lease_expires() {
    let (_address, store) = installed().await;
    let long = Ttl::from_secs(600).unwrap();
    let holder = Session::open(store.clone(), long).await.unwrap();
    let waiter = Session::open(store.clone(), long).await.unwrap();
    let mut hold = holder.acquire(&class(), &key("acct-1")).await.unwrap();
    for _ in 0..5 {
        let waiting = tokio::spawn({
            let waiter = waiter.clone();
            async move { waiter.acquire(&class(), &key("acct-1")).await }
        });
        while store.waiters(&class(), &key("acct-1")).await.unwrap() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Time for the waiter to listen and to look once more.
        tokio::time::sleep(Duration::from_millis(600)).await;
        let began = std::time::Instant::now();
        let _ = hold.release().await.unwrap();
        hold = waiting.await.unwrap().unwrap();
        assert!(
            began.elapsed() < Duration::from_secs(3),
            "nobody was woken for {:?}",
            began.elapsed()
        );
    }
    let _ = hold.release().await.unwrap();
}
