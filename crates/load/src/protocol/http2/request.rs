//! Converts a request of the arena from HTTP/1.1 into the fields of HTTP/2.

use model::header;

use crate::reader::HEADERS_LIMIT;

/// Fields that are specific to HTTP/1.1 or have their own pseudo-field (RFC 9113, section 8.2.2).
pub(super) const OF_HTTP1: [&str; 6] = [
    "host",
    "connection",
    "transfer-encoding",
    "keep-alive",
    "proxy-connection",
    "upgrade",
];

/// Whether the request rendered as `bytes` can be sent over HTTP/2, to a valid host.
pub(super) fn has_form(bytes: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_graphic() && !b"/?#@\\".contains(byte);
    let is_host = |host: &[u8]| !host.is_empty() && host.iter().all(is_part);
    // The third is `:authority`.
    with_fields::<HEADERS_LIMIT, _>(bytes, "https", |fields, _| is_host(fields[2].1)) == Some(true)
}

/// Calls `show` with the fields of the request rendered as `bytes`, at most `MAX` header fields, and the
/// offset of its body. Returns `None` if it cannot be expressed in HTTP/2. A value that a user captured may
/// be part of the host, which the server then has to reject.
pub(super) fn with_fields<const MAX: usize, T>(
    bytes: &[u8],
    scheme: &str,
    show: impl FnOnce(&[(&[u8], &[u8])], usize) -> T,
) -> Option<T> {
    let mut space = [httparse::EMPTY_HEADER; MAX];
    let mut parsed = httparse::Request::new(&mut space);
    let Ok(httparse::Status::Complete(body_from)) = parsed.parse(bytes) else {
        return None;
    };
    let path = parsed
        .path
        .filter(|path| path.starts_with('/') || *path == "*")?;
    let host = parsed
        .headers
        .iter()
        .find(|field| header::is_same(field.name, "host"))?;
    let names: Vec<_> = parsed
        .headers
        .iter()
        .map(|field| header::key(field.name))
        .collect();
    let mut fields = vec![
        (&b":method"[..], parsed.method?.as_bytes()),
        (b":scheme", scheme.as_bytes()),
        (b":authority", host.value),
        (b":path", path.as_bytes()),
    ];
    for (name, header) in names.iter().zip(&*parsed.headers) {
        // The only value of TE that HTTP/2 allows.
        let is_kept = name != "te" || header.value.eq_ignore_ascii_case(b"trailers");
        if is_kept && !OF_HTTP1.contains(&name.as_str()) {
            fields.push((name.as_bytes(), header.value));
        }
    }
    Some(show(&fields, body_from))
}
