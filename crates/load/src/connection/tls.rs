//! TLS on one connection: between the bytes of the socket and those of the protocol. By rustls, without I/O.

mod wording;

use std::fmt;
use std::io::{BufRead, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind};

use model::Cause;

/// What all connections of a thread have in common.
#[derive(Debug, Clone)]
pub(crate) struct TlsTerms {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

/// Why a handshake or a record failed.
pub(super) struct Flaw {
    pub(super) cause: Cause,
    pub(super) text: String,
}

impl Flaw {
    pub(super) fn no_http2() -> Flaw {
        Flaw { cause: Cause::Tls, text: "the server does not offer HTTP/2 (ALPN)".into() }
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
    pub(super) fn new(terms: &TlsTerms) -> Result<Tls, Flaw> {
        let session = ClientConnection::new(terms.config.clone(), terms.name.clone()).map_err(flaw)?;
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
    pub(super) fn received(&mut self, bytes: &mut &[u8]) -> Result<(), Flaw> {
        if let Err(error) = self.session.read_tls(bytes) {
            return Err(Flaw { cause: Cause::Tls, text: error.to_string() });
        }
        let state = self.session.process_new_packets();
        // Where it failed, the alert that says so.
        self.flush();
        self.ended = state.map_err(flaw)?.peer_has_closed();
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

fn flaw(error: rustls::Error) -> Flaw {
    let cause = match error {
        rustls::Error::InvalidCertificate(_) => Cause::Certificate,
        _ => Cause::Tls,
    };
    Flaw { cause, text: wording::text(&error) }
}
