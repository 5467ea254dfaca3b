//! Private PostgreSQL and etcd.

use pause_kit::services::for_tests;
use tokio_postgres::NoTls;

#[tokio::test]
async fn a_fresh_database_belongs_to_a_role_without_superuser_rights() {
    let database = for_tests().await.fresh_database().await;
    let (client, connection) = tokio_postgres::connect(database.as_str(), NoTls).await.unwrap();
    tokio::spawn(connection);
    let query = "SELECT rolsuper, rolname = current_user FROM pg_roles JOIN pg_database d ON datdba = pg_roles.oid \
                 WHERE datname = current_database()";
    let row = client.query_one(query, &[]).await.unwrap();
    assert_eq!((row.get(0), row.get(1)), (false, true));
    client
        .batch_execute("CREATE SCHEMA fence; CREATE TABLE fence.t (a int)")
        .await
        .unwrap();
}
