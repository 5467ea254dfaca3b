//! `pg_dump` and what is made of its text.

use std::path::Path;
use std::process::Command;

use pause_kit::services::{DatabaseUrl, locate};

use super::bed::{Answer, Bed, CLASS, Role, connect};
use super::finding;
use crate::measure::Failure;

pub(super) async fn dump_and_restore(bed: &Bed<'_>) -> Result<(), Failure> {
    let programs = locate::postgres()?;
    let folder = tempfile::tempdir()?;
    let dump = |name: &str, arguments: &[&str]| -> Result<std::path::PathBuf, Failure> {
        let file = folder.path().join(name);
        let output = Command::new(programs.join("pg_dump"))
            .args(arguments)
            .arg("--file")
            .arg(&file)
            .arg(bed.owner.as_str())
            .output()?;
        if !output.status.success() {
            return Err(format!("pg_dump: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        Ok(file)
    };
    // A mark, and a payment that is taken back after the dump.
    bed.owner(&format!(
        "SELECT fence.raise_mark('{CLASS}', 'acct-1', {}, 'grant-newer')",
        (1_i64 << 48) + 5
    ))
    .await?;
    let whole = dump("whole.sql", &[])?;
    let rows = dump(
        "rows.sql",
        &[
            "--data-only",
            "--table=payment",
            "--inserts",
            "--on-conflict-do-nothing",
        ],
    )?;
    let unfenced = dump(
        "unfenced.sql",
        &[
            "--data-only",
            "--table=payment",
            "--disable-triggers",
            "--inserts",
            "--on-conflict-do-nothing",
        ],
    )?;
    bed.owner(&format!(
        "BEGIN; {}; DELETE FROM payment WHERE id = 1; COMMIT",
        super::bed::admit("acct-1")
    ))
    .await?;

    // The rows alone, into the guarded table.
    let before = bed.rows().await?;
    bed.count();
    expect(&psql(&programs, bed.url(), &rows)?, Some("ZF002"))?;
    bed.say("ZF002 (restore of rows)".to_owned());
    let restored = psql(&programs, bed.url(), &unfenced)?;
    match bed.role {
        Role::Application => {
            expect(&restored, Some("42501"))?;
            bed.say("42501 (restore --disable-triggers)".to_owned());
            if bed.rows().await? != before {
                return Err("a restore that was refused has changed something".into());
            }
        }
        Role::Owner => {
            expect(&restored, None)?;
            bed.finds(finding::TRIGGER_NOT_ALWAYS, "public.payment").await?;
        }
    }

    // All of it, into a new database: guard and marks are there again.
    let postgres = bed.services.postgres().ok_or("no PostgreSQL")?;
    let name = format!("{}_restored", bed.superuser.database());
    let created = format!("CREATE DATABASE {name} OWNER {}", bed.owner.login().role);
    super::bed::run(&postgres.superuser_url(), &created).await?;
    expect(
        &psql(&programs, &postgres.url(&name, bed.owner.login()), &whole)?,
        None,
    )?;
    let restored = postgres.url(&name, bed.url().login());
    let client = connect(&restored).await?;
    let forgotten = client
        .batch_execute("INSERT INTO payment VALUES (3, 'acct-1', 5)")
        .await;
    code_of(forgotten, &["ZF002"])?;
    // The mark is there too; or the guard has seen that this is another database, and wants to be told.
    let stale = client
        .batch_execute(&format!(
            "SELECT fence.admit('{CLASS}', 'acct-1', {}, 'grant-older')",
            (1_i64 << 48) + 4
        ))
        .await;
    code_of(stale, &["ZF001", "ZF008"])?;
    bed.count();
    bed.say("ZF002 and the old token refused (in the restored database)".to_owned());
    Ok(())
}

/// Runs a file as a role, and returns what went wrong.
fn psql(programs: &Path, url: &DatabaseUrl, file: &Path) -> Result<Option<String>, Failure> {
    let output = Command::new(programs.join("psql"))
        .args([
            "--no-psqlrc",
            "--quiet",
            "-v",
            "ON_ERROR_STOP=1",
            "-v",
            "VERBOSITY=verbose",
            "--file",
        ])
        .arg(file)
        .arg(url.as_str())
        .output()?;
    Ok((!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// Whether it went wrong with this code, or not at all.
fn expect(trouble: &Option<String>, code: Option<&str>) -> Result<(), Failure> {
    match (trouble, code) {
        (None, None) => Ok(()),
        (Some(text), Some(code)) if text.contains(&format!("ERROR:  {code}: ")) => Ok(()),
        (None, Some(code)) => Err(format!("a restore went through that must be refused with {code}").into()),
        (Some(text), _) => Err(format!("a restore failed, wanted {code:?}: {text}").into()),
    }
}

/// Whether a statement was refused with one of these codes.
fn code_of(result: Result<(), tokio_postgres::Error>, codes: &[&str]) -> Result<(), Failure> {
    match result.map_err(Answer::of) {
        Err(Ok(Answer::Refused(error))) if codes.contains(&error.code().code()) => Ok(()),
        Err(Ok(Answer::Refused(error))) => Err(format!("{} {}", error.code().code(), error.message()).into()),
        Err(Err(error)) => Err(error),
        _ => Err(format!("not refused with {codes:?}").into()),
    }
}
