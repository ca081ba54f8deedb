//! Renders a request, once or once for each row of its values, before the load starts.
//!
//! Parts that are the same for all rows are checked and parsed once, and values are checked when they are
//! filled in. Requests that could not be sent as intended are rejected: line breaks in a header, or a length
//! that is not the body's. This module does not choose rows.

mod template;

use std::io::Write;

use model::header;
use model::quantity::many;

use crate::error::refuse;
use crate::reader::is_token;
use crate::values::shown;
use crate::{LoadError, RequestSpec, Values};
use template::{RequestTemplate, TemplateNames};

const USER_AGENT: &str = concat!("proofload/", env!("CARGO_PKG_VERSION"));
const CONTENT_TYPE: &str = "content-type";

/// Appends a value in the form required at its place.
type Escape = fn(&str, &mut Vec<u8>);

/// A place in a rendered request, by its offset, that each user fills with its own data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hole {
    pub(crate) at: usize,
    pub(crate) what: Filling,
}

/// The data that fills a hole.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Filling {
    /// The captured value with this index.
    Value(usize, Escape),
    /// The length of the body.
    BodyBytes,
    /// Nothing. Marks the start of the body.
    Body,
    /// The `Cookie` field, if there are cookies.
    Cookies,
    /// More cookies in the existing field, because only one is allowed (RFC 6265, section 5.4).
    MoreCookies,
}

/// Renders one request. With values, renders the first row.
///
/// # Errors
/// Returns a [`LoadError::Spec`] if it cannot be sent as intended.
pub(crate) fn bytes(request: &RequestSpec) -> Result<Vec<u8>, LoadError> {
    let mut bytes = Vec::new();
    Renderer::new(request, &[], false)?.push(0, &mut bytes)?;
    Ok(bytes)
}

/// A parsed request: the parts that are the same for all rows, and the places of a row's values.
#[derive(Debug)]
pub(crate) struct Renderer<'r> {
    request: &'r RequestSpec,
    /// Number of columns of its values. Higher indices denote captured values.
    columns: usize,
    /// Whether users send their cookies with it.
    cookies: bool,
    path: RequestTemplate,
    /// One template for each header of the request.
    headers: Vec<RequestTemplate>,
    body: RequestTemplate,
    /// How a value is written into the body.
    body_escape: Escape,
    /// The body of the current row. It is filled first, because its length precedes it.
    filled_body: Vec<u8>,
}

impl<'r> Renderer<'r> {
    /// Parses the request. Placeholders may also use these names of values captured before.
    ///
    /// # Errors
    /// Returns a [`LoadError::Spec`] for errors that do not depend on the row.
    pub(crate) fn new(
        request: &'r RequestSpec,
        captured: &[String],
        cookies: bool,
    ) -> Result<Renderer<'r>, LoadError> {
        check_method(&request.method)?;
        if !request.host.bytes().all(is_value) {
            return refuse(
                "load.host",
                format!("{:?} contains a control character", request.host),
            );
        }
        let names = TemplateNames {
            values: request.values.as_ref(),
            captured,
        };
        let path = read("load.path", request.path.as_bytes(), names)?;
        check_path(&request.path, &path)?;
        let header = |(name, value): &(String, String)| header(name, value, names);
        let headers: Vec<RequestTemplate> = request
            .headers
            .iter()
            .map(header)
            .collect::<Result<_, _>>()?;
        let body = read("load.body", &request.body, names)?;
        if body.has_columns() && has(request, "transfer-encoding") {
            let problem = "Transfer-Encoding frames a body as it is written, not as values fill it; leave it out";
            return refuse("load.headers", problem);
        }
        if body.uses(|number| number >= names.columns()) && has(request, "content-length") {
            let problem =
                "Content-Length is not known before captured values fill the body; leave it out";
            return refuse("load.headers", problem);
        }
        let body_escape: Escape = if is_json(request) { json } else { raw };
        let (columns, filled_body) = (names.columns(), Vec::new());
        Ok(Renderer {
            request,
            columns,
            cookies,
            path,
            headers,
            body,
            body_escape,
            filled_body,
        })
    }

    /// Number of different requests: one for each row if a value is used, otherwise one.
    pub(crate) fn variants(&self) -> usize {
        let rows = self.request.values.as_ref().map_or(1, Values::rows);
        if self.uses_values() { rows } else { 1 }
    }

    /// Whether there is a placeholder of a column.
    pub(crate) fn uses_values(&self) -> bool {
        let is_column = |number| number < self.columns;
        [&self.path, &self.body]
            .into_iter()
            .chain(&self.headers)
            .any(|template| template.uses(is_column))
    }

    /// Appends the request of one row (from 0) to `out`, and returns its holes in order.
    ///
    /// # Errors
    /// Returns a [`LoadError::Spec`] for errors in the row's values. `out` then ends with an incomplete
    /// request.
    pub(crate) fn push(&mut self, row: usize, out: &mut Vec<u8>) -> Result<Vec<Hole>, LoadError> {
        let (request, columns, begin) = (self.request, self.columns, out.len());
        let (mut holes, mut in_body) = (Vec::new(), Vec::new());
        self.filled_body.clear();
        let of_body = writer((request, row), columns, self.body_escape, &mut in_body);
        self.body.fill(&mut self.filled_body, of_body)?;

        out.extend_from_slice(request.method.as_bytes());
        out.push(b' ');
        self.path
            .fill(out, writer((request, row), columns, percent, &mut holes))?;
        out.extend_from_slice(b" HTTP/1.1\r\n");
        if !has(request, "host") {
            push_field(out, "Host", &request.host);
        }
        if !has(request, "user-agent") {
            push_field(out, "User-Agent", USER_AGENT);
        }
        if wants_length(request) {
            let length = self.filled_body.len().to_string();
            push_field(
                out,
                "Content-Length",
                if in_body.is_empty() { &length } else { "" },
            );
            let what = Filling::BodyBytes;
            holes.extend((!in_body.is_empty()).then_some(Hole {
                at: out.len() - 2,
                what,
            }));
        }
        let mut wants_cookies = self.cookies;
        for ((name, _), template) in request.headers.iter().zip(&self.headers) {
            self.push_header((row, name), template, out, &mut holes)?;
            if wants_cookies && header::is_same(name, "cookie") {
                wants_cookies = false;
                holes.push(Hole {
                    at: out.len() - 2,
                    what: Filling::MoreCookies,
                });
            }
        }
        holes.extend(wants_cookies.then_some(Hole {
            at: out.len(),
            what: Filling::Cookies,
        }));
        out.extend_from_slice(b"\r\n");
        let body_at = out.len();
        holes.extend((!in_body.is_empty()).then_some(Hole {
            at: body_at,
            what: Filling::Body,
        }));
        holes.extend(in_body.into_iter().map(|hole| Hole {
            at: hole.at + body_at,
            ..hole
        }));
        out.extend_from_slice(&self.filled_body);
        holes.iter_mut().for_each(|hole| hole.at -= begin);
        Ok(holes)
    }

    fn push_header(
        &self,
        (row, name): (usize, &str),
        template: &RequestTemplate,
        out: &mut Vec<u8>,
        holes: &mut Vec<Hole>,
    ) -> Result<(), LoadError> {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        let start = out.len();
        template.fill(out, |column, out| {
            if let Some(number) = column.checked_sub(self.columns) {
                holes.push(Hole {
                    at: out.len(),
                    what: Filling::Value(number, raw),
                });
                return Ok(());
            }
            let value = cell(self.request, row, column);
            if !value.bytes().all(is_value) {
                let problem = format!("{name}: {} contains a control character", shown(value));
                return refuse("load.headers", problem + &self.origin(row, Some(column)));
            }
            raw(value, out);
            Ok(())
        })?;
        let length = self.filled_body.len();
        if header::is_same(name, "content-length")
            && out[start..].trim_ascii() != length.to_string().as_bytes()
        {
            let value = String::from_utf8_lossy(&out[start..]);
            let problem = format!(
                "{name}: {value} does not agree with the body of {}",
                many(length as u64, "byte")
            );
            return refuse("load.headers", problem + &self.origin(row, None));
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// Describes the source of an error, if it comes from the values.
    fn origin(&self, row: usize, column: Option<usize>) -> String {
        let Some(values) = self.request.values.as_ref().filter(|_| self.uses_values()) else {
            return String::new();
        };
        let line = values.line(row);
        let column = column.map(|column| format!(", column {}", shown(&values.columns()[column])));
        format!(" (values, line {line}{})", column.unwrap_or_default())
    }
}

/// Returns a function that writes the values of one row in one form, and leaves holes for captured values.
fn writer(
    (request, row): (&RequestSpec, usize),
    columns: usize,
    escape: Escape,
    holes: &mut Vec<Hole>,
) -> impl FnMut(usize, &mut Vec<u8>) -> Result<(), LoadError> {
    move |column, out| {
        match column.checked_sub(columns) {
            None => escape(cell(request, row, column), out),
            Some(number) => holes.push(Hole {
                at: out.len(),
                what: Filling::Value(number, escape),
            }),
        }
        Ok(())
    }
}

/// Without values there is no placeholder, so this is not called.
fn cell(request: &RequestSpec, row: usize, column: usize) -> &str {
    request
        .values
        .as_ref()
        .map_or("", |values| values.cell(row, column))
}

fn raw(value: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(value.as_bytes());
}

fn push_field(out: &mut Vec<u8>, name: &str, value: &str) {
    for part in [name, ": ", value, "\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

fn has(request: &RequestSpec, name: &str) -> bool {
    header::has(&request.headers, name)
}

/// RFC 9110, section 8.6: a length of zero is sent if the method could have had a body.
fn wants_length(request: &RequestSpec) -> bool {
    let may_have_body = matches!(request.method.as_str(), "POST" | "PUT" | "PATCH");
    (may_have_body || !request.body.is_empty())
        && !has(request, "content-length")
        && !has(request, "transfer-encoding")
}

/// `application/json`, `application/problem+json`, `application/x-ndjson`, with or without parameters.
fn is_json(request: &RequestSpec) -> bool {
    let is_json = |value: &str| {
        let media_type = value.split(';').next().unwrap_or_default().trim();
        media_type.to_ascii_lowercase().ends_with("json")
    };
    header::values(&request.headers, CONTENT_TYPE).any(|value| is_json(value))
}

fn read(
    field: &'static str,
    text: &[u8],
    names: TemplateNames<'_>,
) -> Result<RequestTemplate, LoadError> {
    RequestTemplate::read(text, names).or_else(|problem| refuse(field, problem))
}

fn header(name: &str, value: &str, names: TemplateNames<'_>) -> Result<RequestTemplate, LoadError> {
    if name.is_empty() || !name.bytes().all(is_token) {
        return refuse("load.headers", format!("{name:?} is no header name"));
    }
    let template = RequestTemplate::read(value.as_bytes(), names)
        .or_else(|problem| refuse("load.headers", format!("{name}: {problem}")))?;
    if !template.texts().all(is_value) {
        // Without the value, which may be a secret.
        return refuse(
            "load.headers",
            format!("{name}: its value contains a control character"),
        );
    }
    if template.has_columns() && header::is_same(name, CONTENT_TYPE) {
        let problem = format!(
            "{name}: {value:?} decides how values are written into the body and has one itself"
        );
        return refuse("load.headers", problem + "; make a request of each type");
    }
    Ok(template)
}

fn check_method(method: &str) -> Result<(), LoadError> {
    if method.is_empty() || !method.bytes().all(is_token) {
        return refuse("load.method", format!("{method:?} is no HTTP method"));
    }
    if method == "CONNECT" {
        return refuse(
            "load.method",
            "CONNECT opens a tunnel, which cannot be loaded",
        );
    }
    Ok(())
}

/// Values cannot be invalid here, because they are escaped.
fn check_path(path: &str, template: &RequestTemplate) -> Result<(), LoadError> {
    let is_asterisk = template.start() == b"*" && !template.has_columns();
    if !template.start().starts_with(b"/") && !is_asterisk {
        return refuse("load.path", format!("{path:?} does not begin with /"));
    }
    if let Some(byte) = template.texts().find(|byte| !byte.is_ascii_graphic()) {
        let shown = byte.escape_ascii();
        return refuse(
            "load.path",
            format!("{path:?} contains '{shown}', which must be %-escaped"),
        );
    }
    Ok(())
}

fn is_value(byte: u8) -> bool {
    byte == b'\t' || (byte >= b' ' && byte != 0x7f)
}

// Escaping of values, so that each stays within its place in a request. Pure.
//
// These functions reject no value, because each form can represent every text.

/// For a path or a query: each byte that is not unreserved (RFC 3986, section 2.3) becomes `%XX`.
///
/// `/`, `?`, `&` and `=` are escaped as well, because a value is one segment of the path or one value of the
/// query.
fn percent(value: &str, out: &mut Vec<u8>) {
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(byte);
        } else {
            write!(out, "%{byte:02X}").expect("a vector takes all it is given");
        }
    }
}

/// For the inside of a JSON string (RFC 8259, section 7), without the quotes.
fn json(value: &str, out: &mut Vec<u8>) {
    for byte in value.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => write!(out, "\\u{byte:04x}").expect("a vector takes all it is given"),
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests;
