//! An etcd that is reached under TLS, with a certificate, and later with a user and a password.

use std::path::Path;
use std::time::Duration;

use etcd_client::{Certificate, Client, ConnectOptions, Permission, PermissionType, TlsOptions};
use fence_lock::{EtcdOptions, Tls};
use pause_kit::services::{Child, ProcessSpec, Services, free_port, locate};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

use crate::support::{services, tier};

/// An authority, and its certificate in PEM.
pub(crate) fn authority() -> (Issuer<'static, KeyPair>, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    (Issuer::new(params, key), certificate.pem())
}

/// A certificate for a name, and its key, in PEM.
pub(crate) fn certificate(issuer: &Issuer<'static, KeyPair>, name: &str) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();
    (certificate.pem(), key.serialize_pem())
}

/// An etcd that speaks nothing but TLS, to clients with a certificate of its authority.
pub(crate) struct Secure {
    _services: Services,
    process: Child,
    port: u16,
    ca: String,
    client: (String, String),
}

impl Secure {
    pub(crate) async fn start() -> Secure {
        let services = services().await;
        let (issuer, ca) = authority();
        let (server, client) = (certificate(&issuer, "localhost"), certificate(&issuer, "holder"));
        let file = |name: &str, text: &str| {
            let path = services.folder().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let files = [
            file("ca.pem", &ca),
            file("server.pem", &server.0),
            file("server.key", &server.1),
        ];
        let (port, peer) = (free_port().unwrap(), free_port().unwrap());
        let process = services
            .spawn(etcd_with_tls(services.folder(), port, peer, &files))
            .await
            .unwrap();
        let secure = Secure {
            _services: services,
            process,
            port,
            ca,
            client,
        };
        for _ in 0..600 {
            let asked = tokio::time::timeout(Duration::from_secs(1), secure.root(None)).await;
            if let Ok(Ok(mut client)) = asked
                && client.get("any", None).await.is_ok()
            {
                return secure;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("etcd does not answer: {}", secure.process.tail());
    }

    pub(crate) fn endpoint(&self) -> String {
        endpoint_at(self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The authority's certificate.
    pub(crate) fn ca(&self) -> String {
        self.ca.clone()
    }

    /// The holders' certificate and its key.
    pub(crate) fn client(&self) -> (String, String) {
        self.client.clone()
    }

    pub(crate) fn tls(&self) -> Tls {
        let (certificate, key) = self.client();
        Tls::new()
            .ca_certificate(self.ca.clone())
            .identity(certificate, key)
    }

    pub(crate) fn options(&self, prefix: &str) -> EtcdOptions {
        self.options_through(self.port, prefix)
    }

    /// The same by another port of this machine.
    pub(crate) fn options_through(&self, port: u16, prefix: &str) -> EtcdOptions {
        EtcdOptions::new(&[endpoint_at(port)], prefix, tier()).tls(self.tls())
    }

    /// etcd's own client.
    pub(crate) async fn root(&self, user: Option<(&str, &str)>) -> Result<Client, etcd_client::Error> {
        let (certificate, key) = &self.client;
        let tls = TlsOptions::new()
            .ca_certificate(Certificate::from_pem(&self.ca))
            .identity(etcd_client::Identity::from_pem(certificate, key));
        let mut options = ConnectOptions::new().with_tls(tls);
        if let Some((name, password)) = user {
            options = options.with_user(name, password);
        }
        Client::connect([self.endpoint()], Some(options)).await
    }

    /// Asks for users and passwords from now on: root, and one who may use every key that begins so.
    pub(crate) async fn require_users(&self, beginning: &str) {
        let mut root = self.root(None).await.unwrap();
        root.user_add("root", "root-secret", None).await.unwrap();
        root.role_add("root").await.unwrap();
        root.user_grant_role("root", "root").await.unwrap();
        root.user_add("holder", "holder-secret", None).await.unwrap();
        root.role_add("locks").await.unwrap();
        let all = Permission::new(PermissionType::Readwrite, beginning).with_prefix();
        root.role_grant_permission("locks", all).await.unwrap();
        root.user_grant_role("holder", "locks").await.unwrap();
        root.auth_enable().await.unwrap();
    }
}

fn endpoint_at(port: u16) -> String {
    format!("https://localhost:{port}")
}

fn etcd_with_tls(folder: &Path, port: u16, peer: u16, files: &[String; 3]) -> ProcessSpec {
    let [ca, certificate, key] = files;
    ProcessSpec::new("etcd-tls", locate::etcd().unwrap())
        .args([
            "--name=own",
            "--heartbeat-interval=50",
            "--election-timeout=250",
            "--client-cert-auth",
            // Each client that connects proves its password.
            "--bcrypt-cost=4",
        ])
        .args([
            format!("--data-dir={}", folder.join("tls").display()),
            format!("--listen-client-urls=https://127.0.0.1:{port}"),
            format!("--advertise-client-urls=https://localhost:{port}"),
            format!("--listen-peer-urls=http://127.0.0.1:{peer}"),
            format!("--initial-advertise-peer-urls=http://127.0.0.1:{peer}"),
            format!("--initial-cluster=own=http://127.0.0.1:{peer}"),
            format!("--trusted-ca-file={ca}"),
            format!("--cert-file={certificate}"),
            format!("--key-file={key}"),
        ])
        .env(
            "ETCD_UNSUPPORTED_ARCH",
            if cfg!(target_arch = "aarch64") {
                "arm64"
            } else {
                ""
            },
        )
}
