//! PostgreSQL guards that refuse stale fencing tokens: plain SQL, sqlx and tokio-postgres.
