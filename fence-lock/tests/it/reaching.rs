//! How the stores are reached: several members, TLS, a user and password.

use std::time::Duration;

use fence_core::{Epoch, Ttl};
use fence_lock::{
    ConnectError, EtcdOptions, EtcdStore, PostgresStore, Session, StoreError, Tls, VersionWarning,
};
use pause_kit::services::free_port;
use rcgen::{Issuer, KeyPair};

use crate::secure::{Secure, authority, certificate};
use crate::support::{
    class, database, endpoint, etcd_version, fresh_prefix, key, postgres, psql, session, store_in, tier,
};

fn words(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(&format!(": {source}"));
        next = source.source();
    }
    text
}

#[tokio::test]
async fn etcd_is_reached_under_tls_with_a_certificate_and_a_user_and_in_no_lesser_way() {
    let etcd = Secure::start().await;
    let store = EtcdStore::connect_with(etcd.options("p")).await.unwrap();
    store.init(Epoch::FIRST, "a test").await.unwrap();

    let strangers = Tls::new().ca_certificate(authority().1);
    let (certificate, key_pem) = etcd.client();
    for (what, tls) in [
        (
            "an authority of somebody else's",
            strangers.identity(certificate, key_pem),
        ),
        ("the machine's authorities", Tls::new()),
        ("no certificate", Tls::new().ca_certificate(etcd.ca())),
        ("another name", etcd.tls().server_name("db.example")),
    ] {
        let options = EtcdOptions::new(&[etcd.endpoint()], "p", tier()).tls(tls);
        let error = EtcdStore::connect_with(options)
            .await
            .err()
            .unwrap_or_else(|| panic!("{what} will do"));
        assert!(
            matches!(error, ConnectError::Store(StoreError::Unreachable { .. })),
            "{what}: {error:?}"
        );
    }
    let plain = etcd.endpoint().replace("https", "http");
    let mixed = EtcdOptions::new(&[plain, etcd.endpoint()], "p", tier());
    let error = EtcdStore::connect_with(mixed).await.unwrap_err();
    assert!(matches!(error, ConnectError::NotAllTls { .. }), "{error:?}");

    etcd.require_users("p/").await;
    // Without a user etcd takes the certificate's name for one, and knows nobody of that name.
    let error = EtcdStore::connect_with(etcd.options("p")).await.unwrap_err();
    assert!(words(&error).contains("permission denied"), "{}", words(&error));
    let still = store.holder(&class(), &key("acct-1")).await;
    assert!(still.is_err(), "a connection that stood goes on without a user");
    let error = EtcdStore::connect_with(etcd.options("p").user("holder", "wrong"))
        .await
        .unwrap_err();
    assert!(
        words(&error).contains("authentication failed"),
        "{}",
        words(&error)
    );
    let error = EtcdStore::connect_with(etcd.options("q").user("holder", "holder-secret"))
        .await
        .unwrap_err();
    assert!(words(&error).contains("permission denied"), "{}", words(&error));

    // The whole life of a hold, keepalives and waiting included.
    let holder = etcd.options("p").user("holder", "holder-secret");
    assert!(!format!("{holder:?}").contains("holder-secret"));
    let store = EtcdStore::connect_with(holder.clone()).await.unwrap();
    let first = Session::open(store.clone(), Ttl::MIN).await.unwrap();
    let second = Session::open(EtcdStore::connect_with(holder).await.unwrap(), Ttl::MIN)
        .await
        .unwrap();
    let hold = first.acquire(&class(), &key("acct-1")).await.unwrap();
    let waiting = tokio::spawn({
        let second = second.clone();
        async move { second.acquire(&class(), &key("acct-1")).await }
    });
    tokio::time::sleep(Ttl::MIN.as_duration() * 2).await;
    let before = hold.token().unwrap();
    let _ = hold.release().await.unwrap();
    let after = waiting.await.unwrap().unwrap().token().unwrap();
    assert!(before.as_i64() < after.as_i64());
    first.close().await.unwrap();
    second.close().await.unwrap();
}

#[tokio::test]
async fn members_that_are_not_there_are_passed_over_by_every_kind_of_request() {
    let (prefix, there) = (fresh_prefix(), endpoint().await);
    store_in(&prefix).await;
    let nobody = || format!("http://127.0.0.1:{}", free_port().unwrap());
    // The first to be asked is chosen by lot.
    for _ in 0..12 {
        let endpoints = [nobody(), there.clone(), nobody()];
        let store = EtcdStore::connect(&endpoints, &prefix, tier()).await.unwrap();
        let session = session(&store).await;
        let hold = session.acquire(&class(), &key("acct-1")).await.unwrap();
        let _ = hold.release().await.unwrap();
        session.close().await.unwrap();
        let versions = store.member_versions().await;
        let said: Vec<Option<&str>> = versions.iter().map(|member| member.version.as_deref()).collect();
        assert_eq!(said, [None, Some(etcd_version().await), None]);
        let warned: Vec<Option<VersionWarning>> = versions.iter().map(|member| member.warning()).collect();
        assert_eq!(warned, [None, VersionWarning::of(etcd_version().await), None]);
    }
}

#[tokio::test]
async fn postgresql_is_reached_under_tls_and_only_where_its_certificate_is_right() {
    let address = database().await;
    let (issuer, ca) = authority();
    speak_tls(&issuer).await;
    let login = address.login();
    let url = |host: &str| {
        format!(
            "postgres://{}:{}@{host}:{}/{}",
            login.role,
            login.password,
            login_port(address.as_str()),
            address.database()
        )
    };
    let right = Tls::new().ca_certificate(ca);
    let store = PostgresStore::connect_with(&url("localhost"), tier(), &right, None)
        .await
        .unwrap();
    store.install().await.unwrap();
    store.init(Epoch::FIRST, "a test").await.unwrap();
    // Waiters' connections too, of sessions that a busy machine does not fence.
    let ttl = Ttl::from_secs(20).unwrap();
    let (first, second) = (
        Session::open(store.clone(), ttl).await.unwrap(),
        Session::open(store, ttl).await.unwrap(),
    );
    let hold = first.acquire(&class(), &key("acct-1")).await.unwrap();
    let waiting = tokio::spawn(async move {
        second
            .acquire(&class(), &key("acct-1"))
            .await
            .map(|hold| hold.token())
    });
    let client = psql(&address).await;
    let mut under_tls = Vec::new();
    for _ in 0..1000 {
        let rows = client
            .query(
                "SELECT s.ssl, count(*) FROM pg_stat_activity a JOIN pg_stat_ssl s USING (pid) \
                 WHERE a.datname = current_database() AND a.application_name = 'fence-lock' GROUP BY 1",
                &[],
            )
            .await
            .unwrap();
        under_tls = rows
            .iter()
            .map(|row| (row.get::<_, bool>(0), row.get::<_, i64>(1)))
            .collect();
        if under_tls.iter().map(|(_, count)| count).sum::<i64>() >= 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(matches!(under_tls.as_slice(), [(true, 2..)]), "{under_tls:?}");
    let _ = hold.release().await.unwrap();
    assert!(waiting.await.unwrap().unwrap().is_ok());

    for (what, host, tls) in [
        (
            "an authority of somebody else's",
            "localhost",
            Tls::new().ca_certificate(authority().1),
        ),
        ("the machine's authorities", "localhost", Tls::new()),
        ("another name", "127.0.0.1", right.clone()),
    ] {
        let refused = PostgresStore::connect_with(&url(host), tier(), &tls, None).await;
        assert!(refused.is_err(), "{what} will do");
    }
    let elsewhere =
        PostgresStore::connect(&format!("{}?sslmode=verify-full", url("localhost")), tier()).await;
    assert!(
        elsewhere.is_err(),
        "a certificate of an unknown authority will do"
    );
    let nothing =
        PostgresStore::connect_with(&url("localhost"), tier(), &Tls::new().ca_certificate("?"), None).await;
    assert!(nothing.is_err());
}

fn login_port(url: &str) -> u16 {
    let config: tokio_postgres::Config = url.parse().unwrap();
    config.get_ports()[0]
}

/// Lets the shared server speak TLS, with a certificate for `localhost`.
async fn speak_tls(issuer: &Issuer<'static, KeyPair>) {
    let (certificate, key) = certificate(issuer, "localhost");
    let server = postgres().await;
    let client = psql(&server.superuser_url()).await;
    // Written by the server, so that the files are its own, into the folder that it stands in.
    for (file, text) in [("test.crt", certificate), ("test.key", key)] {
        let lines = text.trim_end().replace('\n', "\\n");
        let copy = format!(
            "COPY (SELECT unnest(string_to_array(E'{lines}', E'\\n'))) TO PROGRAM 'umask 077; cat > {file}'"
        );
        client.batch_execute(&copy).await.unwrap();
    }
    for set in [
        "ALTER SYSTEM SET ssl_cert_file = 'test.crt'",
        "ALTER SYSTEM SET ssl_key_file = 'test.key'",
        "ALTER SYSTEM SET ssl = on",
        "SELECT pg_reload_conf()",
    ] {
        client.batch_execute(set).await.unwrap();
    }
    for _ in 0..1000 {
        let on = client.query_one("SHOW ssl", &[]).await.unwrap();
        if on.get::<_, &str>(0) == "on" {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the server does not speak TLS");
}
