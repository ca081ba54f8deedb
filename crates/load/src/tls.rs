//! TLS of one connection, between the socket and the protocol. Uses rustls, without I/O and without own
//! receive buffers: a record is decrypted in the driver's buffer.

use std::sync::Arc;

use model::Cause;
use model::quantity::many;
use rustls::client::UnbufferedClientConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, InsufficientSizeError,
    UnbufferedStatus,
};
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, PeerIncompatible};

use crate::trust::{ClientKey, TlsSettings, is_of_authority};

/// Maximum bytes encrypted ahead of the socket.
const RECORDS_BYTES_MAX: usize = 64 * 1024;
/// Maximum size of one handshake message, which must be complete before it is parsed.
const PARTIAL_BYTES_MAX: usize = 128 * 1024;
/// Type, version and length of a record: RFC 8446, section 5.1.
const HEADER_BYTES: usize = 5;

pub(crate) struct TlsError {
    pub(crate) cause: Cause,
    pub(crate) text: String,
}

pub(crate) struct TlsSession {
    pub(crate) session: UnbufferedClientConnection,
    client: Arc<ClientKey>,
    /// An incomplete record or handshake message, to be parsed with the next bytes.
    partial: Vec<u8>,
    /// Records to be written, from `written` on.
    records: Vec<u8>,
    written: usize,
    /// The peer has announced the end of its data.
    pub(crate) ended: bool,
}

impl TlsSession {
    /// Starts a handshake. Its first message is ready to be written.
    pub(crate) fn new(settings: &TlsSettings) -> Result<TlsSession, TlsError> {
        let session =
            UnbufferedClientConnection::new(settings.config.clone(), settings.name.clone());
        let mut tls = TlsSession {
            session: session.map_err(|why| error(&why, &settings.client))?,
            client: settings.client.clone(),
            partial: Vec::new(),
            records: Vec::new(),
            written: 0,
            ended: false,
        };
        tls.received(&mut [], |_| true)?;
        Ok(tls)
    }

    /// Decrypts records and passes their contents to `read` until that returns false.
    pub(crate) fn received(
        &mut self,
        mut bytes: &mut [u8],
        mut read: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), TlsError> {
        while !self.partial.is_empty() && !bytes.is_empty() {
            let (piece, rest) = bytes.split_at_mut(missing(&self.partial).min(bytes.len()));
            self.partial.extend_from_slice(piece);
            bytes = rest;
            let mut partial = std::mem::take(&mut self.partial);
            let taken = self.process(&mut partial, &mut read)?;
            partial.drain(..taken);
            self.partial = partial;
        }
        let taken = self.process(bytes, &mut read)?;
        self.partial.extend_from_slice(&bytes[taken..]);
        if self.partial.len() > PARTIAL_BYTES_MAX {
            let text = "a message of the handshake is too long".into();
            return Err(TlsError {
                cause: Cause::Tls,
                text,
            });
        }
        Ok(())
    }

    /// Processes records, and encodes the replies they require. Returns the number of bytes consumed.
    fn process(
        &mut self,
        bytes: &mut [u8],
        read: &mut impl FnMut(&[u8]) -> bool,
    ) -> Result<usize, TlsError> {
        let mut taken = 0;
        loop {
            let UnbufferedStatus { discard, state } =
                self.session.process_tls_records(&mut bytes[taken..]);
            taken += discard;
            match state.map_err(|why| error(&why, &self.client))? {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(Ok(record)) = traffic.next_record() {
                        if !read(record.payload) {
                            return Ok(taken);
                        }
                    }
                }
                ConnectionState::EncodeTlsData(data) => encode(data, &mut self.records),
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => self.ended = true,
                _ => return Ok(taken),
            }
        }
    }

    /// Encrypts bytes up to the limit of unwritten records. Returns the number of bytes taken.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> usize {
        let Ok(ConnectionState::WriteTraffic(mut traffic)) =
            self.session.process_tls_records(&mut []).state
        else {
            return 0;
        };
        let from = self.records.len();
        let piece = &bytes[..bytes.len().min(RECORDS_BYTES_MAX.saturating_sub(from))];
        let mut encrypted = traffic.encrypt(piece, &mut []);
        if let Err(EncryptError::InsufficientSize(InsufficientSizeError { required_size })) =
            encrypted
        {
            self.records.resize(from + required_size, 0);
            encrypted = traffic.encrypt(piece, &mut self.records[from..]);
        }
        self.records
            .truncate(from + encrypted.as_ref().map_or(0, |count| *count));
        if encrypted.is_ok() { piece.len() } else { 0 }
    }

    pub(crate) fn output(&self) -> Option<&[u8]> {
        Some(&self.records[self.written..]).filter(|rest| !rest.is_empty())
    }

    pub(crate) fn wrote(&mut self, count: usize) {
        self.written += count;
        if self.written >= self.records.len() {
            self.records.clear();
            self.written = 0;
        }
    }
}

/// Appends a handshake message or an alert to the records to be written.
fn encode<T>(mut data: EncodeTlsData<'_, T>, records: &mut Vec<u8>) {
    let from = records.len();
    if let Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) =
        data.encode(&mut [])
    {
        records.resize(from + required_size, 0);
        let encoded = data.encode(&mut records[from..]);
        debug_assert!(matches!(encoded, Ok(count) if count == required_size));
    }
}

/// Number of bytes missing for the last record, or for the header of the next one.
fn missing(bytes: &[u8]) -> usize {
    let mut end = 0;
    while let Some(&[_, _, _, high, low]) = bytes.get(end..end + HEADER_BYTES) {
        end += HEADER_BYTES + usize::from(u16::from_be_bytes([high, low]));
        if end > bytes.len() {
            return end - bytes.len();
        }
    }
    end + HEADER_BYTES - bytes.len()
}

fn error(error: &Error, client: &ClientKey) -> TlsError {
    let is_of_certificate = matches!(error, Error::InvalidCertificate(_));
    let text = match error {
        Error::AlertReceived(alert) => format!("the server refused: {}", refusal(*alert, client)),
        error => text(error),
    };
    TlsError {
        cause: if is_of_certificate {
            Cause::Certificate
        } else {
            Cause::Tls
        },
        text,
    }
}

/// The reason for an alert. A server that requires a client certificate may send many different alerts if it
/// gets none. Only TLS 1.3 has a specific one.
fn refusal(alert: AlertDescription, client: &ClientKey) -> String {
    match client.asked() {
        Some(false) => {
            format!(
                "it asks for a client certificate: --cert FILE and --key FILE, in a file load.tls.cert and key, name one ({alert:?})"
            )
        }
        Some(true) if is_about_certificate(alert) => {
            format!("it does not accept the client certificate ({alert:?})")
        }
        _ => alert_text(alert),
    }
}

fn is_about_certificate(alert: AlertDescription) -> bool {
    use AlertDescription as Alert;
    matches!(
        alert,
        Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied
            | Alert::CertificateRequired
            | Alert::HandshakeFailure
    )
}

// TLS errors as text, with a hint.

fn text(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => certificate(error),
        Error::InvalidMessage(
            InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
        ) => "what came is not TLS: does the server speak plain HTTP on this port?".into(),
        Error::NoApplicationProtocol => {
            "the server does not offer the protocol that was asked for (ALPN)".into()
        }
        Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13) => {
            "the server offers neither TLS 1.2 nor TLS 1.3".into()
        }
        Error::PeerIncompatible(why) => {
            format!("the server offers nothing that is spoken here: {why:?}")
        }
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
            match time.as_secs().saturating_sub(not_after.as_secs()) / 86_400 {
                0 => "the server's certificate has expired, less than a day ago".into(),
                days => format!("the server's certificate has expired, {} ago", many(days, "day")),
            }
        }
        CertificateError::Expired => "the server's certificate has expired".into(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("the server's certificate is not valid yet: {text}")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("the server's certificate is for another name: {text}")
        }
        _ if is_of_authority(error) => {
            "the server's certificate is one of an authority (CA:TRUE), which may sign others but not be a server's unless it is itself \
             among the trusted ones"
                .into()
        }
        _ => format!("the server's certificate is not accepted: {text}"),
    }
}

fn alert_text(alert: AlertDescription) -> String {
    let what = match alert {
        AlertDescription::HandshakeFailure => {
            "it shares no cipher or key exchange with us (handshake_failure)"
        }
        AlertDescription::ProtocolVersion => {
            "it speaks neither TLS 1.2 nor TLS 1.3 (protocol_version)"
        }
        AlertDescription::UnrecognisedName => {
            "it does not know this server name (unrecognized_name)"
        }
        AlertDescription::NoApplicationProtocol => {
            "it does not offer the protocol that was asked for, HTTP/2 or HTTP/1.1 (no_application_protocol)"
        }
        other => return format!("{other:?}"),
    };
    what.into()
}
