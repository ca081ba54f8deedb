//! The part of a connection that has TLS below its protocol: what is received is decrypted on its way up, what is to be
//! written is encrypted on its way down. It must not know what the protocol says.

use super::tls::{Flaw, Tls};
use super::{Connection, Desk, Heard, Session, Stage};
use crate::Protocol;
use crate::corpus::Corpus;
use crate::share::Terms;

impl Connection {
    pub(super) fn decrypt(
        &mut self,
        tls: &mut Tls,
        mut bytes: &[u8],
        terms: &Terms,
        desk: &mut Desk<'_>,
    ) -> Heard {
        // What follows the end is nothing any more.
        while !bytes.is_empty() && !tls.is_ended() {
            let before = tls.is_handshaking();
            let received = tls.received(&mut bytes);
            if before && !tls.is_handshaking() {
                if matches!(terms.protocol, Protocol::Http2 { .. }) && tls.protocol() != Some(b"h2") {
                    return self.tls_failed(Flaw::no_http2(), desk);
                }
                self.shook_hands(tls, desk);
                let _ = self.speak(terms, desk);
            }
            // What came before a flaw has come, however the bytes happened to be cut.
            while let Some(plain) = tls.plain() {
                let (heard, count) = (self.read(plain, terms, desk), plain.len());
                if heard == Heard::Lost {
                    return heard;
                }
                tls.consume(count);
            }
            if let Err(flaw) = received {
                return self.tls_failed(flaw, desk);
            }
        }
        if tls.is_ended() {
            return self.ended(terms, desk);
        }
        // An answer of the handshake, or of the protocol, may be waiting to be written.
        Heard::Free
    }

    /// Encrypts what the protocol wants to write, a limited part at a time: the rest follows when that is written, so that
    /// a request counts as written when it is, and a long one is not held twice.
    pub(super) fn encrypt(&mut self, corpus: &Corpus) {
        let Some(tls) = &mut self.tls else { return };
        if !tls.is_handshaking() && tls.output().is_none() {
            while let Some(bytes) = session!(&self.session, session => session.output(corpus)) {
                let count = tls.write(bytes);
                if count == 0 {
                    break;
                }
                session!(&mut self.session, session => session.wrote(count, corpus));
            }
        }
        tls.flush();
    }

    pub(super) fn tls_failed(&mut self, flaw: Flaw, desk: &mut Desk<'_>) -> Heard {
        desk.tally.counts.tls_error.get_or_insert(flaw.text);
        self.failed(flaw.cause, desk)
    }

    fn shook_hands(&mut self, tls: &Tls, desk: &mut Desk<'_>) {
        if let Stage::Securing { since_ns, .. } = self.stage {
            desk.tally.counts.handshake.record(desk.now_ns - since_ns);
            desk.tally.counts.tls_resumed += u64::from(tls.is_resumed());
        }
    }
}
