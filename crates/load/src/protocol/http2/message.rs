//! Requests and responses of HTTP/2 in the form of HTTP/1.1, in which the arena and the contract have them.

use bytes::Bytes;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderName, HeaderValue, Method, Request, Response, Uri};

use crate::reader::{HEADERS_LIMIT, Head};

/// Belong to a connection of HTTP/1.1, or stand in the URI (RFC 9113, section 8.2.2).
const DROPPED: [&str; 6] =
    ["host", "connection", "transfer-encoding", "keep-alive", "proxy-connection", "upgrade"];

/// Whether the request that was rendered as `bytes` can be sent over HTTP/2.
pub(super) fn has_form(bytes: &[u8]) -> bool {
    request(bytes, "https").is_some()
}

/// A request's head and its body.
pub(super) type Message = (Request<()>, Bytes);

/// The request that was rendered as `bytes`; `None` where HTTP/2 has no form for it.
pub(super) fn request(bytes: &[u8], scheme: &str) -> Option<Message> {
    let mut space = [httparse::EMPTY_HEADER; HEADERS_LIMIT];
    let mut parsed = httparse::Request::new(&mut space);
    let Ok(httparse::Status::Complete(head_bytes)) = parsed.parse(bytes) else { return None };
    let host = parsed.headers.iter().find(|header| header.name.eq_ignore_ascii_case("host"))?;
    let uri = Uri::builder()
        .scheme(scheme)
        .authority(Authority::try_from(host.value).ok()?)
        .path_and_query(PathAndQuery::try_from(parsed.path?).ok()?)
        .build()
        .ok()?;
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(parsed.method?.as_bytes()).ok()?;
    *request.uri_mut() = uri;
    *request.version_mut() = http::Version::HTTP_2;
    let kept = |header: &&httparse::Header<'_>| {
        let is = |name: &&str| header.name.eq_ignore_ascii_case(name);
        // Of what a client may say of transfer codings, HTTP/2 knows this alone.
        !DROPPED.iter().any(is) && (!is(&"te") || header.value.eq_ignore_ascii_case(b"trailers"))
    };
    for header in parsed.headers.iter().filter(kept) {
        let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
        request.headers_mut().append(name, HeaderValue::from_bytes(header.value).ok()?);
    }
    Some((request, Bytes::copy_from_slice(&bytes[head_bytes..])))
}

/// Shows a response's head as one of HTTP/1.1.
pub(super) fn with_head<T>(response: &Response<T>, look: impl FnOnce(&Head<'_>)) {
    let headers: Vec<_> = response
        .headers()
        .iter()
        .map(|(name, value)| httparse::Header { name: name.as_str(), value: value.as_bytes() })
        .collect();
    look(&Head { status: response.status().as_u16(), headers: &headers });
}
