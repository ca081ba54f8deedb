//! Trusted certificates and the client certificate: the part of TLS that is configured before any connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, InconsistentKeys, RootCertStore,
    SignatureScheme,
};

use crate::error::refuse;
use crate::{ClientCertificate, LoadError, TlsSpec, Trust};

/// Number of sessions that a thread stores for resumption.
const SESSIONS: usize = 256;

/// Settings shared by all connections of a thread.
#[derive(Debug, Clone)]
pub(crate) struct TlsSettings {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
    pub(crate) client: Arc<ClientKey>,
}

/// The settings shared by a thread's connections. `alpn` is the name of the protocol in the handshake.
pub(crate) fn settings(tls: &TlsSpec, alpn: &[u8]) -> Result<TlsSettings, LoadError> {
    let name = ServerName::try_from(tls.server_name.clone()).or_else(|_| {
        let problem = format!(
            "{:?} is neither a host name nor an IP address",
            tls.server_name
        );
        refuse("load.tls.server_name", problem)
    })?;
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .or_else(|error| refuse("load.tls", error.to_string()))?;
    let verifier: Arc<dyn ServerCertVerifier> = match &tls.trust {
        Trust::System => Arc::new(Trusting::new(system_certificates(), &provider)?),
        Trust::Authorities(pem) => Arc::new(Trusting::new(own_certificates(pem)?, &provider)?),
        Trust::Anything => Arc::new(Credulous(provider.clone())),
    };
    let key = tls
        .client
        .as_ref()
        .map(|client| certified_key(client, &provider))
        .transpose()?;
    let client = Arc::new(ClientKey {
        key,
        asked: AtomicBool::new(false),
    });
    let builder = builder
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = builder.with_client_cert_resolver(client.clone());
    config.alpn_protocols = vec![alpn.to_vec()];
    Ok(TlsSettings {
        config: Arc::new(config),
        name,
        client,
    })
}

/// Provides the client certificate to servers that request one.
#[derive(Debug)]
pub(crate) struct ClientKey {
    key: Option<Arc<CertifiedKey>>,
    /// Whether a server has requested one.
    asked: AtomicBool,
}

impl ClientKey {
    /// Whether a server requested a certificate, and if so whether there was one to send.
    pub(crate) fn asked(&self) -> Option<bool> {
        self.asked
            .load(Ordering::Relaxed)
            .then_some(self.key.is_some())
    }
}

impl ResolvesClientCert for ClientKey {
    fn resolve(
        &self,
        _issuers: &[&[u8]],
        _schemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        self.asked.store(true, Ordering::Relaxed);
        self.key.clone()
    }

    fn has_certs(&self) -> bool {
        self.key.is_some()
    }
}

/// Reads a client certificate, and checks that the key matches.
fn certified_key(
    client: &ClientCertificate,
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>, LoadError> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&client.chain).collect();
    let chain = chain.or_else(|why| refuse("load.tls.cert", why.to_string()))?;
    if chain.is_empty() {
        return refuse("load.tls.cert", "no certificate in PEM form was found");
    }
    let key = PrivateKeyDer::from_pem_slice(&client.key).or_else(|_| {
        let is_encrypted = client.key.windows(9).any(|word| word == b"ENCRYPTED");
        refuse(
            "load.tls.key",
            if is_encrypted {
                "the private key is encrypted: `openssl pkey -in KEY -out PLAIN` writes one that is not"
            } else {
                "no private key in PEM form was found"
            },
        )
    })?;
    let key = provider.key_provider.load_private_key(key);
    let key = CertifiedKey::new(
        chain,
        key.or_else(|why| refuse("load.tls.key", why.to_string()))?,
    );
    // X.509 version 1 certificates cannot be parsed here, so the server has to check them.
    match key.keys_match() {
        Err(rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => refuse(
            "load.tls.key",
            "the private key is not that of the certificate",
        ),
        _ => Ok(Arc::new(key)),
    }
}

impl TlsSettings {
    /// The same with its own session cache, so that threads share nothing that needs locks.
    pub(crate) fn for_thread(&self, resume: bool) -> TlsSettings {
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = if resume {
            Resumption::in_memory_sessions(SESSIONS)
        } else {
            Resumption::disabled()
        };
        TlsSettings {
            config: Arc::new(config),
            name: self.name.clone(),
            client: self.client.clone(),
        }
    }
}

fn system_certificates() -> Vec<CertificateDer<'static>> {
    rustls_native_certs::load_native_certs().certs
}

fn own_certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, LoadError> {
    let mut certificates = Vec::new();
    for (index, certificate) in CertificateDer::pem_slice_iter(pem).enumerate() {
        let read = certificate.map_err(|error| error.to_string());
        let read = read.and_then(|one| {
            RootCertStore::empty()
                .add(one.clone())
                .map_err(|error| error.to_string())?;
            Ok(one)
        });
        let refused = |why| {
            refuse(
                "load.tls.trust",
                format!("certificate {}: {why}", index + 1),
            )
        };
        certificates.push(read.or_else(refused)?);
    }
    if certificates.is_empty() {
        return refuse("load.tls.trust", "no certificate in PEM form was found");
    }
    Ok(certificates)
}

/// Trusts certificates signed by these certificates, and each of them as a server's own. The latter is needed
/// for `openssl req -x509`, whose certificate is marked as an authority. The usual rules reject such a
/// certificate for a server, but RFC 5280 lets applications trust it, and OpenSSL and curl accept it.
#[derive(Debug)]
struct Trusting {
    rules: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Trusting {
    fn new(
        certificates: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Trusting, LoadError> {
        let mut roots = RootCertStore::empty();
        let (added, _) = roots.add_parsable_certificates(certificates.iter().cloned());
        if added == 0 {
            return refuse(
                "load.tls.trust",
                "this system trusts no certificate authority: give one, or none",
            );
        }
        let rules =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
        let rules = rules.or_else(|error| refuse("load.tls.trust", error.to_string()))?;
        Ok(Trusting {
            rules,
            certificates,
        })
    }
}

/// Whether the only fault of a server's certificate is that it is marked as an authority. Its dates are
/// checked before that, its name is not. rustls has no error for this and passes on that of its verifier.
pub(crate) fn is_of_authority(error: &CertificateError) -> bool {
    let CertificateError::Other(other) = error else {
        return false;
    };
    other.0.downcast_ref::<webpki::Error>() == Some(&webpki::Error::CaUsedAsEndEntity)
}

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let judged = self.rules.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match judged {
            Err(rustls::Error::InvalidCertificate(error))
                if is_of_authority(&error) && self.certificates.contains(end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            judged => judged,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.rules.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.rules.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.rules.supported_verify_schemes()
    }
}

/// Accepts every certificate, but still verifies that the server has its key, so the handshake cost is
/// unchanged.
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
        verify_tls12_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
