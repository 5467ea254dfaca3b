//! `fence token`: explains a token.

use clap::Args;
use fence_core::{Epoch, ParseTokenError, Revision, Token};

use crate::exit::{Ending, Failure};
use crate::say;

/// What to explain.
#[derive(Debug, Args)]
pub(crate) struct TokenArguments {
    /// The token in its text form: 1 to 19 digits
    #[arg(value_name = "N", allow_negative_numbers = true, value_parser = token)]
    token: Token,
}

/// Prints what the token says.
pub(crate) fn run(arguments: &TokenArguments) -> Result<Ending, Failure> {
    say::answer(&explain(arguments.token))?;
    Ok(Ending::Done)
}

fn explain(token: Token) -> String {
    let meaning = match token.split() {
        Some((epoch, revision)) => {
            let (first, last) = epoch.tokens();
            format!(
                "epoch     {epoch}, of tokens {first} to {last}\n\
                 revision  {revision}: the store's transaction that granted it"
            )
        }
        None => {
            let why = match token.as_i64() >> Revision::BITS {
                0 => format!("below {}", Epoch::FIRST.tokens().0),
                epoch => format!("it would be revision 0 of epoch {epoch}, and revisions begin at 1"),
            };
            format!(
                "epoch     none: {why}, so no lock store of this project minted it. As a token of another issuer it is \
                 opaque and ordered"
            )
        }
    };
    format!("token     {token}\n{meaning}\nheader    Fencing-Token: \"{token}\";grant=\"GRANT-ID\"\n")
}

/// The text form and nothing else. Where a token stands in what was pasted instead, such as the header, it is named.
fn token(text: &str) -> Result<Token, String> {
    text.parse().map_err(|error: ParseTokenError| {
        let value = text.trim().trim_start_matches("Fencing-Token:");
        let value = value.split(';').next().unwrap_or_default();
        match value.trim().trim_matches('"').parse::<Token>() {
            Ok(token) => format!("{error}; give the digits alone: {token}"),
            Err(_) => error.to_string(),
        }
    })
}
