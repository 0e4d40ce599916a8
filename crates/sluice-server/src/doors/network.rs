//! The network's door before it opens: the address, the certificate, the origin of pages that may ask. Whatever is wrong
//! with them is told before an engine is started, or one that runs is asked to make way.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::HeaderValue;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sluice_api::Problem;

#[derive(Clone, Debug)]
pub struct NetworkOptions {
    /// Where to listen: `127.0.0.1:7433`. With the port 0 the system chooses one.
    pub listen: String,
    /// The files of the certificate and of its key; without them nothing is encrypted.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Whose pages may ask.
    pub cors: Option<String>,
}

/// The network's door: bound, and not open yet.
pub struct NetworkDoor {
    pub(crate) listener: TcpListener,
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) cors: Option<HeaderValue>,
    /// Where it was asked to listen: the page answers under this name.
    pub(crate) listened: Arc<str>,
    address: SocketAddr,
}

impl NetworkDoor {
    /// Binds the address and reads the certificate.
    pub fn bind(wanted: &NetworkOptions) -> Result<NetworkDoor, Problem> {
        let tls = wanted.tls.as_ref().map(|(certificate, key)| certified(certificate, key)).transpose()?;
        let cors = wanted.cors.as_deref().map(origin).transpose()?;
        let listen = &wanted.listen;
        let addresses: Vec<SocketAddr> = listen
            .to_socket_addrs()
            .map_err(|error| {
                Problem::bad_request(format!("`{listen}` is not an address to listen at: {error}"))
                    .hint("write an address and a port: 127.0.0.1:7433")
            })?
            .collect();
        let taken = |error: std::io::Error| {
            let hint = match error.kind() {
                ErrorKind::PermissionDenied => "ports below 1024 are the system's; --listen names another",
                ErrorKind::AddrNotAvailable => "this machine has no such address; --listen names another",
                _ => "another program may listen there; --listen names another port, 0 takes any that is free",
            };
            Problem::unavailable(format!("cannot listen at {listen}: {error}")).hint(hint)
        };
        let listener = TcpListener::bind(addresses.as_slice()).map_err(taken)?;
        listener.set_nonblocking(true).map_err(taken)?;
        let address = listener.local_addr().map_err(taken)?;
        Ok(NetworkDoor { listener, tls, cors, listened: listen.as_str().into(), address })
    }

    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Whether tokens pass over a network that others can listen to.
    pub fn is_exposed(&self) -> bool {
        self.tls.is_none() && !self.address.ip().is_loopback()
    }
}

/// An origin as browsers name it, or `*` for pages of every origin.
fn origin(text: &str) -> Result<HeaderValue, Problem> {
    let is_origin = text.split_once("://").is_some_and(|(scheme, host)| {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || ".-:[]_".contains(letter);
        !scheme.is_empty() && !host.is_empty() && host.chars().all(plain)
    });
    let value = HeaderValue::from_str(text).ok().filter(|_| is_origin || text == "*");
    value.ok_or_else(|| {
        Problem::bad_request(format!("--cors: `{}` is no origin", text.escape_debug())).hint(
            "an origin is https://example.com, with a port if it has one and nothing behind it; `*` is every origin",
        )
    })
}

fn certified(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>, Problem> {
    let unusable = |file: &Path, why: &dyn std::fmt::Display| {
        Problem::bad_request(format!("{} cannot be used: {why}", file.display()))
            .hint("--tls-cert takes a certificate chain in PEM, --tls-key its private key in PEM")
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(|error| unusable(certificate, &error))?;
    if chain.is_empty() {
        return Err(unusable(certificate, &"there is no certificate in it"));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| match error {
        pem::Error::NoItemsFound if is_encrypted(key) => {
            let why = "its key is encrypted, and there is no terminal to ask for the password";
            unusable(key, &why).hint(format!("`openssl pkey -in {} -out FILE` decrypts it", key.display()))
        }
        pem::Error::NoItemsFound => unusable(key, &"there is no private key in it"),
        error => unusable(key, &error),
    })?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Problem::fault(format!("no TLS: {error}")))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                let why = format!("the certificate in {} has another key", certificate.display());
                unusable(key, &why)
            }
            error => unusable(certificate, &error),
        })?;
    Ok(Arc::new(config))
}

/// Whether a file has a private key that only a password opens.
fn is_encrypted(key: &Path) -> bool {
    let text = std::fs::read_to_string(key).unwrap_or_default();
    text.contains("-----BEGIN ENCRYPTED PRIVATE KEY-----") || text.contains("Proc-Type: 4,ENCRYPTED")
}
