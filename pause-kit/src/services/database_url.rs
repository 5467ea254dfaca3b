//! How a database of a run is reached.

use std::fmt;

/// The address of one database as one role, password included. The server listens on the loopback address only and goes
/// with the run, so that this text is no secret worth keeping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseUrl {
    text: String,
    database: String,
    login: Login,
}

/// A role that may log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The role's name.
    pub role: String,
    /// Its password: letters and digits.
    pub password: String,
}

impl DatabaseUrl {
    pub(super) fn new(port: u16, database: &str, login: &Login) -> Self {
        let text = format!(
            "postgres://{}:{}@127.0.0.1:{port}/{}",
            encoded(&login.role),
            encoded(&login.password),
            encoded(database)
        );
        Self {
            text,
            database: database.to_owned(),
            login: login.clone(),
        }
    }

    /// The same database as the same role, reached through another port of 127.0.0.1, such as a path's.
    #[must_use]
    pub fn through(&self, port: u16) -> Self {
        Self::new(port, &self.database, &self.login)
    }

    /// The URL as every PostgreSQL client takes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The database's name.
    #[must_use]
    pub fn database(&self) -> &str {
        &self.database
    }

    /// The role that it logs in as.
    #[must_use]
    pub fn login(&self) -> &Login {
        &self.login
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_part_of_a_url_is_encoded() {
        let login = Login {
            role: "a:b@c/d".to_owned(),
            password: "p w".to_owned(),
        };
        let url = DatabaseUrl::new(5, "x?y", &login);
        assert_eq!(url.as_str(), "postgres://a%3Ab%40c%2Fd:p%20w@127.0.0.1:5/x%3Fy");
    }
}
