//! A request as the arena has it, in the form of HTTP/1.1, shown as the fields of HTTP/2.

use model::header;

use crate::reader::HEADERS_LIMIT;

/// Belong to a connection of HTTP/1.1, or stand in a field of their own (RFC 9113, section 8.2.2).
pub(super) const OF_HTTP1: [&str; 6] =
    ["host", "connection", "transfer-encoding", "keep-alive", "proxy-connection", "upgrade"];

/// Whether the request that was rendered as `bytes` can be sent over HTTP/2, to a host that is one.
pub(super) fn has_form(bytes: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_graphic() && !b"/?#@\\".contains(byte);
    let is_host = |host: &[u8]| !host.is_empty() && host.iter().all(is_part);
    // The third is `:authority`.
    with_fields::<HEADERS_LIMIT, _>(bytes, "https", |fields, _| is_host(fields[2].1)) == Some(true)
}

/// Shows the fields of the request that was rendered as `bytes`, of `MAX` header fields at most, and where its body begins; `None` where HTTP/2 has no form for it. What a
/// user has captured may be a part of its host: that is the server's to refuse.
pub(super) fn with_fields<const MAX: usize, T>(
    bytes: &[u8],
    scheme: &str,
    show: impl FnOnce(&[(&[u8], &[u8])], usize) -> T,
) -> Option<T> {
    let mut space = [httparse::EMPTY_HEADER; MAX];
    let mut parsed = httparse::Request::new(&mut space);
    let Ok(httparse::Status::Complete(body_from)) = parsed.parse(bytes) else { return None };
    let path = parsed.path.filter(|path| path.starts_with('/') || *path == "*")?;
    let host = parsed.headers.iter().find(|field| header::is_same(field.name, "host"))?;
    let names: Vec<_> = parsed.headers.iter().map(|field| header::key(field.name)).collect();
    let mut fields = vec![
        (&b":method"[..], parsed.method?.as_bytes()),
        (b":scheme", scheme.as_bytes()),
        (b":authority", host.value),
        (b":path", path.as_bytes()),
    ];
    for (name, header) in names.iter().zip(&*parsed.headers) {
        // Of what a client may say of transfer codings, HTTP/2 knows this alone.
        let is_kept = name != "te" || header.value.eq_ignore_ascii_case(b"trailers");
        if is_kept && !OF_HTTP1.contains(&name.as_str()) {
            fields.push((name.as_bytes(), header.value));
        }
    }
    Some(show(&fields, body_from))
}
