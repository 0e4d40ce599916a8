//! The way to an engine: the socket of a home, or an address on the network, encrypted or not.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;

use super::trust::Trust;
use crate::problem::Problem;

/// How long a server on the network may take to accept a connection.
const REACHED_WITHIN: Duration = Duration::from_secs(20);
/// The port of an address that names none.
const PORT: u16 = 7433;

/// How an engine is reached.
#[derive(Clone)]
pub(super) enum Way {
    /// At the socket of its home.
    Socket(PathBuf),
    /// At an HTTP or HTTPS address.
    Network(Network),
}

/// An engine on the network.
#[derive(Clone)]
pub(super) struct Network {
    pub(super) url: String,
    /// `host:port`, as it is called and as it is told.
    authority: String,
    host: String,
    tls: Option<Arc<ClientConfig>>,
}

impl Network {
    /// The engine at this address; `authorities` is a file with the certificates to trust instead of the system's.
    pub(super) fn new(url: &str, authorities: Option<&str>) -> Result<Network, Problem> {
        let wrong = || {
            Problem::bad_request(format!("`{url}` is no address of an engine"))
                .hint("say https://host:7433 or http://127.0.0.1:7433")
        };
        Network::at(url, authorities, Some(PORT), wrong)
    }

    /// The server at this address, which has no path. The port is `usual`, else that of the scheme, unless given.
    pub(super) fn at(
        url: &str,
        authorities: Option<&str>,
        usual: Option<u16>,
        wrong: impl Fn() -> Problem,
    ) -> Result<Network, Problem> {
        let (scheme, rest) = url.split_once("://").ok_or_else(&wrong)?;
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.is_empty() || authority.contains(['/', '@', '?', '#', ' ']) {
            return Err(wrong());
        }
        let (tls, of_scheme) = match scheme {
            "http" => (None, 80),
            "https" => (Some(Arc::new(trusting(authorities)?)), 443),
            _ => return Err(wrong()),
        };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().map_err(|_| wrong())?),
            _ => (authority, usual.unwrap_or(of_scheme)),
        };
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Network { url: url.to_owned(), authority: format!("{host}:{port}"), host: name, tls })
    }
}

/// What to trust: what the system trusts, or what this file says.
fn trusting(authorities: Option<&str>) -> Result<ClientConfig, Problem> {
    let own = match authorities {
        None => rustls_native_certs::load_native_certs().certs,
        Some(file) => {
            let unusable = |why: String| Problem::bad_request(format!("SLUICE_CA: {file} cannot be used: {why}"));
            let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let own = read.map_err(|error| unusable(error.to_string()))?;
            for certificate in &own {
                RootCertStore::empty().add(certificate.clone()).map_err(|error| unusable(error.to_string()))?;
            }
            if own.is_empty() {
                return Err(unusable("there is no certificate in it".into()));
            }
            own
        }
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let no_tls = |why: String| Problem::fault(format!("no TLS: {why}"));
    let config = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let config = config.map_err(|error| no_tls(error.to_string()))?;
    if own.is_empty() {
        // Nobody is trusted, and that is said when somebody is asked.
        return Ok(config.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    }
    let trust = Trust::new(own, provider).map_err(no_tls)?;
    Ok(config.dangerous().with_custom_certificate_verifier(Arc::new(trust)).with_no_client_auth())
}

/// A connection, before anything was said.
pub(super) enum Connection {
    /// A connection to the unix socket of a home.
    Socket(UnixStream),
    /// A TCP connection, and the address behind it, which says whether TLS follows.
    Network(TcpStream, Network),
}

/// What a question and its answer go through.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

impl Way {
    /// Where that is, for people.
    pub(super) fn place(&self) -> String {
        match self {
            Way::Socket(path) => path.display().to_string(),
            Way::Network(network) => network.url.clone(),
        }
    }

    /// What the request names as its host.
    pub(super) fn host(&self) -> &str {
        match self {
            Way::Socket(_) => "sluice",
            Way::Network(network) => &network.authority,
        }
    }

    pub(super) fn connect(&self) -> io::Result<Connection> {
        match self {
            Way::Socket(path) => UnixStream::connect(path).map(Connection::Socket),
            Way::Network(network) => reach(&network.authority).map(|it| Connection::Network(it, network.clone())),
        }
    }
}

/// The first of an address's places that answers.
fn reach(authority: &str) -> io::Result<TcpStream> {
    let mut failed = io::Error::from(io::ErrorKind::NotFound);
    for address in std::net::ToSocketAddrs::to_socket_addrs(authority)? {
        match TcpStream::connect_timeout(&address, REACHED_WITHIN) {
            Ok(stream) => return stream.set_nodelay(true).map(|()| stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

impl Connection {
    /// By which the connection is ended while somebody else reads from it.
    pub(super) fn handle(&self) -> io::Result<Box<dyn FnOnce() + Send>> {
        Ok(match self {
            Connection::Socket(stream) => {
                let stream = stream.try_clone()?;
                Box::new(move || drop(stream.shutdown(Shutdown::Both)))
            }
            Connection::Network(stream, _) => {
                let stream = stream.try_clone()?;
                Box::new(move || drop(stream.shutdown(Shutdown::Both)))
            }
        })
    }

    /// The connection as it is spoken over.
    pub(super) async fn open(self) -> io::Result<Box<dyn Stream>> {
        match self {
            Connection::Socket(stream) => {
                stream.set_nonblocking(true)?;
                Ok(Box::new(tokio::net::UnixStream::from_std(stream)?))
            }
            Connection::Network(stream, network) => {
                stream.set_nonblocking(true)?;
                let stream = tokio::net::TcpStream::from_std(stream)?;
                match network.tls {
                    None => Ok(Box::new(stream)),
                    Some(config) => {
                        let name = ServerName::try_from(network.host).map_err(io::Error::other)?;
                        Ok(Box::new(TlsConnector::from(config).connect(name, stream).await?))
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Network;

    #[test]
    fn addresses() {
        let read = |url: &str| Network::new(url, None).map(|it| (it.authority, it.host)).ok();
        let both = |one: &str, other: &str| Some((one.to_owned(), other.to_owned()));
        assert_eq!(read("http://127.0.0.1:80/"), both("127.0.0.1:80", "127.0.0.1"));
        assert_eq!(read("http://host"), both("host:7433", "host"));
        assert_eq!(read("http://[::1]:80"), both("[::1]:80", "::1"));
        assert_eq!(read("http://[::1]"), both("[::1]:7433", "::1"));
        for wrong in ["", "host:80", "ftp://host", "http://", "http://a/b", "http://user@host", "http://host:port"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert!(Network::new("https://host", Some("/nowhere/at/all.pem")).is_err());
    }
}
