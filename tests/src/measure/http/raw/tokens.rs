//! What is wrong about the token.

use super::{BODY, KEY, PATH, Raw, request, transfer};

pub(super) fn tokens() -> Vec<Raw> {
    let mut all: Vec<Raw> = include_str!("tokens.txt")
        .lines()
        .map(|value| {
            transfer(
                &format!("Fencing-Token: {value}\r\n"),
                &[400],
                format!("token {value}"),
            )
        })
        .collect();
    // Digits of other scripts, and other bytes beyond ASCII.
    for digits in [
        "٢٨١",
        "२८१",
        "２８１",
        "𝟚𝟠𝟙",
        "²⁸¹",
        "①②",
        "\u{a0}28",
        "28\u{200b}",
        "\u{feff}28",
    ] {
        all.push(transfer(
            &format!("Fencing-Token: \"{digits}\"\r\n"),
            &[400],
            format!("script {digits}"),
        ));
        all.push(transfer(
            &format!("Fencing-Token: {digits}\r\n"),
            &[400],
            format!("bare script {digits}"),
        ));
    }
    let long = "1".repeat(200);
    all.push(transfer(
        &format!("Fencing-Token: \"{long}\"\r\n"),
        &[400],
        "200 digits",
    ));
    let id = "g".repeat(65);
    all.push(transfer(
        &format!("Fencing-Token: \"40\";grant=\"{id}\"\r\n"),
        &[400],
        "a long grant id",
    ));
    // Stale, of another grant, without a grant id, of no epoch: read rightly, and refused by the transaction.
    for (value, right, what) in [
        ("\"281474976710657\";grant=\"g1\"", &[412][..], "stale"),
        ("\"281474976710690\";grant=\"other\"", &[412], "another grant"),
        (
            "\"281474976710690\";grant=\"G34\"",
            &[412],
            "another grant by its case",
        ),
        ("\"281474976710690\"", &[428], "no grant id"),
        ("\"1\";grant=\"g\"", &[412, 409], "below every epoch"),
        (
            "\"562949953421399\";grant=\"g\"",
            &[409],
            "an epoch that is not registered",
        ),
        ("\"9223372036854775807\";grant=\"g\"", &[409], "the last token"),
    ] {
        all.push(transfer(&format!("Fencing-Token: {value}\r\n"), right, what));
    }
    // More than one, however they come.
    let other = "\"281474976710691\";grant=\"g35\"";
    let good = "\"281474976710690\";grant=\"g34\"";
    for (first, second) in [
        (good, other),
        (other, good),
        (good, good),
        (good, ""),
        ("", good),
        (good, "40"),
    ] {
        for names in [
            ["Fencing-Token", "Fencing-Token"],
            ["Fencing-Token", "fencing-token"],
            ["FENCING-TOKEN", "Fencing-token"],
        ] {
            let [a, b] = names;
            all.push(transfer(
                &format!("{a}: {first}\r\n{b}: {second}\r\n"),
                &[400],
                format!("two, {a} and {b}"),
            ));
        }
        for joint in [",", ", ", " , ", ";", " "] {
            let joined = format!("Fencing-Token: {first}{joint}{second}\r\n");
            // With nothing beside it a space is no second value.
            if joint != " " || !(first.is_empty() || second.is_empty()) {
                all.push(transfer(&joined, &[400], format!("joined by {joint:?}")));
            }
        }
    }
    // None, or in another place.
    for name in [
        "fence_token",
        "Fencing_Token",
        "FencingToken",
        "X-Fencing-Token",
        "Fencing-Tokens",
        "Fencing-Token-",
        "Fence-Token",
        "If-Match",
    ] {
        all.push(transfer(
            &format!("{name}: {good}\r\n"),
            &[428],
            format!("as {name}"),
        ));
    }
    all.push(transfer("", &[428], "no token"));
    for zeros in 1..=9 {
        let padded = format!("{}281474976710690", "0".repeat(zeros));
        all.push(transfer(
            &format!("Fencing-Token: \"{padded}\";grant=\"g34\"\r\n"),
            &[400],
            format!("{zeros} leading zeros"),
        ));
    }
    all.push(transfer(
        "Cookie: Fencing-Token=281474976710690\r\n",
        &[428],
        "in a cookie",
    ));
    all.push(transfer(
        "Transfer: Fencing-Token\r\n",
        &[428],
        "named in another header",
    ));
    for query in [
        "?Fencing-Token=281474976710690",
        "?fencing-token=%22281474976710690%22",
    ] {
        let path = format!("{PATH}{query}");
        all.push(request(
            "POST",
            &path,
            KEY,
            BODY,
            &[428],
            "in the query".to_owned(),
        ));
    }
    all
}
