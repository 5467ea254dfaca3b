//! What the layer costs: instructions and allocations by valgrind, time by criterion, throughput in interleaved pairs.

use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post;
use bytes::Bytes;
use fence_core::ClassName;
use fence_http::{FENCING_TOKEN, FenceLayer};
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use tower::{Layer as _, Service, ServiceExt as _, service_fn};

use super::super::run::root;
use super::super::{Failure, Figure};
use super::is_trial;

/// At most so many allocations more a request, and so long.
const ALLOCATIONS: f64 = 2.0;
const TIME_NS: f64 = 1000.0;

/// What is compared, each without the layer and with it.
const KINDS: [&str; 2] = ["tower", "axum"];

pub(in super::super) fn cost() -> Result<Figure, Failure> {
    let mut arguments = std::env::args()
        .skip_while(|argument| argument != "--child")
        .skip(1);
    if let (Some(form), Some(count)) = (arguments.next(), arguments.next()) {
        return child(&form, count.parse()?);
    }
    let mut reached = true;
    let mut parts = Vec::new();
    for kind in KINDS {
        let bare = counted(&format!("{kind}-bare"))?;
        let guarded = counted(&format!("{kind}-guarded"))?;
        let (Some(bare), Some(guarded)) = (bare, guarded) else {
            reached = false;
            parts.push(format!("{kind}: not run, valgrind was not found in PATH"));
            continue;
        };
        let more = guarded.allocations - bare.allocations;
        reached &= more <= ALLOCATIONS;
        parts.push(format!(
            "{kind}: {:.0} instructions a request without and {:.0} with the layer, {:.2} and {:.2} allocations, {more:.2} more",
            bare.instructions, guarded.instructions, bare.allocations, guarded.allocations
        ));
    }
    match criterion()? {
        Some(added_ns) => {
            reached &= added_ns < TIME_NS;
            parts.push(format!("{added_ns:.0} ns more by criterion"));
        }
        None => {
            reached = false;
            parts.push("criterion: not run, cargo bench failed".to_owned());
        }
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    parts.push(runtime.block_on(throughput())?);
    Ok(Figure {
        line: parts.join("; "),
        reached,
    })
}

/// Per request.
struct Counted {
    instructions: f64,
    allocations: f64,
}

/// Runs this program under valgrind twice, with few and with many requests, and takes the difference.
fn counted(form: &str) -> Result<Option<Counted>, Failure> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Ok(None);
    }
    let (few, many): (u64, u64) = if is_trial() { (100, 300) } else { (1_000, 11_000) };
    let per_request = |tool: &[&str], before: &str| -> Result<f64, Failure> {
        let of = |count: u64| number_after(tool, form, count, before);
        Ok((of(many)? - of(few)?) / (many - few) as f64)
    };
    Ok(Some(Counted {
        instructions: per_request(
            &["--tool=callgrind", "--callgrind-out-file=/dev/null"],
            "Collected : ",
        )?,
        allocations: per_request(&["--tool=memcheck", "--leak-check=no"], "total heap usage: ")?,
    }))
}

fn number_after(tool: &[&str], form: &str, count: u64, before: &str) -> Result<f64, Failure> {
    let output = Command::new("valgrind")
        .args(tool)
        .arg(std::env::current_exe()?)
        .args(["http-cost", "--child", form, &count.to_string()])
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let number = said
        .split_once(before)
        .and_then(|(_, rest)| rest.split(char::is_whitespace).next())
        .ok_or_else(|| format!("valgrind did not say {before:?}: {said}"))?;
    let digits: String = number.chars().filter(char::is_ascii_digit).collect();
    Ok(digits.parse()?)
}

/// Sends requests through one form, in memory.
fn child(form: &str, count: u64) -> Result<Figure, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    runtime.block_on(async {
        match form {
            "tower-bare" => send(plain(), count, in_use).await,
            "tower-guarded" => send(layer()?.layer(plain()), count, in_use).await,
            "axum-bare" => send(router(), count, request).await,
            "axum-guarded" => send(layer()?.layer(router()), count, request).await,
            _ => Err(format!("no form {form}").into()),
        }
    })?;
    Ok(Figure {
        line: format!("{count} requests through {form}"),
        reached: true,
    })
}

async fn send<S, R>(
    mut service: S,
    count: u64,
    request: fn() -> Request<axum::body::Body>,
) -> Result<(), Failure>
where
    S: Service<Request<axum::body::Body>, Response = Response<R>, Error = std::convert::Infallible>,
{
    for _ in 0..count {
        let response = service.ready().await?.call(request()).await?;
        if response.status() != 200 {
            return Err(format!("answered {}", response.status()).into());
        }
        black_box(response);
    }
    Ok(())
}

/// A request as axum's server makes it: its bytes are shared, and its body is the server's. The router puts what it finds into
/// the extensions, with the layer and without.
fn request() -> Request<axum::body::Body> {
    let mut request = Request::new(axum::body::Body::new(Full::new(Bytes::from_static(b"{}"))));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = http::Uri::from_static("/accounts/acct-1/transfers");
    let token = HeaderValue::from_static(r#""281474976710690";grant="g34""#);
    request.headers_mut().insert(FENCING_TOKEN, token);
    request
}

/// The same with extensions in use, as everything that finds a route or a peer uses them. Where nothing else does, the layer is
/// the first to need their table, which is two allocations more.
fn in_use() -> Request<axum::body::Body> {
    let mut request = request();
    request.extensions_mut().insert(Connection);
    request
}

#[derive(Clone, Copy)]
struct Connection;

/// A service that answers at once.
fn plain<B: Send + 'static>() -> impl Service<
    Request<B>,
    Response = Response<Bytes>,
    Error = std::convert::Infallible,
    Future = std::future::Ready<Result<Response<Bytes>, std::convert::Infallible>>,
> + Clone {
    service_fn(|request: Request<B>| {
        black_box(request);
        std::future::ready(Ok(Response::new(Bytes::new())))
    })
}

fn router() -> Router {
    Router::new().route("/accounts/{id}/transfers", post(async || ""))
}

fn layer() -> Result<FenceLayer, Failure> {
    Ok(FenceLayer::builder()
        .guard(ClassName::new("paydb.account")?, "/accounts/{id}/transfers")
        .build()?)
}

/// What the layer adds to a request, by fence-http's own benchmark.
fn criterion() -> Result<Option<f64>, Failure> {
    let mut command = Command::new("cargo");
    command
        .args(["bench", "--quiet", "-p", "fence-http", "--bench", "guard"])
        .current_dir(root());
    if is_trial() {
        command.args(["--", "--quick"]);
    }
    if !command.status().is_ok_and(|status| status.success()) {
        return Ok(None);
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into);
    let mean = |name: &str| -> Result<f64, Failure> {
        let file = target.join("criterion").join(name).join("new/estimates.json");
        let estimates: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
        estimates["mean"]["point_estimate"]
            .as_f64()
            .ok_or_else(|| "no estimate".into())
    };
    Ok(Some(mean("guarded")? - mean("bare")?))
}

/// An axum service on a socket, without the layer and with it in turns.
async fn throughput() -> Result<String, Failure> {
    let (pairs, length) = if is_trial() {
        (3, Duration::from_millis(300))
    } else {
        (20, Duration::from_secs(2))
    };
    let bare = serve(router()).await?;
    let guarded = serve(layer()?.layer(router())).await?;
    let mut ratios = Vec::new();
    let mut rates = [0.0, 0.0];
    for pair in 0..pairs {
        // Which of the two goes first changes.
        let order = if pair % 2 == 0 { [0, 1] } else { [1, 0] };
        let mut rate = [0.0, 0.0];
        for side in order {
            let address = if side == 0 { &bare } else { &guarded };
            rate[side] = requests_a_second(address, length).await?;
            rates[side] += rate[side] / f64::from(pairs);
        }
        ratios.push(rate[1] / rate[0]);
    }
    let count = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / count;
    let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / (count - 1.0);
    // Student's t for 95 % of 20 pairs; for the trial's 3.
    let half = if pairs == 20 { 2.093 } else { 4.303 } * (variance / count).sqrt();
    Ok(format!(
        "{:.0} requests/s without and {:.0} with the layer over {pairs} interleaved pairs, ratio {mean:.3} ± {half:.3}",
        rates[0], rates[1]
    ))
}

async fn serve<S>(service: S) -> Result<String, Failure>
where
    S: Service<Request<axum::body::Body>, Error = std::convert::Infallible> + Clone + Send + Sync + 'static,
    S::Response: axum::response::IntoResponse,
    S::Future: Send,
{
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let service = tower::ServiceBuilder::new()
        .map_response(axum::response::IntoResponse::into_response)
        .service(service);
    tokio::spawn(async move { axum::serve(listener, tower::make::Shared::new(service)).await });
    Ok(address)
}

async fn requests_a_second(address: &str, length: Duration) -> Result<f64, Failure> {
    let url = format!("http://{address}/accounts/acct-1/transfers");
    let began = Instant::now();
    let clients = (0..4).map(|_| {
        let url = url.clone();
        tokio::spawn(async move {
            let client = reqwest::Client::builder().no_proxy().build()?;
            let mut done = 0_u32;
            while began.elapsed() < length {
                let sending = client
                    .post(&url)
                    .header("Fencing-Token", r#""281474976710690";grant="g34""#)
                    .body("{}");
                sending.send().await?.error_for_status()?.bytes().await?;
                done += 1;
            }
            Ok::<_, reqwest::Error>(done)
        })
    });
    let mut done = 0.0;
    for client in clients.collect::<Vec<_>>() {
        done += f64::from(client.await??);
    }
    Ok(done / began.elapsed().as_secs_f64())
}
