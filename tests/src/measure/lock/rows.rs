//! The record of PostgreSQL: a history that a trigger of this measurement writes, begun before anything else.

use super::holder::connect;
use super::judge::{Change, End};
use crate::measure::Failure;

/// Each change of a hold, and whether the one before it was live: its session there, and not expired.
const RECORD: &str = "
CREATE TABLE public.history (
    number bigserial PRIMARY KEY, key text, token bigint, grant_id text, session text, before text, before_live boolean);
CREATE FUNCTION public.remember() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    old_grant text;
    old_session text;
BEGIN
    IF TG_OP = 'UPDATE' THEN
        old_grant := OLD.grant_id;
        old_session := OLD.session;
    END IF;
    IF old_grant IS DISTINCT FROM NEW.grant_id THEN
        INSERT INTO public.history (key, token, grant_id, session, before, before_live)
        VALUES (NEW.key, NEW.last_token, NEW.grant_id, NEW.session, old_grant, EXISTS (
            SELECT FROM fence_lock.session s WHERE s.session = old_session AND s.expires_at > clock_timestamp()));
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER remember AFTER INSERT OR UPDATE ON fence_lock.lock FOR EACH ROW EXECUTE FUNCTION public.remember();";

pub(super) async fn begin(database: &str) -> Result<(), Failure> {
    Ok(connect(database).await?.batch_execute(RECORD).await?)
}

/// Everything until now. Rows of one key stand in the order in which they were committed: its row is locked until then.
pub(super) async fn end(database: &str) -> Result<Vec<Change>, Failure> {
    let client = connect(database).await?;
    let select =
        "SELECT key, token, grant_id, session, before, before_live FROM public.history ORDER BY number";
    let mut changes = Vec::new();
    for row in client.query(select, &[]).await? {
        let key: String = row.get(0);
        let (granted, before): (Option<String>, Option<String>) = (row.get(2), row.get(4));
        let before_live: bool = row.get(5);
        if let Some(grant) = before {
            // A hold that is taken away by a grant must have been over.
            if granted.is_some() && before_live {
                changes.push(Change::TakenAlive {
                    key: key.clone(),
                    grant: grant.clone(),
                });
            }
            let how = match granted.is_none() && before_live {
                true => End::Released,
                false => End::Gone,
            };
            changes.push(Change::Ended {
                key: key.clone(),
                grant,
                how,
            });
        }
        if let Some(grant) = granted {
            changes.push(Change::Granted {
                key,
                number: row.get(1),
                grant,
                session: row.get::<_, Option<String>>(3).unwrap_or_default(),
            });
        }
    }
    Ok(changes)
}
