//! What is requested: one request from flags, or several from a file.

use std::path::{Path, PathBuf};

use clap::Args;
use load::{Request, Values};

use super::super::mix;
use super::super::url::Url;
use super::header;
use crate::exit::Failed;

/// Flags about requests.
#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
pub struct Asking {
    /// The request's method [default: GET, or POST with a body]
    #[arg(short = 'X', long)]
    method: Option<String>,
    /// A request header, NAME: VALUE; may be repeated. With --mix for all requests that do not have it
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
    /// The request's body: its text, or @FILE for what a file contains
    #[arg(short, long, value_name = "TEXT|@FILE")]
    body: Option<String>,
    /// Rows of values, .csv or .jsonl: {column} in path, headers and body stands for the value of a row drawn at random
    #[arg(long, value_name = "FILE")]
    values: Option<PathBuf>,
    /// Several requests, each as often as its weight says; the URL says the host. See docs/mix-file.md
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "body", "values"])]
    mix: Option<PathBuf>,
}

impl Asking {
    /// The file with several requests, if there is one.
    pub fn mix(&self) -> Option<&Path> {
        self.mix.as_deref()
    }

    /// What is requested, at least one.
    ///
    /// # Errors
    /// If a file cannot be read or has problems, which are shown then.
    pub fn requests(&self, url: &Url) -> anyhow::Result<Vec<Request>> {
        let Some(mix) = &self.mix else { return Ok(vec![self.single(url)?]) };
        if url.path != "/" {
            let problem = format!("{url} has a path, and so has each request of --mix");
            return Err(Failed::usage(problem).hint(format!("{}, or no --mix", url.origin())).into());
        }
        let mut requests = mix::read(mix, &url.authority())?;
        for request in &mut requests {
            for (name, value) in &self.headers {
                if !request.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                    request.headers.push((name.clone(), value.clone()));
                }
            }
        }
        Ok(requests)
    }

    fn single(&self, url: &Url) -> Result<Request, Failed> {
        let body = self.body.as_deref().map(body).transpose()?;
        let default_method = if body.is_some() { "POST" } else { "GET" };
        let method = self.method.as_deref().unwrap_or(default_method);
        Ok(Request {
            headers: self.headers.clone(),
            body: body.unwrap_or_default(),
            values: self.values.as_deref().map(values).transpose().map_err(Failed::usage)?,
            ..Request::new(method, &url.path, &url.authority())
        })
    }
}

/// Reads rows of values; the name of the file says in which form.
///
/// # Errors
/// What is wrong with the file or in it.
pub fn values(path: &Path) -> Result<Values, String> {
    let shown = path.display();
    let read: fn(&[u8]) -> _ = match path.extension().and_then(|extension| extension.to_str()) {
        Some("csv") => Values::csv,
        Some("jsonl" | "ndjson") => Values::jsonl,
        _ => return Err(format!("values {shown}: the name must end in .csv or .jsonl")),
    };
    let text = std::fs::read(path).map_err(|error| format!("cannot read the values {shown}: {error}"))?;
    read(&text).map_err(|error| format!("values {shown}: {error}"))
}

fn body(text: &str) -> Result<Vec<u8>, Failed> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.as_bytes().to_vec()) };
    let unreadable = |error| Failed::usage(format!("cannot read the body from {path}: {error}"));
    std::fs::read(path).map_err(unreadable)
}
