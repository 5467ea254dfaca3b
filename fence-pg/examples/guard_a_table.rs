//! Guards a table, writes under a token, and sees an older token refused: `DATABASE_URL=… cargo run --example guard_a_table`.

use fence_core::{Claim, ClassName, Effect, GrantId, Key, Token};
use fence_pg::GuardError;
use fence_pg::sqlx::{begin, install, raise_mark};

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let pool = sqlx::PgPool::connect(&std::env::var("DATABASE_URL")?).await?;
    // Once: the guard, and a table that nobody writes without admission.
    install(&mut *pool.acquire().await?).await?;
    let guarded_table = "CREATE TABLE IF NOT EXISTS orders (id bigint PRIMARY KEY, state text NOT NULL);
        SELECT fence.declare('shop.order', 'entity');
        SELECT fence.register_epoch('entity', 1);
        SELECT fence.protect('orders', 'shop.order', 'id');";
    sqlx::raw_sql(guarded_table).execute(&pool).await?;

    // Two holders of the lock on order 43, the second one newer. fence-lock's holds make such claims themselves.
    let older = claim(281_474_976_710_680, "c7e0")?;
    let newer = claim(281_474_976_710_681, "d3f8")?;

    // The newer one fences, then reads, then writes.
    drop(raise_mark(&pool, &newer).await?);
    let mut order = begin(&pool, &newer).await?;
    sqlx::query("INSERT INTO orders VALUES (43, 'paid') ON CONFLICT DO NOTHING")
        .execute(order.connection())
        .await?;
    let receipt = order.commit(Effect::Applied).await?;
    println!("written under token {}", receipt.claim().token);

    // The older one wakes up.
    match begin(&pool, &older).await {
        Err(GuardError::Refused(why)) => println!("refused: {why}"),
        Err(other) => return Err(other.into()),
        Ok(_) => return Err("the older holder was let in".into()),
    }
    Ok(())
}

fn claim(token: i64, grant: &str) -> Result<Claim, Failure> {
    Ok(Claim {
        class: ClassName::new("shop.order")?,
        key: Key::integer(43),
        token: Token::new(token)?,
        grant_id: Some(GrantId::new(grant)?),
    })
}
