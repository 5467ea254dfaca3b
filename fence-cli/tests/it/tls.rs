//! A server whose certificate comes from an authority of the test's own.

use std::time::{Duration, Instant};

use pause_kit::services::for_tests;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use sqlx::Row as _;

use crate::command::Said;
use crate::database::{Database, fence_with};

/// An authority, and its certificate.
fn authority() -> (Issuer<'static, KeyPair>, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    (Issuer::new(params, key), certificate.pem())
}

/// Lets the server speak TLS, with a certificate for this name.
async fn speak_tls(database: &Database, issuer: &Issuer<'static, KeyPair>, name: &str) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();
    // Written by the server, so that the files are its own, into the folder that it stands in.
    for (file, text) in [("test.crt", certificate.pem()), ("test.key", key.serialize_pem())] {
        let lines = text.trim_end().replace('\n', "\\n");
        database
            .run_as_superuser(&format!(
                "COPY (SELECT unnest(string_to_array(E'{lines}', E'\\n'))) TO PROGRAM 'umask 077; cat > {file}'"
            ))
            .await;
    }
    database
        .run_as_superuser("ALTER SYSTEM SET ssl_cert_file = 'test.crt'")
        .await;
    database
        .run_as_superuser("ALTER SYSTEM SET ssl_key_file = 'test.key'")
        .await;
    database.run_as_superuser("ALTER SYSTEM SET ssl = on").await;
    database.run_as_superuser("SELECT pg_reload_conf()").await;
    let began = Instant::now();
    while database.run_as_superuser("SHOW ssl").await[0].get::<String, _>(0) != "on" {
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "the server does not speak TLS"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn verify_full_takes_the_right_name_from_the_right_authority_and_nothing_else() {
    let database = Database::bare().await;
    let (issuer, root) = authority();
    speak_tls(&database, &issuer, "localhost").await;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let (right, wrong) = (file("right.pem", &root), file("wrong.pem", &authority().1));
    let login = database.url.login();
    let port = for_tests().await.postgres().port();
    let status = |host: &str, parameters: &str| -> Said {
        let url = format!(
            "postgresql://{}:{}@{host}:{port}/{}?{parameters}",
            login.role,
            login.password,
            database.url.database()
        );
        fence_with(&["pg", "status", "--database-url", &url], &[])
    };

    let said = status("localhost", &format!("sslmode=verify-full&sslrootcert={right}"));
    assert_eq!(said.code, 0, "{}", said.err);

    let said = status("127.0.0.1", &format!("sslmode=verify-full&sslrootcert={right}"));
    assert_eq!(said.code, 4, "{}", said.out);
    assert!(
        said.err.contains("whose certificate is for another name"),
        "{}",
        said.err
    );

    for parameters in [
        "sslmode=verify-full".to_owned(),
        format!("sslmode=verify-full&sslrootcert={wrong}"),
    ] {
        let said = status("localhost", &parameters);
        assert_eq!(said.code, 4, "{}", said.out);
        assert!(
            said.err.contains(
                "from an authority that this machine does not know: name its file in PGSSLROOTCERT"
            ),
            "{}",
            said.err
        );
    }
    assert_eq!(
        status("localhost", "sslmode=verify-full&sslrootcert=/nonexistent").code,
        4
    );
    assert_eq!(
        status("127.0.0.1", &format!("sslmode=verify-ca&sslrootcert={right}")).code,
        0
    );
}
