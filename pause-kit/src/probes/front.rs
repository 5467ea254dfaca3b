//! Through the resource's own front door, as any client would; where holders write to the database themselves, to the guard
//! there, on the class under proof.

use std::time::Instant;

use fence_core::{Epoch, GrantId, Key, Token};

use super::asked::{Ask, open};
use crate::history::{Presented, Probe, ProbeKind, Reply};
use crate::run::RunError;
use crate::scenario::{Granted, Half, send};
use crate::target::{Front, RequestForm};

/// A forged or misplaced write.
struct Forged {
    kind: ProbeKind,
    key: usize,
    token: Option<Token>,
    name: &'static str,
}

/// A bystander on a key that nobody contests; on the contested one a collision, a raise by the older holder, a token outside
/// every range, and none.
pub(super) async fn ask(half: &Half<'_>) -> Result<(), RunError> {
    let holders = half.holders();
    let Some(first) = holders.first().and_then(|first| first.grant()) else {
        // Nothing was granted, so nothing was shown; the missing probes say so.
        return Ok(());
    };
    let older = first.token;
    let Some(front) = &half.task.class.proof.front else {
        return beside_it(half, first).await;
    };
    let forged = |kind, key, token, name| Forged {
        kind,
        key,
        token,
        name,
    };
    put(
        half,
        front,
        forged(ProbeKind::Bystander, 2, Some(older), "bystander"),
    )
    .await?;
    if let Some(mark) = mark(half).await? {
        put(
            half,
            front,
            forged(ProbeKind::Collision, 0, Some(mark), "collision"),
        )
        .await?;
        if mark != older {
            raise(half, front, first, mark).await?;
        }
    }
    if let Some(outside) = outside(older) {
        put(
            half,
            front,
            forged(ProbeKind::OutsideRange, 0, Some(outside), "outside"),
        )
        .await?;
    }
    put(half, front, forged(ProbeKind::MissingToken, 0, None, "missing")).await
}

/// The same questions, to the guard itself.
async fn beside_it(half: &Half<'_>, first: &Granted) -> Result<(), RunError> {
    let older = first.token;
    let class = half.task.class.name.as_str();
    let [contested, _, bystander] = &half.keys;
    let grant = GrantId::new("probe-sql").expect("letters and a hyphen");
    let sql = open(half).await?;
    Ask::new(ProbeKind::Bystander, class, bystander.as_str(), older.as_i64())
        .by(&grant)
        .put(half, &sql)
        .await?;
    let contested = contested.as_str();
    if let Some(mark) = mark(half).await? {
        Ask::new(ProbeKind::Collision, class, contested, mark.as_i64())
            .by(&grant)
            .put(half, &sql)
            .await?;
        if mark != older {
            Ask::new(ProbeKind::StaleRaise, class, contested, older.as_i64())
                .by(&first.grant)
                .meets(mark.as_i64())
                .put(half, &sql)
                .await?;
        }
    }
    if let Some(outside) = outside(older) {
        Ask::new(ProbeKind::OutsideRange, class, contested, outside.as_i64())
            .by(&grant)
            .put(half, &sql)
            .await?;
    }
    let missing = Ask::new(ProbeKind::MissingToken, class, contested, older.as_i64());
    missing.by(&grant).without_token().put(half, &sql).await
}

async fn put(half: &Half<'_>, front: &Front, forged: Forged) -> Result<(), RunError> {
    let grant = GrantId::new(format!("probe-{}", forged.name)).expect("letters and a hyphen");
    let claim = forged.token.map(|token| (token, &grant));
    let request = Request {
        form: &front.write,
        key: &half.keys[forged.key],
        claim,
        id: format!("{grant}:1"),
    };
    let probe = request.put(half, forged.kind).await?;
    half.recorder.record(half.recorder.now(), probe);
    Ok(())
}

/// The older holder's own claim once more, on the contested key, whose mark is newer.
async fn raise(half: &Half<'_>, front: &Front, first: &Granted, mark: Token) -> Result<(), RunError> {
    let request = Request {
        form: &front.raise,
        key: &half.keys[0],
        claim: Some((first.token, &first.grant)),
        id: "probe-raise:1".to_owned(),
    };
    let probe = Probe {
        seen: Some(mark.into()),
        // It writes nothing, whatever a placeholder in the form says.
        id: None,
        ..request.put(half, ProbeKind::StaleRaise).await?
    };
    half.recorder.record(half.recorder.now(), probe);
    Ok(())
}

/// A request of a probe.
struct Request<'a> {
    form: &'a RequestForm,
    key: &'a Key,
    claim: Option<(Token, &'a GrantId)>,
    id: String,
}

impl Request<'_> {
    /// Sends it, and returns it with its answer and with what the database answered meanwhile.
    async fn put(self, half: &Half<'_>, kind: ProbeKind) -> Result<Probe, RunError> {
        let values = half.values.clone();
        let values = values.with("key", self.key.as_str()).with("id", &self.id);
        let field = self
            .claim
            .map(|(token, grant)| format!("\"{token}\";grant=\"{grant}\""));
        let began = Instant::now();
        let answered = send(half.last_door(), self.form, &values, field.as_deref()).await?;
        let answered = answered.map_err(RunError::lost("a probe"))?;
        let (sqlstate, detail) = error_since(half, began).unwrap_or_default();
        Ok(Probe {
            probe: kind,
            class: half.task.class.name.to_string(),
            key: self.key.to_string(),
            presented: Presented {
                token: self.claim.map(|(token, _)| token.to_string()),
                grant: self.claim.map(|(_, grant)| grant.to_string()),
            },
            seen: None,
            id: Some(self.id),
            reply: Reply::Http {
                status: answered.status,
                problem: answered.problem,
                stored: false,
            },
            sqlstate,
            detail,
        })
    }
}

/// SQLSTATE and DETAIL of the last error that the database answered to the resource since then. Probes are asked one after
/// the other.
fn error_since(half: &Half<'_>, began: Instant) -> Option<(Option<String>, Option<String>)> {
    let statements = half.statements_of(&half.database_path);
    let late = statements.iter().filter_map(|(_, statement)| {
        let at = statement.completed.filter(|at| *at >= began)?;
        Some((at, statement.error()?))
    });
    let (_, error) = late.max_by_key(|(at, _)| *at)?;
    Some((Some(error.sqlstate.clone()), error.detail.clone()))
}

async fn mark(half: &Half<'_>) -> Result<Option<Token>, RunError> {
    let query = "SELECT token FROM fence.high_water WHERE class = $1 AND key = $2";
    let rows = half
        .sql
        .query(query, &[&half.task.class.name.as_str(), &half.keys[0].as_str()])
        .await
        .map_err(RunError::lost("the mark could not be read"))?;
    Ok(rows.first().and_then(|row| Token::new(row.get(0)).ok()))
}

/// A token of an epoch that nobody registered: far above the one in use.
fn outside(token: Token) -> Option<Token> {
    let (epoch, revision) = token.split()?;
    let far = epoch.as_u16().checked_add(1_000)?;
    Some(Token::mint(Epoch::new(far).ok()?, revision))
}
