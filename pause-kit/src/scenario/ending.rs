//! The holders' own ends, before anything is read back: what a holder does after its last answer counts as well.

use std::time::Duration;

use super::half::Half;
use super::holder::Holder;
use super::trouble::Trouble;
use crate::path::Connection;
use crate::target::GateName;
use crate::wire::http;

/// How long a holder may take to end by itself once its last answer was passed on to it. A holder that is done ends at once.
const LAST_WORDS: Duration = Duration::from_secs(5);

impl Half<'_> {
    /// Waits until every holder has come to its own end and nothing that it sent is under way, or it stands at a gate where
    /// the scenario leaves it. The newest grant's holder may stay: nothing that it does is late. It is ended with the others.
    pub(crate) async fn holders_end(&self) -> Result<(), Trouble> {
        let holders = self.holders();
        let granted = holders.iter().filter_map(|holder| holder.grant());
        let newest = granted.max_by_key(|granted| granted.token.as_i64());
        let ends = holders.iter().map(async |holder| {
            let ended = tokio::time::timeout(LAST_WORDS, holder.comes_to_its_end()).await;
            let is_newest = newest
                .zip(holder.grant())
                .is_some_and(|(newest, own)| newest.grant == own.grant);
            match ended {
                Ok(ended) => ended,
                Err(_) if is_newest => Ok(()),
                Err(_) => Err(Trouble::Lingers {
                    who: holder.name.to_owned(),
                    within: LAST_WORDS,
                }),
            }
        });
        futures_util::future::join_all(ends).await.into_iter().collect()
    }
}

impl Holder {
    async fn comes_to_its_end(&self) -> Result<(), Trouble> {
        let gates: Vec<&str> = self.stands_at.iter().copied().map(GateName::as_str).collect();
        tokio::select! {
            biased;
            ended = self.child.exited() => ended.map_err(Trouble::lost("the reaper"))?,
            () = self.gates.stood_at(&gates) => return Ok(()),
            name = self.strayed() => return Err(self.stray(&name)),
        };
        let over_http = self.sql.is_none();
        self.path
            .wait(|log| {
                let mut connections = log.connections().iter();
                connections.all(|one| is_over(one, over_http)).then_some(())
            })
            .await;
        Ok(())
    }
}

/// Whether nothing on a connection is under way any more. A resource may keep a connection whose holder has gone.
fn is_over(connection: &Connection, over_http: bool) -> bool {
    let gone = connection.to_resource.close().is_some();
    connection.ended.is_some() || over_http && gone && http::answered(connection)
}
