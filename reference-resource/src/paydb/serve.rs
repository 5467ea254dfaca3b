//! Connections: how long a request's head is waited for, and how they end.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use axum::serve::Listener;
use futures_util::FutureExt as _;
use http::Version;
use hyper::body::{Body as HttpBody, Bytes, Frame, Incoming, SizeHint};
use hyper::rt::{Sleep, Timer};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::util::BoxCloneSyncService;
use tower::{ServiceExt as _, service_fn};

/// How long a request's head may be on its way, and so how long an HTTP/1.1 connection may be idle: longer than proxies keep
/// theirs, 60 s.
pub(super) const HEAD_TIME: Duration = Duration::from_secs(75);

/// How long a head that has begun is still waited for once the service stops, and a client of HTTP/2 that says nothing.
const LAST_HEADS: Duration = Duration::from_secs(1);

/// How HTTP/2 begins.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

type Service = BoxCloneSyncService<Request<Body>, Response, Infallible>;

/// Serves until it is told to stop, and then until every request that has come is answered.
pub(super) async fn serve(
    mut listener: TcpListener,
    service: Service,
    mut stop: watch::Receiver<bool>,
    head_time: Duration,
) {
    let mut connections = JoinSet::new();
    let stopping = stop.clone();
    let mut stopped = pin!(stop.wait_for(|stop| *stop));
    loop {
        tokio::select! {
            (stream, _) = Listener::accept(&mut listener) => {
                connections.spawn(converse(stream, service.clone(), stopping.clone(), head_time));
            }
            Some(_) = connections.join_next() => {}
            _ = &mut stopped => break,
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// One connection, to its end.
async fn converse(stream: TcpStream, service: Service, mut stop: watch::Receiver<bool>, head_time: Duration) {
    let heads = HeadTimer { stop: stop.clone() };
    let mut stopped = pin!(stop.wait_for(|stop| *stop));
    let version = tokio::select! {
        shown = tokio::time::timeout(head_time, version_shows(&stream)) => shown,
        _ = &mut stopped => return,
    };
    let Ok(Ok(version)) = version else { return };
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(heads).header_read_timeout(head_time);
    let (counter, under_way) = watch::channel(0);
    let service = service_fn(move |request: Request<Incoming>| {
        let counted = Counted::new(&counter);
        let answer = service.clone().oneshot(request.map(Body::new));
        answer.map(|answer| {
            answer.map(|response| response.map(|body| Body::new(CountedBody::new(body, counted))))
        })
    });
    let connection = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    let mut connection = pin!(connection);
    // How a connection ended is its client's business: what was written was answered, or is unknown to it.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = &mut stopped => connection.as_mut().graceful_shutdown(),
    }
    match version {
        // A head is bounded by its timer.
        Version::HTTP_11 => drop(connection.await),
        // It says farewell, and waits for an answer to that.
        _ => tokio::select! {
            _ = connection => {}
            () = quiet(under_way) => {}
        },
    }
}

/// The body of an answer, whose request is under way until it is sent or given up: in pieces, as HTTP/2's side of hyper takes the next
/// one only when its client has room for it, and is done with a body once it has taken the last.
struct CountedBody {
    body: Body,
    /// What was read of it, and is still to be sent.
    left: Bytes,
    _counted: Counted,
}

impl CountedBody {
    const PIECE: usize = 16 << 10;

    fn new(body: Body, counted: Counted) -> CountedBody {
        CountedBody {
            body,
            left: Bytes::new(),
            _counted: counted,
        }
    }
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.left.is_empty() {
            let read = ready!(Pin::new(&mut self.body).poll_frame(context));
            match read.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.left = data,
                Some(Ok(Err(other))) => return Poll::Ready(Some(Ok(other))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        let piece = self.left.len().min(CountedBody::PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.left.split_to(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (left, rest) = (self.left.len() as u64, self.body.size_hint());
        let mut whole = SizeHint::new();
        whole.set_lower(left + rest.lower());
        if let Some(upper) = rest.upper() {
            whole.set_upper(left + upper);
        }
        whole
    }
}

/// A request that is under way, counted until it is dropped.
struct Counted(watch::Sender<usize>);

impl Counted {
    fn new(counter: &watch::Sender<usize>) -> Counted {
        counter.send_modify(|count| *count += 1);
        Counted(counter.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

/// Waits until no request has been under way for [`LAST_HEADS`].
async fn quiet(mut under_way: watch::Receiver<usize>) {
    loop {
        // An error means that there will be no more of them.
        let _ = under_way.wait_for(|count| *count == 0).await;
        tokio::select! {
            () = tokio::time::sleep(LAST_HEADS) => return,
            Ok(()) = under_way.changed() => {}
        }
    }
}

/// Waits until a connection's first bytes tell HTTP/1.1 from HTTP/2, which hyper waits for without an end.
async fn version_shows(stream: &TcpStream) -> std::io::Result<Version> {
    let mut first = [0; PREFACE.len()];
    loop {
        let bytes = stream.peek(&mut first).await?;
        if bytes == 0 || first[..bytes] != PREFACE[..bytes] {
            return Ok(Version::HTTP_11);
        }
        if bytes == PREFACE.len() {
            return Ok(Version::HTTP_2);
        }
        // What was seen stays readable: there is no event for more of it.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Bounds the wait for a head, the one thing that HTTP/1.1's side of hyper asks a timer for: none is waited for when the
/// service stops.
struct HeadTimer {
    stop: watch::Receiver<bool>,
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        let mut stop = self.stop.clone();
        let last_heads = async move {
            let _ = stop.wait_for(|stop| *stop).await;
            tokio::time::sleep(LAST_HEADS).await;
        };
        Box::pin(HeadWait(Box::pin(async move {
            tokio::select! {
                () = tokio::time::sleep_until(deadline.into()) => {}
                () = last_heads => {}
            }
        })))
    }
}

struct HeadWait(Pin<Box<dyn Future<Output = ()> + Send + Sync>>);

impl Future for HeadWait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().poll(context)
    }
}

impl Sleep for HeadWait {}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[tokio::test]
    async fn a_head_that_never_ends_ends_its_connection() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let service = service_fn(async |_: Request<Body>| Ok(Response::new(Body::empty())));
        let (_stop, stopping) = watch::channel(false);
        let head_time = Duration::from_millis(200);
        tokio::spawn(serve(
            listener,
            BoxCloneSyncService::new(service),
            stopping,
            head_time,
        ));
        let whole = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        for (sent, answers) in [
            ("", 0),
            ("POST /acc", 0),
            ("POST /accounts HTTP/1.1\r\nHost: x\r\nA: b", 0),
            ("PRI * HTTP/2.0\r\n", 0),
            (whole, 1),
            (&format!("{whole}POST /acc"), 1),
        ] {
            let mut client = TcpStream::connect(address).await.expect("a connection");
            client.write_all(sent.as_bytes()).await.expect("room");
            let mut answer = Vec::new();
            let ended = tokio::time::timeout(Duration::from_secs(20), client.read_to_end(&mut answer));
            // What was never read is reset.
            if let Err(error) = ended.await.expect("an end") {
                assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{sent:?}");
            }
            let answer = String::from_utf8_lossy(&answer);
            assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), answers, "{sent:?}");
        }
    }

    #[tokio::test]
    async fn an_answer_in_http_2_is_sent_whole_though_the_service_stops() {
        const BYTES: usize = 16 << 20;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let service = service_fn(async |_: Request<Body>| Ok(Response::new(Body::from(vec![0; BYTES]))));
        let (stop, stopping) = watch::channel(false);
        let service = BoxCloneSyncService::new(service);
        let serving = tokio::spawn(serve(listener, service, stopping, HEAD_TIME));
        let client = reqwest::Client::builder().http2_prior_knowledge();
        let client = client.build().expect("a client");
        let answer = client.get(format!("http://{address}/")).send().await;
        let answer = answer.expect("an answer");
        stop.send_replace(true);
        // A client that is slow to read it.
        tokio::time::sleep(2 * LAST_HEADS).await;
        assert_eq!(answer.bytes().await.expect("all of it").len(), BYTES);
        let stopped = tokio::time::timeout(Duration::from_secs(20), serving).await;
        stopped.expect("a stop").expect("no panic");
    }

    #[tokio::test]
    async fn a_client_of_http_2_that_says_nothing_holds_up_no_stop() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let service = service_fn(async |_: Request<Body>| Ok(Response::new(Body::empty())));
        let (stop, stopping) = watch::channel(false);
        let serving = tokio::spawn(serve(
            listener,
            BoxCloneSyncService::new(service),
            stopping,
            HEAD_TIME,
        ));
        let mut client = TcpStream::connect(address).await.expect("a connection");
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        client.write_all(PREFACE).await.expect("room");
        client.write_all(&settings).await.expect("room");
        let mut first = [0; 9];
        client
            .read_exact(&mut first)
            .await
            .expect("the service's own settings");
        stop.send_replace(true);
        let stopped = tokio::time::timeout(Duration::from_secs(20), serving).await;
        stopped.expect("a stop").expect("no panic");
    }
}
