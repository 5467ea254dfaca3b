//! TLS to PostgreSQL, always verified.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::config::{Config, Host, SslMode};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::tls::Tls;

type Fault = Box<dyn std::error::Error + Send + Sync>;

/// The address, and whether it asks for TLS.
///
/// Without `sslmode` a server on this machine is reached without TLS and any other with it; `disable` and `allow` go without, every
/// other word with it. TLS that is not verified there is not.
pub(super) fn address(address: &str, tls: Option<&Tls>) -> Result<Config, tokio_postgres::Error> {
    let asked = [
        "verify-full",
        "verify-ca",
        "require",
        "prefer",
        "allow",
        "disable",
    ]
    .into_iter()
    .find(|word| address.contains(&format!("sslmode={word}")));
    let known = match asked {
        Some(word @ ("verify-full" | "verify-ca")) => {
            address.replace(&format!("sslmode={word}"), "sslmode=require")
        }
        Some("allow") => address.replace("sslmode=allow", "sslmode=disable"),
        _ => address.to_owned(),
    };
    let mut config: Config = known.parse()?;
    let here = config.get_hosts().iter().all(is_here);
    config.ssl_mode(match (asked, tls) {
        (Some("disable" | "allow"), _) => SslMode::Disable,
        (None, None) if here => SslMode::Disable,
        _ => SslMode::Require,
    });
    Ok(config)
}

fn is_here(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            let loopback = |address: std::net::IpAddr| address.is_loopback();
            name == "localhost" || name.parse().is_ok_and(loopback)
        }
    }
}

/// Makes TLS connections; where the address asks for none it is not asked.
#[derive(Clone)]
pub(super) struct MakeTls {
    connector: TlsConnector,
    server_name: Option<String>,
}

impl MakeTls {
    /// # Errors
    ///
    /// When a certificate or key is no PEM, or the machine trusts no authority.
    pub(super) fn new(tls: &Tls) -> Result<MakeTls, Fault> {
        let mut roots = RootCertStore::empty();
        match &tls.roots {
            Some(pem) => {
                for certificate in CertificateDer::pem_slice_iter(pem) {
                    roots.add(certificate?)?;
                }
            }
            None => {
                let native = rustls_native_certs::load_native_certs();
                roots.add_parsable_certificates(native.certs);
            }
        }
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let config = match &tls.identity {
            Some((certificate, key)) => {
                let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
                config.with_client_auth_cert(chain?, PrivateKeyDer::from_pem_slice(key)?)?
            }
            None => config.with_no_client_auth(),
        };
        Ok(MakeTls {
            connector: TlsConnector::from(Arc::new(config)),
            server_name: tls.server_name.clone(),
        })
    }
}

impl MakeTlsConnect<Socket> for MakeTls {
    type Stream = Stream;
    type TlsConnect = Connect;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Connect> {
        Ok(Connect {
            connector: self.connector.clone(),
            name: self.server_name.clone().unwrap_or_else(|| host.to_owned()),
        })
    }
}

/// One connection's TLS.
pub(super) struct Connect {
    connector: TlsConnector,
    name: String,
}

impl TlsConnect<Socket> for Connect {
    type Stream = Stream;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let name = ServerName::try_from(self.name)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            let stream = self.connector.connect(name, socket).await?;
            Ok(Stream(Box::new(stream)))
        })
    }
}

/// A connection under TLS.
pub(super) struct Stream(Box<tokio_rustls::client::TlsStream<Socket>>);

impl tokio_postgres::tls::TlsStream for Stream {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut *self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut *self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_elsewhere_is_reached_under_tls_unless_the_address_says_otherwise() {
        let mode = |text: &str| address(text, None).expect("an address").get_ssl_mode();
        for plain in [
            "postgres://a@localhost/d",
            "postgres://a@127.0.0.1/d",
            "host=/run/postgresql user=a",
            "postgres://a@db.example/d?sslmode=disable",
            "postgres://a@db.example/d?sslmode=allow",
        ] {
            assert_eq!(mode(plain), SslMode::Disable, "{plain}");
        }
        for secure in [
            "postgres://a@db.example/d",
            "postgres://a@localhost/d?sslmode=verify-full",
            "postgres://a@db.example/d?sslmode=verify-ca",
            "postgres://a@db.example/d?sslmode=prefer",
            "host=localhost,db.example user=a",
        ] {
            assert_eq!(mode(secure), SslMode::Require, "{secure}");
        }
        let with = address("postgres://a@localhost/d", Some(&Tls::new())).expect("an address");
        assert_eq!(with.get_ssl_mode(), SslMode::Require);
    }
}
