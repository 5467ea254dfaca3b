//! What is wrong about the way.

use super::{BODY, GOOD, KEY, PATH, Raw, request};

pub(super) fn paths() -> Vec<Raw> {
    let long = format!("/accounts/{}/transfers", "x".repeat(513));
    let mut all = Vec::new();
    for (path, right) in [
        ("/accounts//transfers", &[400][..]),
        ("/accounts/%00/transfers", &[400]),
        ("/accounts/a%00b/transfers", &[400]),
        ("/accounts/%FF/transfers", &[400]),
        ("/accounts/%C3/transfers", &[400]),
        ("/accounts/%ED%A0%80/transfers", &[400]),
        ("/accounts/%C0%80/transfers", &[400]),
        (long.as_str(), &[400]),
        ("/accounts/acct-1/transfers/", &[404]),
        ("/accounts/acct-1//transfers", &[404]),
        ("//accounts/acct-1/transfers", &[404]),
        ("/accounts/acct-1/transfers/x", &[404]),
        ("/accounts/acct-1%2Ftransfers", &[404]),
        ("/accounts%2Facct-1/transfers", &[404]),
        ("/Accounts/acct-1/transfers", &[404]),
        ("/accounts/acct-1/TRANSFERS", &[404]),
        ("/accounts/acct-1/transfers;v=1", &[404]),
        ("/accounts/acct-1/transfer%73", &[404]),
        ("/accounts/acct-1", &[404]),
        ("/accounts/acct-1/", &[404]),
        ("/", &[404]),
        ("/metrics", &[404]),
        ("/healthz", &[404]),
        ("/openapi.json", &[404]),
        // Another account by its text: no account, so nothing is written.
        ("/accounts/ACCT-1/transfers", &[404]),
        ("/accounts/acct-1%20/transfers", &[404]),
        ("/accounts/%20acct-1/transfers", &[404]),
        ("/accounts/acct%2d1%2f/transfers", &[404]),
        ("/accounts/acct-1./transfers", &[404]),
        ("/accounts/./transfers", &[404]),
        ("/accounts/../transfers", &[404]),
        ("/accounts/%2e%2e/transfers", &[404]),
        ("/accounts/acct%252D1/transfers", &[404]),
        ("/accounts/acct+1/transfers", &[404]),
        ("/accounts/\u{61}\u{301}/transfers", &[404, 400]),
    ] {
        let headers = format!("{GOOD}{KEY}");
        all.push(request(
            "POST",
            path,
            &headers,
            BODY,
            right,
            format!("to {path:.60}"),
        ));
    }
    for method in [
        "PUT", "PATCH", "DELETE", "SETTLE", "post", "Post", "PROPFIND", "LINK",
    ] {
        let headers = format!("{GOOD}{KEY}");
        all.push(request(
            method,
            PATH,
            &headers,
            BODY,
            &[405, 400],
            format!("{method} with a token"),
        ));
        all.push(request(
            method,
            PATH,
            KEY,
            BODY,
            &[428, 400],
            format!("{method} without one"),
        ));
        all.push(request(
            method,
            "/accounts",
            &headers,
            BODY,
            &[404, 400],
            format!("{method} /accounts"),
        ));
    }
    for name in ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"] {
        let override_get = format!("{name}: GET\r\n{KEY}");
        all.push(request(
            "POST",
            PATH,
            &override_get,
            BODY,
            &[428],
            format!("{name}: GET"),
        ));
        let override_post = format!("{name}: POST\r\n{GOOD}{KEY}");
        all.push(request(
            "GET",
            PATH,
            &override_post,
            "",
            &[200],
            format!("{name}: POST is a read"),
        ));
    }
    all
}
