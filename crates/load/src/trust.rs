//! Which certificates are trusted, and what is offered to the server: the part of TLS that is settled before any connection.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::connection::TlsSettings;
use crate::error::refuse;
use crate::{LoadError, Protocol, Tls, Trust};

/// Sessions that a thread remembers for resumption.
const SESSIONS: usize = 256;

/// What a thread's connections have in common.
pub(crate) fn settings(tls: &Tls, protocol: Protocol) -> Result<TlsSettings, LoadError> {
    let name = ServerName::try_from(tls.server_name.clone()).or_else(|_| {
        let problem = format!("{:?} is neither a host name nor an IP address", tls.server_name);
        refuse("load.tls.server_name", problem)
    })?;
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .or_else(|error| refuse("load.tls", error.to_string()))?;
    let builder = match &tls.trust {
        Trust::System => builder.with_root_certificates(system_roots()?),
        Trust::Authorities(pem) => builder.with_root_certificates(own_roots(pem)?),
        Trust::Anything => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Credulous(provider)))
        }
    };
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![crate::protocol::row(protocol).alpn.into()];
    Ok(TlsSettings { config: Arc::new(config), name })
}

impl TlsSettings {
    /// The same with a memory of sessions of its own: threads share nothing that they would have to lock.
    pub(crate) fn for_thread(&self, resume: bool) -> TlsSettings {
        let mut config = ClientConfig::clone(&self.config);
        config.resumption =
            if resume { Resumption::in_memory_sessions(SESSIONS) } else { Resumption::disabled() };
        TlsSettings { config: Arc::new(config), name: self.name.clone() }
    }
}

fn system_roots() -> Result<RootCertStore, LoadError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        return refuse("load.tls.trust", "this system trusts no certificate authority: give one, or none");
    }
    Ok(roots)
}

fn own_roots(pem: &[u8]) -> Result<RootCertStore, LoadError> {
    let mut roots = RootCertStore::empty();
    for (index, certificate) in CertificateDer::pem_slice_iter(pem).enumerate() {
        let added = certificate.map_err(|error| error.to_string());
        let added = added.and_then(|one| roots.add(one).map_err(|error| error.to_string()));
        added.or_else(|why| refuse("load.tls.trust", format!("certificate {}: {why}", index + 1)))?;
    }
    if roots.is_empty() {
        return refuse("load.tls.trust", "no certificate in PEM form was found");
    }
    Ok(roots)
}

/// Believes every certificate, and still checks that the server holds its key: the handshake costs what it would cost.
#[derive(Debug)]
struct Credulous(Arc<CryptoProvider>);

impl ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
