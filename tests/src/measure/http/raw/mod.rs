//! Requests as raw bytes, each with the statuses that are right for it.

mod bodies;
mod framing;
mod paths;
mod tokens;

/// The accounts that there are; the corpus writes from the first.
pub(super) const FROM: &str = "acct-1";

/// One request.
pub(super) struct Raw {
    pub(super) bytes: Vec<u8>,
    /// Any of these is right. None is below 400 but for what does not ask for a write.
    pub(super) right: &'static [u16],
    pub(super) what: String,
}

/// The body of an ordinary transfer.
pub(super) const BODY: &str = r#"{"to":"acct-2","amount":1,"reference":"corpus"}"#;
const PATH: &str = "/accounts/acct-1/transfers";
const GOOD: &str = "Fencing-Token: \"281474976710690\";grant=\"g34\"\r\n";

/// A request that is right in everything, under an idempotency key of its own.
pub(super) fn valid(number: usize) -> Raw {
    let key = format!("Idempotency-Key: corpus:{number}\r\n");
    // The same header in every form that RFC 9651 allows.
    let token = [
        GOOD,
        "fencing-token: \"281474976710690\";grant=\"g34\"\r\n",
        "FENCING-TOKEN:\t\"281474976710690\"; grant=\"g34\" \r\n",
        "Fencing-Token: \"281474976710690\";later=7;grant=\"g34\";x\r\n",
        "Fencing-Token:   \"281474976710690\";  grant=\"g34\"\r\n",
    ][number % 5];
    request(
        "POST",
        PATH,
        &format!("{token}{key}"),
        BODY,
        &[201],
        format!("valid {number}"),
    )
}

/// All that is malformed or ambiguous.
pub(super) fn malformed() -> Vec<Raw> {
    let mut all = tokens::tokens();
    all.extend(paths::paths());
    all.extend(framing::framing());
    all.extend(bodies::bodies());
    all
}

fn request(method: &str, path: &str, headers: &str, body: &str, right: &'static [u16], what: String) -> Raw {
    let length = body.len();
    let text = format!(
        "{method} {path} HTTP/1.1\r\nHost: paydb\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    Raw {
        bytes: text.into_bytes(),
        right,
        what,
    }
}

fn bytes(text: &[u8], right: &'static [u16], what: &str) -> Raw {
    Raw {
        bytes: text.to_vec(),
        right,
        what: what.to_owned(),
    }
}

const KEY: &str = "Idempotency-Key: never\r\n";

fn transfer(headers: &str, right: &'static [u16], what: impl Into<String>) -> Raw {
    request("POST", PATH, &format!("{headers}{KEY}"), BODY, right, what.into())
}
