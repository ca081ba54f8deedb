//! TLS on one connection: between the bytes of the socket and those of the protocol. By rustls, without I/O.

use std::fmt;
use std::io::{BufRead, Write};
use std::sync::Arc;

use model::Cause;
use rustls::pki_types::ServerName;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Error, HandshakeKind, InvalidMessage,
    PeerIncompatible,
};

/// What all connections of a thread have in common.
#[derive(Debug, Clone)]
pub(crate) struct TlsSettings {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

/// Why a handshake or a record failed.
pub(super) struct TlsError {
    pub(super) cause: Cause,
    pub(super) text: String,
}

impl TlsError {
    /// The server has not chosen the protocol of this name.
    pub(super) fn not_offered(name: &str) -> TlsError {
        TlsError { cause: Cause::Tls, text: format!("the server does not offer {name} (ALPN)") }
    }
}

/// See the module's text.
pub(super) struct Tls {
    session: ClientConnection,
    /// Records to be written, from `written` on.
    records: Vec<u8>,
    written: usize,
    ended: bool,
}

impl Tls {
    /// A handshake; its first message is there to be written.
    pub(super) fn new(settings: &TlsSettings) -> Result<Tls, TlsError> {
        let session = ClientConnection::new(settings.config.clone(), settings.name.clone()).map_err(error)?;
        let mut tls = Tls { session, records: Vec::new(), written: 0, ended: false };
        tls.flush();
        Ok(tls)
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.session.is_handshaking()
    }

    /// The handshake took up an earlier session, which spares both sides most of the work.
    pub(super) fn is_resumed(&self) -> bool {
        self.session.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// The protocol agreed on by ALPN.
    pub(super) fn protocol(&self) -> Option<&[u8]> {
        self.session.alpn_protocol()
    }

    /// The peer has said that nothing more will come.
    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    /// Takes records, some of `bytes`, which is left with the rest.
    pub(super) fn received(&mut self, bytes: &mut &[u8]) -> Result<(), TlsError> {
        if let Err(error) = self.session.read_tls(bytes) {
            return Err(TlsError { cause: Cause::Tls, text: error.to_string() });
        }
        let state = self.session.process_new_packets();
        // Where it failed, the alert that says so.
        self.flush();
        self.ended = state.map_err(error)?.peer_has_closed();
        Ok(())
    }

    /// What was received and decrypted, to be told with [`consume`](Self::consume).
    pub(super) fn plain(&mut self) -> Option<&[u8]> {
        self.session.reader().into_first_chunk().ok().filter(|bytes| !bytes.is_empty())
    }

    pub(super) fn consume(&mut self, count: usize) {
        self.session.reader().consume(count);
    }

    /// Encrypts bytes, as many of them as fit before the next [`flush`](Self::flush): 64 KiB with what is there already.
    pub(super) fn write(&mut self, bytes: &[u8]) -> usize {
        self.session.writer().write(bytes).unwrap_or(0)
    }

    /// Moves finished records to where they are written from.
    pub(super) fn flush(&mut self) {
        while self.session.wants_write() {
            if self.session.write_tls(&mut self.records).is_err() {
                return;
            }
        }
    }

    pub(super) fn output(&self) -> Option<&[u8]> {
        Some(&self.records[self.written..]).filter(|rest| !rest.is_empty())
    }

    pub(super) fn wrote(&mut self, count: usize) {
        self.written += count;
        if self.written >= self.records.len() {
            self.records.clear();
            self.written = 0;
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("written", &self.written).finish_non_exhaustive()
    }
}

fn error(error: rustls::Error) -> TlsError {
    let cause = match error {
        rustls::Error::InvalidCertificate(_) => Cause::Certificate,
        _ => Cause::Tls,
    };
    TlsError { cause, text: text(&error) }
}

// What went wrong with TLS, in words that say what to do about it.

/// An error as it is reported.
fn text(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => certificate(error),
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
        ) => "what came is not TLS: does the server speak plain HTTP on this port?".into(),
        Error::AlertReceived(alert) => format!("the server refused: {}", alert_text(*alert)),
        Error::NoApplicationProtocol => {
            "the server does not offer the protocol that was asked for (ALPN)".into()
        }
        Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13) => {
            "the server offers neither TLS 1.2 nor TLS 1.3".into()
        }
        Error::PeerIncompatible(why) => format!("the server offers nothing that is spoken here: {why:?}"),
        other => other.to_string(),
    }
}

fn certificate(error: &CertificateError) -> String {
    let text = error.to_string();
    match error {
        CertificateError::UnknownIssuer => {
            "the server's certificate is not signed by a trusted authority, but by a private one or by itself"
                .into()
        }
        CertificateError::BadSignature => {
            "the server's certificate has an authority's name on it, but not the signature of the one that is trusted".into()
        }
        CertificateError::ExpiredContext { time, not_after } => {
            let days = time.as_secs().saturating_sub(not_after.as_secs()) / 86_400;
            format!("the server's certificate has expired, {days} days ago")
        }
        CertificateError::Expired => "the server's certificate has expired".into(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("the server's certificate is not valid yet: {text}")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("the server's certificate is for another name: {text}")
        }
        // That of the verifier has no type of its own.
        _ if text.contains("CaUsedAsEndEntity") => {
            "the server's certificate is one of an authority (CA:TRUE), which may sign others but not be a server's".into()
        }
        _ => format!("the server's certificate is not accepted: {text}"),
    }
}

fn alert_text(alert: AlertDescription) -> String {
    let what = match alert {
        AlertDescription::HandshakeFailure => {
            "it workers no cipher or key exchange with us (handshake_failure)"
        }
        AlertDescription::ProtocolVersion => "it speaks neither TLS 1.2 nor TLS 1.3 (protocol_version)",
        AlertDescription::UnrecognisedName => "it does not know this server name (unrecognized_name)",
        AlertDescription::NoApplicationProtocol => {
            "it does not offer the protocol that was asked for, HTTP/2 or HTTP/1.1 (no_application_protocol)"
        }
        AlertDescription::CertificateRequired => {
            "it wants a certificate of the client's (certificate_required)"
        }
        other => return format!("{other:?}"),
    };
    what.into()
}
