//! Where an HTTP request goes: the socket of a home, or an address on the network, encrypted or not.
//!
//! `reqwest` connects, encrypts and speaks HTTP. It uses no proxy, follows no redirect, repeats no request and keeps no
//! connection: a command asks once and ends.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use reqwest::redirect::Policy;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::trust::Trust;
use crate::problem::Problem;

const CONNECTED_WITHIN: Duration = Duration::from_secs(20);
/// The port of an engine's address that names none.
const PORT: u16 = 7433;

/// An address, and the HTTP client that reaches it.
#[derive(Clone)]
pub(super) struct HttpAddress {
    pub(super) http: reqwest::Client,
    /// The socket or the address as it was given, for people.
    pub(super) place: String,
    /// `scheme://host:port`, before which the path of a request stands.
    base: String,
}

impl HttpAddress {
    pub(super) fn socket(path: &Path) -> Result<HttpAddress, Problem> {
        let http = finished(reqwest::Client::builder().unix_socket(path), trusting(Vec::new())?)?;
        Ok(HttpAddress { http, place: path.display().to_string(), base: "http://sluice".to_owned() })
    }

    /// The engine at this address; `authorities` is a file with the certificates to trust instead of the system's.
    pub(super) fn engine(url: &str, authorities: Option<&str>) -> Result<HttpAddress, Problem> {
        let wrong = || {
            Problem::bad_request(format!("`{url}` is not the address of an engine"))
                .hint("write https://host:7433 or http://127.0.0.1:7433")
        };
        let uri = read(url).filter(|uri| uri.path() == "/" && uri.query().is_none()).ok_or_else(wrong)?;
        HttpAddress::at(url, &uri, authorities, Some(PORT))?.ok_or_else(wrong)
    }

    /// What is at this address. Without a usual port it is that of the scheme; `None` when the address makes no sense.
    pub(super) fn at(
        url: &str,
        uri: &Uri,
        authorities: Option<&str>,
        usual: Option<u16>,
    ) -> Result<Option<HttpAddress>, Problem> {
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else { return Ok(None) };
        let of_scheme = match scheme {
            "http" => 80,
            "https" => 443,
            _ => return Ok(None),
        };
        let port = match authority.port_u16() {
            Some(port) => port,
            None if authority.as_str() == authority.host() => usual.unwrap_or(of_scheme),
            // Something else than a port stands behind the host, or a user's name before it.
            None => return Ok(None),
        };
        let base = format!("{scheme}://{}:{port}", authority.host());
        if authority.as_str().contains('@') || reqwest::Url::parse(&base).is_err() {
            return Ok(None);
        }
        let trusted = if scheme == "https" { trusted(authorities)? } else { Vec::new() };
        let http = finished(reqwest::Client::builder(), trusting(trusted)?)?;
        Ok(Some(HttpAddress { http, place: url.to_owned(), base }))
    }

    /// The host and port of the engine, for messages.
    pub(super) fn host(&self) -> &str {
        self.base.split_once("://").map_or(&self.base, |(_, host)| host)
    }

    /// What is asked for under a path. `None` when HTTP takes a part of the path for a folder, as it does `..`.
    pub(super) fn url(&self, path: &str) -> Option<String> {
        let (steps, _) = path.split_once('?').unwrap_or((path, ""));
        let is_plain = steps.split('/').all(|step| step != "." && step != "..");
        is_plain.then(|| format!("{}{path}", self.base))
    }
}

/// An address that is written as HTTP wants it, with a scheme and nothing that is not sent.
pub(super) fn read(url: &str) -> Option<Uri> {
    url.parse().ok().filter(|_| !url.contains('#'))
}

fn finished(builder: reqwest::ClientBuilder, tls: ClientConfig) -> Result<reqwest::Client, Problem> {
    let client = builder
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .http1_only()
        .connect_timeout(CONNECTED_WITHIN)
        .pool_max_idle_per_host(0)
        .build();
    client.map_err(|error| Problem::fault(format!("no HTTP client: {error}")))
}

/// The certificates that the system trusts, or those in this file.
fn trusted(authorities: Option<&str>) -> Result<Vec<CertificateDer<'static>>, Problem> {
    let Some(file) = authorities else { return Ok(rustls_native_certs::load_native_certs().certs) };
    let unusable = |why: String| Problem::bad_request(format!("SLUICE_CA: {file} cannot be used: {why}"));
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let own = read.map_err(|error| unusable(error.to_string()))?;
    for certificate in &own {
        RootCertStore::empty().add(certificate.clone()).map_err(|error| unusable(error.to_string()))?;
    }
    if own.is_empty() {
        return Err(unusable("there is no certificate in it".into()));
    }
    Ok(own)
}

/// TLS that trusts these certificates. Without one it trusts no server, and says so when it connects.
fn trusting(own: Vec<CertificateDer<'static>>) -> Result<ClientConfig, Problem> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let no_tls = |why: String| Problem::fault(format!("no TLS: {why}"));
    let config = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let config = config.map_err(|error| no_tls(error.to_string()))?;
    if own.is_empty() {
        return Ok(config.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    }
    let trust = Trust::new(own, provider).map_err(no_tls)?;
    Ok(config.dangerous().with_custom_certificate_verifier(Arc::new(trust)).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let read = |url: &str| HttpAddress::engine(url, None).map(|it| it.base).ok();
        assert_eq!(read("http://127.0.0.1:80/").as_deref(), Some("http://127.0.0.1:80"));
        assert_eq!(read("http://host").as_deref(), Some("http://host:7433"));
        assert_eq!(read("http://[::1]:80").as_deref(), Some("http://[::1]:80"));
        assert_eq!(read("http://[::1]").as_deref(), Some("http://[::1]:7433"));
        let wrong = ["", "host:80", "ftp://host", "http://", "http://a/b", "http://user@host", "http://host:port"];
        for wrong in
            wrong.into_iter().chain(["http://h#", "http://h?a", "http://user:1@h", "http://h:", "http://h:99999"])
        {
            assert_eq!(read(wrong), None, "{wrong}");
        }
        assert!(HttpAddress::engine("https://host", Some("/nowhere/at/all.pem")).is_err());
    }

    #[test]
    fn a_path_is_asked_for_as_it_stands_or_not_at_all() {
        let address = HttpAddress::socket(Path::new("/nowhere")).expect("an address");
        let asked = |path: &str| address.url(path).map(|url| reqwest::Url::parse(&url).expect("a URL").to_string());
        for path in ["/v1/tasks/a.b", "/v1/tasks/%2Fa%20b%C3%A9?x=..&y=.", "/v1/tasks/..."] {
            assert_eq!(asked(path), Some(format!("http://sluice{path}")));
        }
        assert_eq!((asked("/v1/tasks/.."), asked("/v1/tasks/./x")), (None, None));
    }
}
