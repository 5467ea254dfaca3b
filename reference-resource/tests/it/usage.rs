//! What `paydb --help` says, done as it says.

use reqwest::Method;

use super::bench::{Bench, PAYDB, Paydb, client, problem};

#[tokio::test]
async fn the_example_in_the_help_does_what_it_says_when_it_is_pasted() {
    let bench = Bench::new().await;
    let paydb = bench.paydb().await;
    let help = tokio::process::Command::new(PAYDB)
        .arg("--help")
        .output()
        .await
        .unwrap();
    assert!(help.status.success(), "{help:?}");
    let help = String::from_utf8(help.stdout).unwrap().replace("\\\n", " ");
    let (_, example) = help.split_once("Try it").unwrap();
    let mut statuses = Vec::new();
    for line in example.lines().map(str::trim) {
        if let Some(psql) = line.strip_prefix("psql \"$DATABASE_URL\" -c ") {
            bench.sql(psql.trim_matches('"')).await;
        } else if line.starts_with("curl ") {
            statuses.push(curl(&paydb, line).await);
        }
    }
    assert_eq!(statuses, [201, 201, 201, 412]);
    assert_eq!(bench.transfers().await, 1);
}

#[tokio::test]
async fn an_unknown_route_or_method_is_answered_with_a_problem_on_get_too() {
    let (_bench, paydb) = Bench::ready().await;
    for path in ["/", "/account/acct-1", "/accounts/acct-1/"] {
        problem(paydb.get(path).await, 404, "paydb:problem:unknown-route").await;
    }
    for (path, allowed) in [("/accounts", "POST"), ("/accounts/acct-1/fence", "POST")] {
        let answer = paydb.get(path).await;
        assert_eq!(answer.headers()["allow"], allowed, "{path}");
        problem(answer, 405, "paydb:problem:wrong-method").await;
    }
    for path in ["/accounts/%FF", "/accounts/%FF/transfers"] {
        problem(paydb.get(path).await, 400, "paydb:problem:malformed").await;
    }
}

/// Sends what a curl command would, to the replica in place of the example's address, and returns the status.
async fn curl(paydb: &Paydb, command: &str) -> u16 {
    let words: Vec<String> = words(command);
    let mut words = words.into_iter().skip(1);
    let mut url = None;
    let mut method = Method::GET;
    let mut headers = vec![(
        "content-type".to_owned(),
        "application/x-www-form-urlencoded".to_owned(),
    )];
    let mut body = None;
    while let Some(word) = words.next() {
        match word.as_str() {
            "-X" => method = words.next().unwrap().parse().unwrap(),
            "-d" => body = words.next(),
            "-H" => {
                let header = words.next().unwrap();
                let (name, value) = header.split_once(": ").unwrap();
                headers.push((name.to_owned(), value.to_owned()));
            }
            _ => url = word.strip_prefix("http://127.0.0.1:8080").map(str::to_owned),
        }
    }
    let mut request = client().request(method, paydb.url(&url.unwrap()));
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request
        .body(body.unwrap())
        .send()
        .await
        .unwrap()
        .status()
        .as_u16()
}

/// The words of a command as a shell would split them, where single quotes are the only ones.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in command.split('\'').enumerate() {
        if number % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}
