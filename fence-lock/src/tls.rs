//! How a store's server is verified, and who its client is.

use std::fmt;

/// TLS to a lock store. The server is always verified, name and all.
#[derive(Clone, Default)]
pub struct Tls {
    pub(crate) roots: Option<Vec<u8>>,
    pub(crate) identity: Option<(Vec<u8>, Vec<u8>)>,
    pub(crate) server_name: Option<String>,
}

impl Tls {
    /// Trusts the authorities that the machine trusts, and presents no certificate.
    pub fn new() -> Tls {
        Tls::default()
    }

    /// Trusts these authorities, in PEM, and no others.
    #[must_use]
    pub fn ca_certificate(mut self, pem: impl Into<Vec<u8>>) -> Tls {
        self.roots = Some(pem.into());
        self
    }

    /// Presents this certificate with its key, both in PEM, to a server that asks for one.
    #[must_use]
    pub fn identity(mut self, certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Tls {
        self.identity = Some((certificate.into(), key.into()));
        self
    }

    /// Expects the server's certificate to be for this name, where it is reached under another one.
    #[must_use]
    pub fn server_name(mut self, name: impl Into<String>) -> Tls {
        self.server_name = Some(name.into());
        self
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("own_roots", &self.roots.is_some())
            .field("identity", &self.identity.is_some())
            .field("server_name", &self.server_name)
            .finish()
    }
}
