//! What the path itself sends, from the bytes of a holder's request.

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::alter::Original;
use super::exchanges::Kind;
use super::half::{Half, SOON};
use super::holder::Holder;
use super::trouble::{Trouble, within};
use crate::history::{Alteration, Op, Relay};
use crate::wire::http::alone;

impl Half<'_> {
    /// Has the holder's path send these bytes on a connection of its own, and waits until they are answered whole. They are
    /// the original's but for what `how` says.
    pub(super) async fn relay(
        &self,
        holder: &Holder,
        original: &Original,
        how: Alteration,
        bytes: &[u8],
    ) -> Result<(), Trouble> {
        let number = 1 + holder.writes_begun();
        let op = Op::new(format!("{}-write-{number}", holder.name));
        let of = original.op.clone();
        self.recorder.record(self.recorder.now(), Relay { op, of, how });
        let failed = || Trouble::step("the path could not send a request");
        let socket = TcpStream::connect(holder.path.address()).await;
        let mut socket = socket.map_err(failed())?;
        socket.write_all(bytes).await.map_err(failed())?;
        let awaited = format!("the answer to what the path sent of {}", original.op);
        within(SOON, &awaited, holder.answered_write(number)).await
    }
}

impl Holder {
    /// Its write number `number`, from 1, as it came to the path.
    pub(super) fn original_of(&self, number: usize) -> Result<Original, Trouble> {
        self.original(number).ok_or_else(|| Trouble::Step {
            what: format!("{}'s write number {number} is not whole on its path", self.name),
            source: "no such request".into(),
        })
    }

    fn original(&self, number: usize) -> Option<Original> {
        let write = self
            .requests()
            .into_iter()
            .filter(|seen| seen.kind == Kind::Write);
        let write = write
            .skip(number - 1)
            .find(|seen| seen.exchange.request.complete)?;
        let bytes = self.path.read(|log| {
            let connection = log.connection(write.connection)?;
            alone(connection.to_resource.bytes(), &write.exchange.request)
        });
        Some(Original {
            op: Op::new(format!("{}-write-{number}", self.name)),
            bytes: bytes?,
        })
    }

    /// How many of its writes have begun to come to the path, and how many the path has sent itself.
    fn writes_begun(&self) -> usize {
        let requests = self.requests();
        requests.iter().filter(|seen| seen.kind == Kind::Write).count()
    }
}
