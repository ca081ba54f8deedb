//! What went wrong with TLS, in words that say what to do about it.

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, PeerIncompatible};

/// An error as it is reported.
pub(super) fn text(error: &Error) -> String {
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
            "the server's certificate is signed by nobody who is trusted: by an authority of its own, or by itself"
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
            "it shares no cipher or key exchange with us (handshake_failure)"
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
