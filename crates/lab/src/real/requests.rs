//! The plan's load in the engine's words: with the rows of values, bodies and authorities that its files have, and secrets filled in.
//!
//! It reads those files; it renders nothing and sends nothing.

use std::path::Path;

use load::{Request, Tls, Trust, Values};
use plan::Secrets;

use crate::environment::{Failure, Result};

/// More than the engine takes of rows of values, and more than any body.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// What a variant sends, to the host and port that its `Host` field shall name.
///
/// # Errors
/// [`Failure::Generator`], with what is wrong with a file.
pub(super) fn requests(load: &plan::Load, host: &str, secrets: &Secrets) -> Result<Vec<Request>> {
    load.requests.iter().map(|request| one(request, host, secrets)).collect()
}

fn one(request: &plan::Request, host: &str, secrets: &Secrets) -> Result<Request> {
    // With rows of values braces are read once more.
    let filled = |text: &str| secrets.fill_request(text, request.values.is_some());
    let path = filled(&request.path);
    let body = match &request.body_file {
        Some(file) => read(file)?,
        None => filled(&request.body).into_bytes(),
    };
    Ok(Request {
        name: name(request, &path),
        weight: request.weight,
        headers: request.headers.iter().map(|(name, value)| (name.clone(), filled(value))).collect(),
        body,
        values: request.values.as_deref().map(values).transpose()?,
        contract: request.expect.clone(),
        ..Request::new(&request.method, &path, host)
    })
}

/// What reports call it. Without a name that is the path that is sent, unless there is a secret in it.
fn name(request: &plan::Request, sent: &str) -> String {
    let kept = plan::masked(None, &request.path);
    if request.name.is_empty() && kept != sent {
        return format!("{} {kept}", request.method);
    }
    request.name.clone()
}

/// TLS with the authorities of its file.
///
/// # Errors
/// [`Failure::Generator`], if that cannot be read.
pub(super) fn tls(tls: &plan::Tls) -> Result<Tls> {
    let trust = match (&tls.ca, tls.insecure) {
        (_, true) => Trust::Anything,
        (Some(file), false) => Trust::Authorities(read(file)?),
        (None, false) => Trust::System,
    };
    let server_name = tls.server_name.clone().unwrap_or_default();
    Ok(Tls { server_name, trust, resumption: tls.resumption })
}

/// Reads rows of values; the end of the file's name says in which form.
fn values(file: &Path) -> Result<Values> {
    let is_csv = file.extension().is_some_and(|end| end == "csv");
    let bytes = read(file)?;
    let rows = if is_csv { Values::csv(&bytes) } else { Values::jsonl(&bytes) };
    rows.map_err(|error| Failure::Generator(format!("values {}: {error}", file.display())))
}

fn read(file: &Path) -> Result<Vec<u8>> {
    plan::read_file(file, FILE_BYTES_MAX)
        .map_err(|error| Failure::Generator(format!("cannot read {}: {error}", file.display())))
}
