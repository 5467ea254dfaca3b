//! Partitions and children of the guarded table.

use super::bed::{Bed, CLASS, Role};
use super::finding;
use crate::measure::Failure;

/// A guarded table `part` with a partition of two levels, and a row of `acct-1` in each leaf.
async fn partitioned(bed: &Bed<'_>) -> Result<(), Failure> {
    bed.owner(&format!(
        "CREATE TABLE part (id integer, region text, account text NOT NULL, amount bigint NOT NULL) PARTITION BY LIST (region);
         CREATE TABLE part_eu PARTITION OF part FOR VALUES IN ('eu');
         CREATE TABLE part_us PARTITION OF part FOR VALUES IN ('us') PARTITION BY RANGE (id);
         CREATE TABLE part_us_low PARTITION OF part_us FOR VALUES FROM (0) TO (100);
         INSERT INTO part VALUES (1, 'eu', 'acct-1', 10), (2, 'us', 'acct-1', 20);
         SELECT fence.protect('part', '{CLASS}', 'account');"
    ))
    .await?;
    match bed.role {
        // One right more than an application needs, so that it is the guard that refuses.
        Role::Application => {
            bed.owner(&format!(
                "GRANT TRUNCATE ON ALL TABLES IN SCHEMA public TO {}",
                bed.app()
            ))
            .await
        }
        Role::Owner => Ok(()),
    }
}

pub(super) async fn leaf_partition(bed: &Bed<'_>) -> Result<(), Failure> {
    partitioned(bed).await?;
    for sql in [
        "INSERT INTO part_eu VALUES (3, 'eu', 'acct-1', 5)",
        "UPDATE part_us_low SET amount = 0",
        "DELETE FROM part_us_low",
        // From one leaf to another.
        "UPDATE part SET region = 'us' WHERE region = 'eu'",
    ] {
        bed.refused(&[], sql, "ZF002").await?;
        bed.refused(&["acct-2"], sql, "ZF006").await?;
        bed.control(&["acct-1"], sql).await?;
    }
    let moves = "UPDATE part SET region = 'us', account = 'acct-2' WHERE region = 'eu'";
    bed.refused(&["acct-1"], moves, "ZF006").await?;
    bed.refused(&["acct-2"], moves, "ZF006").await?;
    bed.control(&["acct-1", "acct-2"], moves).await?;
    for sql in ["TRUNCATE part_eu", "TRUNCATE part_us", "TRUNCATE part_us_low"] {
        bed.refused(&["acct-1"], sql, "ZF002").await?;
    }
    Ok(())
}

pub(super) async fn new_partition(bed: &Bed<'_>) -> Result<(), Failure> {
    partitioned(bed).await?;
    bed.owner(
        "CREATE TABLE part_as PARTITION OF part FOR VALUES IN ('as');
         CREATE TABLE part_us_high PARTITION OF part_us FOR VALUES FROM (100) TO (200);
         CREATE TABLE part_af (LIKE part);
         ALTER TABLE part ATTACH PARTITION part_af FOR VALUES IN ('af');",
    )
    .await?;
    if bed.role == Role::Application {
        bed.refused(&[], "TRUNCATE part_as", "42501").await?;
        bed.owner(&format!(
            "GRANT TRUNCATE ON ALL TABLES IN SCHEMA public TO {}",
            bed.app()
        ))
        .await?;
    }
    for sql in [
        "INSERT INTO part_as VALUES (3, 'as', 'acct-1', 5)",
        "INSERT INTO part_us_high VALUES (150, 'us', 'acct-1', 5)",
        "INSERT INTO part VALUES (150, 'af', 'acct-1', 5)",
    ] {
        bed.refused(&[], sql, "ZF002").await?;
        bed.refused(&["acct-2"], sql, "ZF006").await?;
        bed.control(&["acct-1"], sql).await?;
    }
    bed.named("TRUNCATE part_as", finding::PARTITION, "public.part_as")
        .await?;
    bed.owner(&format!("SELECT fence.protect('part', '{CLASS}', 'account')"))
        .await?;
    bed.refused(&["acct-1"], "TRUNCATE part_as", "ZF002").await
}

pub(super) async fn detached_partition(bed: &Bed<'_>) -> Result<(), Failure> {
    partitioned(bed).await?;
    let detach = "ALTER TABLE part DETACH PARTITION part_eu";
    match bed.role {
        Role::Application => {
            bed.refused(&[], detach, "42501").await?;
            bed.owner(detach).await?;
            bed.finds(finding::FORMER_PARTITION, "public.part_eu").await?;
        }
        Role::Owner => {
            bed.named(detach, finding::FORMER_PARTITION, "public.part_eu")
                .await?
        }
    }
    // It is another table now.
    bed.named(
        "UPDATE part_eu SET amount = 0",
        finding::FORMER_PARTITION,
        "public.part_eu",
    )
    .await?;
    bed.owner("ALTER TABLE part ATTACH PARTITION part_eu FOR VALUES IN ('eu')")
        .await?;
    bed.refused(&[], "UPDATE part_eu SET amount = 1", "ZF002").await?;
    bed.control(&["acct-1"], "UPDATE part_eu SET amount = 1").await
}

pub(super) async fn inheritance_child(bed: &Bed<'_>) -> Result<(), Failure> {
    bed.owner(&format!(
        "CREATE TABLE base (id integer, account text NOT NULL, amount bigint NOT NULL);
         CREATE TABLE child (note text) INHERITS (base);
         INSERT INTO child VALUES (1, 'acct-1', 10, '');
         SELECT fence.protect('base', '{CLASS}', 'account');
         GRANT TRUNCATE ON ALL TABLES IN SCHEMA public TO {};",
        bed.app()
    ))
    .await?;
    for sql in [
        "INSERT INTO child VALUES (3, 'acct-1', 5, '')",
        "UPDATE base SET amount = 0",
        "DELETE FROM child",
    ] {
        bed.refused(&[], sql, "ZF002").await?;
        bed.refused(&["acct-2"], sql, "ZF006").await?;
        bed.control(&["acct-1"], sql).await?;
    }
    bed.refused(&["acct-1"], "TRUNCATE child", "ZF002").await?;
    bed.refused(&["acct-1"], "TRUNCATE base", "ZF002").await?;
    // A child that is made later has no trigger of its parent's.
    let later = "CREATE TABLE later () INHERITS (base)";
    match bed.role {
        Role::Application => {
            bed.owner(&format!("GRANT CREATE ON SCHEMA public TO {}", bed.app()))
                .await?;
            bed.refused(&[], later, "42501").await?;
            bed.owner(later).await?;
        }
        Role::Owner => bed.named(later, finding::CHILD, "public.later").await?,
    }
    bed.named(
        "INSERT INTO later VALUES (4, 'acct-1', 5)",
        finding::CHILD,
        "public.later",
    )
    .await?;
    bed.owner(&format!("SELECT fence.protect('base', '{CLASS}', 'account')"))
        .await?;
    bed.refused(&[], "UPDATE base SET amount = 0", "ZF002").await
}
