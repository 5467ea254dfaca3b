//! Every test's database is installed and used by an owner with no further rights. With FENCE_TEST_ROLE=owner that is looked at
//! in every one of them, and the file that FENCE_TEST_ROLES names gets a line of each test that did so and of each that asked
//! for a superuser beside it.

use std::fs::OpenOptions;
use std::io::Write;

use pause_kit::services::DatabaseUrl;

use crate::support::client;

/// What a database owner on managed PostgreSQL is not, in one row of the catalogue.
const FURTHER_RIGHTS: &str = "
    SELECT r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls
        OR EXISTS (SELECT FROM pg_auth_members m WHERE m.member = r.oid)
        OR NOT EXISTS (SELECT FROM pg_database d WHERE d.datname = current_database() AND d.datdba = r.oid)
    FROM pg_roles r WHERE r.rolname = current_user";

/// Fails unless the database belongs to the role that this address logs in as, and the role may do nothing else.
pub(crate) async fn look(url: &DatabaseUrl) {
    match std::env::var("FENCE_TEST_ROLE").as_deref() {
        Err(_) => return,
        Ok("owner") => {}
        Ok(other) => panic!("FENCE_TEST_ROLE is '{other}', and 'owner' is all that it may be"),
    }
    let client = client(url).await;
    let further: bool = client.query_one(FURTHER_RIGHTS, &[]).await.unwrap().get(0);
    assert!(!further, "{} may do more than own its database", url.login().role);
    note("owner");
}

/// Writes a line with this word and the running test's name.
pub(crate) fn note(word: &str) {
    let Ok(path) = std::env::var("FENCE_TEST_ROLES") else {
        return;
    };
    let thread = std::thread::current();
    let line = format!("{word} {}\n", thread.name().unwrap_or("?"));
    let mut file = OpenOptions::new().append(true).create(true).open(&path).unwrap();
    // In one piece, as tests run side by side.
    file.write_all(line.as_bytes()).unwrap();
}

#[tokio::test]
async fn an_owner_who_may_do_more_than_own_its_database_is_told() {
    let url = pause_kit::services::for_tests().await.fresh_database().await;
    let owner = client(&url).await;
    let further = async || -> bool { owner.query_one(FURTHER_RIGHTS, &[]).await.unwrap().get(0) };
    assert!(!further().await);
    let postgres = pause_kit::services::for_tests().await.postgres();
    let superuser = client(&postgres.superuser_url_of(url.database())).await;
    for (more, less) in [
        ("CREATEROLE", "NOCREATEROLE"),
        ("CREATEDB", "NOCREATEDB"),
        ("REPLICATION", "NOREPLICATION"),
        ("BYPASSRLS", "NOBYPASSRLS"),
        ("SUPERUSER", "NOSUPERUSER"),
    ] {
        let alter = |right: &str| format!("ALTER ROLE {} {right}", url.login().role);
        superuser.batch_execute(&alter(more)).await.unwrap();
        assert!(further().await, "{more}");
        superuser.batch_execute(&alter(less)).await.unwrap();
    }
    let member = format!("GRANT pg_read_all_data TO {}", url.login().role);
    superuser.batch_execute(&member).await.unwrap();
    assert!(further().await, "a member of another role");
}
