//! How a class is proven is declared otherwise than it was proven.

use std::fs;

use super::faults::{EVIDENCE, FENCED, Fault, fault, replace};
use super::project::{Failure, GUARD, Project, SETTLEMENT_GUARD};

const ACCOUNT: &[&str] = &["paydb.account"];
const SETTLEMENT: &[&str] = &["paydb.settlement"];
const DEFEAT: &str = "reference-resource/defeat/admit_everything.sql";

/// What fence.toml says, each once for a class or its target: what, the class, what stands there, and what is written instead.
const DECLARED: &[(&str, &[&str], &str, &str)] = &[
    ("ttl", ACCOUNT, "ttl = \"2s\"", "ttl = \"60s\""),
    ("ttl", SETTLEMENT, "ttl = \"10s\"", "ttl = \"3600s\""),
    ("ttl left out", ACCOUNT, "ttl = \"2s\"\n", ""),
    ("tier", ACCOUNT, "tier = \"entity\"", "tier = \"coord\""),
    ("tier", SETTLEMENT, "tier = \"coord\"", "tier = \"entity\""),
    ("guard", SETTLEMENT, "guard = \"column\"", "guard = \"mark\""),
    ("scenarios", ACCOUNT, "\"S01\", \"S02\", ", "\"S02\", "),
    (
        "order of scenarios",
        ACCOUNT,
        "\"S01\", \"S02\"",
        "\"S02\", \"S01\"",
    ),
    ("keys", SETTLEMENT, "\"batch-{n}\"", "\"bundle-{n}\""),
    ("deed", ACCOUNT, "deed = \"refunded\"", "deed = \"debited\""),
    ("deed", SETTLEMENT, "deed = \"settled\"", "deed = \"paid\""),
    (
        "holder's command",
        ACCOUNT,
        "\"--reference\", \"order-7\"",
        "\"--reference\", \"order-8\"",
    ),
    (
        "holder's command",
        SETTLEMENT,
        "\"{bin}/paydb-worker\", \"settlement\"",
        "\"{bin}/worker\", \"settlement\"",
    ),
    (
        "holder's variants",
        ACCOUNT,
        "unraised = [\"--read-first\"]",
        "unraised = []",
    ),
    ("front", ACCOUNT, "probe {id}", "attempt {id}"),
    (
        "read",
        ACCOUNT,
        "id = \"idempotency_key\"\n\n",
        "id = \"key\"\n\n",
    ),
    (
        "writes",
        ACCOUNT,
        "table = \"public.transfer\"",
        "table = \"public.moved\"",
    ),
    (
        "writes",
        SETTLEMENT,
        "table = \"public.settlement_batch\"",
        "table = \"public.batch\"",
    ),
    ("a column left out", SETTLEMENT, "token = \"fence_token\"\n", ""),
    (
        "balances",
        ACCOUNT,
        "SELECT id, balance FROM account",
        "SELECT id, balance + 0 FROM account",
    ),
    ("preparation", ACCOUNT, "\"balance\":100000", "\"balance\":100001"),
    (
        "what is defeated on the path",
        SETTLEMENT,
        "replace = \"lock_timeout = '0000ms'\"",
        "replace = \"lock_timeout = '2000ms'\"",
    ),
    (
        "the resource's command",
        ACCOUNT,
        "[\"{bin}/paydb\", ",
        "[\"{bin}/another\", ",
    ),
    (
        "the target's set-up",
        ACCOUNT,
        "SELECT fence.register_epoch('entity', 1)",
        "SELECT fence.register_epoch('entity', 2)",
    ),
    (
        "the target's guard",
        ACCOUNT,
        "guard_sql = \"fence-pg/sql\"",
        "guard_sql = \"settlement-guard\"",
    ),
    (
        "the target",
        SETTLEMENT,
        "target = \"settlements\"",
        "target = \"paydb\"",
    ),
];

/// Everything that is declared of a proof in turn, and each byte that it names.
pub(super) fn of_proofs(project: &Project) -> Result<Vec<Fault>, Failure> {
    let declared = DECLARED.iter().map(|(what, class, from, to)| {
        fault(format!("another {what} of {}", class[0]), class, move |project| {
            replace(project, "fence.toml", from, to)
        })
    });
    let mut faults: Vec<Fault> = declared.collect();
    for (bound, from, to) in [
        ("deadline_ms", "deadline_ms = 2000", "deadline_ms = 30000"),
        ("idle_ms", "idle_ms = 5000", "idle_ms = 50000"),
    ] {
        faults.push(fault(
            format!("another {bound} of paydb.account"),
            ACCOUNT,
            move |project| replace(project, "fence.toml", from, to),
        ));
        faults.push(fault(
            format!("another {bound} of paydb.settlement"),
            SETTLEMENT,
            move |project| {
                project.edit("fence.toml", |text| {
                    let (before, last) = text.rsplit_once(from).ok_or("there is no bound")?;
                    Ok(format!("{before}{to}{last}"))
                })
            },
        ));
    }
    faults.push(fault(
        "one byte of the SQL that defeats is another",
        FENCED,
        |project| project.edit(DEFEAT, |text| Ok(format!("{}\t", &text[..text.len() - 1]))),
    ));
    faults.push(fault(
        "the guards of the two classes are exchanged",
        FENCED,
        |project| {
            let folder = project.path();
            fs::rename(folder.join(GUARD), folder.join("between"))?;
            fs::rename(folder.join(SETTLEMENT_GUARD), folder.join(GUARD))?;
            Ok(fs::rename(folder.join("between"), folder.join(SETTLEMENT_GUARD))?)
        },
    ));
    faults.extend(of_evidence());
    faults.extend(of_guard(project, GUARD, ACCOUNT)?);
    faults.extend(of_guard(project, SETTLEMENT_GUARD, SETTLEMENT)?);
    Ok(faults)
}

/// The digests in evidence.json.
fn of_evidence() -> Vec<Fault> {
    let other = |text: &str, member: &str| -> Result<String, Failure> {
        let anchor = format!("\"{member}\": \"");
        let (before, rest) = text.split_once(&anchor).ok_or(format!("there is no {member}"))?;
        let digit = if rest.starts_with('0') { '1' } else { '0' };
        Ok(format!("{before}{anchor}{digit}{}", &rest[1..]))
    };
    let mut faults = Vec::new();
    // The first class is that of the accounts.
    for member in ["declared", "guard_sql", "defeat_sql"] {
        faults.push(fault(
            format!("another digest {member} is listed"),
            ACCOUNT,
            move |project| project.edit(EVIDENCE, |text| other(text, member)),
        ));
    }
    faults.push(fault(
        "another digest of all guards is listed",
        FENCED,
        move |project| project.edit(EVIDENCE, |text| other(text, "sha256")),
    ));
    faults.push(fault(
        "the evidence does not say how the accounts were proven",
        ACCOUNT,
        |project| replace(project, EVIDENCE, "\"proven_by\": {", "\"was_proven_by\": {"),
    ));
    faults
}

/// One byte of each file of a guard's SQL in turn.
fn of_guard(project: &Project, folder: &'static str, class: &[&str]) -> Result<Vec<Fault>, Failure> {
    let mut faults = Vec::new();
    for item in fs::read_dir(project.path().join(folder))? {
        let name = item?.file_name().to_string_lossy().into_owned();
        let path = format!("{folder}/{name}");
        faults.push(fault(
            format!("one byte of {path} is another"),
            class,
            move |project| project.edit(&path, |text| Ok(format!("{}\t", &text[..text.len() - 1]))),
        ));
    }
    faults.push(fault(
        format!("{folder} has one more file"),
        class,
        move |project| Ok(fs::write(project.path().join(folder).join("9999_more.sql"), "")?),
    ));
    Ok(faults)
}
