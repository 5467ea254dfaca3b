//! What the layer adds to a request.

use std::convert::Infallible;
use std::hint::black_box;

use bytes::Bytes;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use fence_core::ClassName;
use fence_http::{FENCING_TOKEN, FenceLayer};
use http::{HeaderValue, Method, Request, Response, Uri};
use http_body_util::Full;
use tower::{Layer, Service, service_fn};

fn request() -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(Bytes::from_static(b"{}")));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static("/accounts/acct-1/transfers");
    let token = HeaderValue::from_static(r#""281474976710690";grant="g34""#);
    request.headers_mut().insert(FENCING_TOKEN, token);
    request
}

fn answer<B>(request: Request<B>) -> std::future::Ready<Result<Response<Bytes>, Infallible>> {
    black_box(request);
    std::future::ready(Ok(Response::new(Bytes::new())))
}

fn compare(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let class = ClassName::new("paydb.account").expect("a class name");
    let layer = FenceLayer::builder()
        .guard(class, "/accounts/{id}/transfers")
        .build()
        .expect("a layer");
    let mut bare = service_fn(answer::<Full<Bytes>>);
    let mut guarded = layer.layer(service_fn(answer));
    criterion.bench_function("bare", |bencher| {
        bencher.iter_batched(
            request,
            |request| runtime.block_on(bare.call(request)),
            BatchSize::SmallInput,
        );
    });
    criterion.bench_function("guarded", |bencher| {
        bencher.iter_batched(
            request,
            |request| runtime.block_on(guarded.call(request)),
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, compare);
criterion_main!(benches);
