//! Which certificates an engine may show: those that an authority vouches for, and those that are trusted themselves.
//!
//! `openssl req -x509` makes a certificate that is its own authority unless it is told otherwise, and whoever serves with one
//! trusts exactly that file. The usual rule, that an authority never serves, would turn it away.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Whether the usual rules refuse an authority that serves. They look at that after the dates and before who vouches for it.
fn is_authority(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(why)) = error else { return false };
    matches!(why.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// The usual rules, and those certificates that are trusted themselves.
#[derive(Debug)]
pub(super) struct Trust {
    usual: Arc<WebPkiServerVerifier>,
    own: Vec<CertificateDer<'static>>,
}

impl Trust {
    /// Trusts these, and whatever they vouch for. Those that nobody can read are left out.
    pub(super) fn new(own: Vec<CertificateDer<'static>>, provider: Arc<CryptoProvider>) -> Result<Trust, String> {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(own.iter().cloned());
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        Ok(Trust { usual: usual.map_err(|error| error.to_string())?, own })
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        stapled: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.usual.verify_server_cert(shown, between, name, stapled, now) {
            Err(error) if is_authority(&error) => {
                if !self.own.iter().any(|own| own == shown) {
                    return Err(Error::InvalidCertificate(CertificateError::UnknownIssuer));
                }
                verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, shown, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}
