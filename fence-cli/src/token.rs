//! `fence token`: explains a token.

use clap::Args;
use fence_core::{Epoch, Token};

use crate::exit::{Ending, Failure};

/// What to explain.
#[derive(Debug, Args)]
pub(crate) struct TokenArguments {
    /// The token in its text form: 1 to 19 digits
    #[arg(value_name = "N", allow_negative_numbers = true)]
    token: Token,
}

/// Prints what the token says.
pub(crate) fn run(arguments: &TokenArguments) -> Result<Ending, Failure> {
    println!("{}", explain(arguments.token));
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
        None => format!(
            "epoch     none: below {}, so no lock store of this project minted it. As a token of another issuer it \
             is opaque and ordered",
            Epoch::FIRST.tokens().0
        ),
    };
    format!("token     {token}\n{meaning}\nheader    Fencing-Token: \"{token}\";grant=\"GRANT-ID\"")
}
