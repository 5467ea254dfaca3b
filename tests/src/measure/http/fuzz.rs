//! Headers and keys at random, through the layer itself.

use bytes::Bytes;
use fence_core::{Claim, ClassName};
use fence_http::{FENCING_TOKEN, FenceLayer};
use http::{HeaderValue, Request, Response};
use http_body_util::Empty;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tower::{Layer as _, Service as _, service_fn};

use super::super::Failure;

#[derive(Default)]
pub(super) struct Found {
    pub(super) headers: u64,
    pub(super) keys: u64,
    pub(super) let_in: u64,
    pub(super) wrong: u64,
}

/// Sends `count` requests, half of them with a header at random, half with a key. A panic ends the whole check.
pub(super) fn fuzz(seed: u64, count: u64) -> Result<Found, Failure> {
    let layer = FenceLayer::builder()
        .guard(ClassName::new("paydb.account")?, "/a/{id}")
        .build()?;
    let mut service = layer.layer(service_fn(|request: Request<_>| async move {
        let claim = fence_http::claim(request.extensions()).ok();
        let mut response = Response::new(Bytes::new());
        response.extensions_mut().insert(claim);
        Ok::<_, std::convert::Infallible>(response)
    }));
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut found = Found::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    runtime.block_on(async {
        let mut sent = 0;
        while sent < count {
            let with_key = sent % 2 == 0;
            let value = if with_key {
                GOOD.to_vec()
            } else {
                header(&mut random)
            };
            let path = if with_key {
                path(&mut random)
            } else {
                b"/a/acct-1".to_vec()
            };
            let (Ok(value), Ok(uri)) = (HeaderValue::from_bytes(&value), http::Uri::try_from(path)) else {
                continue;
            };
            sent += 1;
            found.keys += u64::from(with_key);
            found.headers += u64::from(!with_key);
            let mut request = Request::post(uri.clone()).body(Empty::<Bytes>::new())?;
            request.headers_mut().insert(FENCING_TOKEN, value.clone());
            let response = service.call(request).await?;
            if let Some(Some(claim)) = response.extensions().get::<Option<Claim>>() {
                found.let_in += 1;
                if !is_right(claim, &value, uri.path()) {
                    found.wrong += 1;
                    println!("wrong: {value:?} {uri} was read as {claim:?}");
                }
            }
        }
        Ok::<_, Failure>(())
    })?;
    Ok(found)
}

const GOOD: &[u8] = br#""281474976710690";grant="g34""#;

/// A good header with some bytes changed, put in or taken out, or bytes that make headers.
fn header(random: &mut ChaCha8Rng) -> Vec<u8> {
    const PARTS: &[&[u8]] = &[
        b"\"",
        b"0",
        b"9",
        b"281474976710690",
        b";",
        b"grant",
        b"=",
        b"\"g34\"",
        b",",
        b" ",
        b"-",
        b"+",
        b"\\",
        b".",
        b"(",
        b")",
        b"?1",
        b"@1",
        b":YQ==:",
        b"\xd9\xa2",
        b"*",
        b"\t",
        b"9223372036854775808",
    ];
    if random.random_range(0..3) == 0 {
        let parts = random.random_range(0..9);
        return (0..parts)
            .flat_map(|_| PARTS[random.random_range(0..PARTS.len())])
            .copied()
            .collect();
    }
    mutated(GOOD, random)
}

/// A path of the rule's with a key at random.
fn path(random: &mut ChaCha8Rng) -> Vec<u8> {
    const PARTS: &[&[u8]] = &[
        b"a",
        b"acct-1",
        b"%",
        b"%2",
        b"%2F",
        b"%00",
        b"%FF",
        b"%C3%A9",
        b"%25",
        b"..",
        b"+",
        b"~",
        b";",
        b"\xc3\xa9",
        b"%ED%A0%80",
        b"*",
    ];
    let mut path = b"/a/".to_vec();
    for _ in 0..random.random_range(0..6) {
        path.extend_from_slice(PARTS[random.random_range(0..PARTS.len())]);
    }
    match random.random_range(0..50) {
        0 => path.resize(600, b'x'),
        1..10 => path = mutated(&path, random),
        _ => {}
    }
    path
}

fn mutated(good: &[u8], random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = good.to_vec();
    for _ in 0..random.random_range(1..4) {
        let at = random.random_range(0..=bytes.len());
        let byte = (random.next_u32() & 0xff) as u8;
        match random.random_range(0..3) {
            0 => bytes.insert(at, byte),
            1 if at < bytes.len() => bytes[at] = byte,
            _ if at < bytes.len() => drop(bytes.remove(at)),
            _ => {}
        }
    }
    bytes
}

/// Whether what was let in is what the bytes say, found by other means than the layer's.
fn is_right(claim: &Claim, value: &HeaderValue, path: &str) -> bool {
    let Ok(text) = value.to_str() else { return false };
    let text = text.trim_matches(' ');
    let Some((digits, parameters)) = text.strip_prefix('"').and_then(|rest| rest.split_once('"')) else {
        return false;
    };
    let canonical =
        !digits.starts_with('0') && digits.len() <= 19 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let token = canonical && claim.token.to_string() == digits;
    let grant = match &claim.grant_id {
        None => !parameters.contains(";grant=") && !parameters.contains("; grant="),
        Some(id) => {
            parameters.contains(&format!("grant=\"{id}\"")) && parameters.matches("grant=\"").count() == 1
        }
    };
    // A key in escapes reads back to the same bytes.
    let key = path
        .strip_prefix("/a/")
        .is_some_and(|segment| unescaped(segment) == claim.key.as_str().as_bytes());
    let within = (1..=512).contains(&claim.key.as_str().len()) && !claim.key.as_str().contains('\0');
    token && grant && key && within
}

/// Percent-decoding, once, by hand.
fn unescaped(segment: &str) -> Vec<u8> {
    let bytes = segment.as_bytes();
    let (mut decoded, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let pair = bytes
            .get(at + 1..at + 3)
            .and_then(|pair| std::str::from_utf8(pair).ok());
        let hexadecimal = pair.filter(|pair| pair.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match hexadecimal.and_then(|pair| u8::from_str_radix(pair, 16).ok()) {
            Some(byte) if bytes[at] == b'%' => {
                decoded.push(byte);
                at += 3;
            }
            _ => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    decoded
}
