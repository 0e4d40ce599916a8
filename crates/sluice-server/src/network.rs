//! The network's door before it opens: the address, the certificate, the origin of pages that may ask. Whatever is wrong
//! with them is told before an engine is started, or one that runs is asked to make way.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::http::HeaderValue;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sluice_api::Problem;

/// What is wanted of the network's door.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Where to listen: `127.0.0.1:7433`. With the port 0 the system chooses one.
    pub listen: String,
    /// The files of the certificate and of its key; without them nothing is encrypted.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Whose pages may ask.
    pub cors: Option<String>,
}

/// The network's door: bound, and not open yet.
pub struct Network {
    pub(crate) listener: TcpListener,
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) cors: Option<HeaderValue>,
    address: SocketAddr,
}

impl Network {
    /// Binds the address and reads the certificate.
    pub fn bind(wanted: &Wanted) -> Result<Network, Problem> {
        let tls = wanted.tls.as_ref().map(|(certificate, key)| certified(certificate, key)).transpose()?;
        let wrong = |_| Problem::bad_request("--cors takes an origin, such as https://example.com");
        let cors = wanted.cors.as_deref().map(HeaderValue::from_str).transpose().map_err(wrong)?;
        let listen = &wanted.listen;
        let addresses: Vec<SocketAddr> = listen
            .to_socket_addrs()
            .map_err(|error| {
                Problem::bad_request(format!("`{listen}` is no address to listen at: {error}"))
                    .hint("say an address and a port: 127.0.0.1:7433")
            })?
            .collect();
        let taken = |error: std::io::Error| {
            Problem::unavailable(format!("cannot listen at {listen}: {error}"))
                .hint("another program may listen there; --listen names another port, 0 takes any that is free")
        };
        let listener = TcpListener::bind(addresses.as_slice()).map_err(taken)?;
        listener.set_nonblocking(true).map_err(taken)?;
        let address = listener.local_addr().map_err(taken)?;
        Ok(Network { listener, tls, cors, address })
    }

    /// Where it is reached.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Whether tokens pass over a network that others can listen to.
    pub fn is_exposed(&self) -> bool {
        self.tls.is_none() && !self.address.ip().is_loopback()
    }
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
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| unusable(key, &error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Problem::fault(format!("no TLS: {error}")))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| unusable(certificate, &error))?;
    Ok(Arc::new(config))
}
