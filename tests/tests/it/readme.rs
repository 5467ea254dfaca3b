//! README's SQL, run as README says.

use std::path::Path;

use pause_kit::services::for_tests;

use crate::source::{files, read};

fn blocks() -> Vec<String> {
    let readme = read(Path::new("README.md"));
    readme
        .split("```sql\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn the_sql_in_the_readme_guards_a_table_and_refuses_the_stale_holder() {
    let database = for_tests().await.fresh_database().await;
    let (client, connection) = tokio_postgres::connect(database.as_str(), tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    let mut sql: Vec<_> = files()
        .into_iter()
        .filter(|file| file.starts_with("fence-pg/sql"))
        .collect();
    sql.sort();
    assert!(sql.len() >= 5);
    for file in sql {
        client
            .batch_execute(&read(&file))
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }

    let blocks = blocks();
    let [once, holder, stale] = blocks.as_slice() else {
        panic!("README has {} blocks of SQL", blocks.len())
    };
    client.batch_execute(once).await.unwrap();
    client.batch_execute(holder).await.unwrap();
    let refused = client.batch_execute(stale).await.unwrap_err();
    let refused = refused.as_db_error().unwrap();
    assert_eq!(refused.code().code(), "ZF001");
    let detail = refused.detail().unwrap();
    assert_eq!(detail, "presented 281474976710673, seen 281474976710679");
    assert!(
        read(Path::new("README.md")).contains(detail),
        "README quotes the DETAIL"
    );
    let row = client
        .query_one("SELECT state FROM orders WHERE id = 42", &[])
        .await
        .unwrap();
    assert_eq!(row.get::<_, String>(0), "paid");
}
