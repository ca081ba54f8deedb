//! What is requested: one request from flags, or several from a file.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use load::Values;
use plan::{Request, Url};

use crate::compare::header;
use crate::exit::Failed;
use crate::experiment;
use crate::explanation::read_bounded;

/// More than any mix, and more than the engine takes of values.
const MIX_BYTES_MAX: u64 = 64 << 20;
const VALUES_BYTES_MAX: u64 = 1 << 30;

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
    /// Several requests, each as often as its weight says; the URL says the host. `proofload mix access.log` makes one, see docs/mix-file.md
    #[arg(long, value_name = "FILE", conflicts_with_all = ["method", "body", "values"])]
    mix: Option<PathBuf>,
}

impl Asking {
    /// What is requested of the host of `url`, at least one.
    ///
    /// # Errors
    /// If a file cannot be read or has problems, which are shown then.
    pub fn requests(&self, url: &Url) -> anyhow::Result<Vec<Request>> {
        let host = ("Host".to_owned(), url.authority());
        let mut requests = match &self.mix {
            None => vec![self.single(url)?],
            Some(_) if url.path != "/" => {
                let problem = format!("{url} has a path, and so has each request of --mix");
                return Err(Failed::usage(problem).hint(format!("{}, or no --mix", url.origin())).into());
            }
            Some(mix) => several(mix)?,
        };
        for request in &mut requests {
            for (name, value) in self.headers.iter().chain([&host]) {
                if self.mix.is_none() && name != "Host" {
                    continue;
                }
                if !request.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                    request.headers.push((name.clone(), value.clone()));
                }
            }
        }
        Ok(requests)
    }

    fn single(&self, url: &Url) -> Result<Request, Failed> {
        let (body, body_file) = match self.body.as_deref().map(|text| (text, text.strip_prefix('@'))) {
            None => (String::new(), None),
            Some((_, Some(path))) => (String::new(), Some(readable("the body", Path::new(path))?)),
            Some((text, None)) => (text.to_owned(), None),
        };
        let default_method = if self.body.is_some() { "POST" } else { "GET" };
        let method = self.method.clone().unwrap_or_else(|| default_method.to_owned());
        let values = self.values.as_deref().map(checked_values).transpose().map_err(Failed::usage)?;
        let (path, headers) = (url.path.clone(), self.headers.clone());
        Ok(Request { method, path, headers, body, body_file, values, ..Request::default() })
    }
}

/// The requests of a mix file. All that is wrong is shown at its place in the file.
fn several(path: &Path) -> anyhow::Result<Vec<Request>> {
    let unreadable = |error| Failed::usage(format!("cannot read the mix {}: {error}", path.display()));
    let text = read_bounded(path, MIX_BYTES_MAX).and_then(|text| {
        String::from_utf8(text).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
    });
    let text = text.map_err(unreadable)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let requests = plan::mix(&text, folder).map_err(|found| experiment::shown(path, &text, &found))?;
    let values: BTreeSet<&PathBuf> = requests.iter().filter_map(|request| request.values.as_ref()).collect();
    values.into_iter().try_for_each(|path| checked_values(path).map(drop)).map_err(Failed::usage)?;
    Ok(requests)
}

/// The path of a file with rows of values, absolute; the name of the file says in which form.
///
/// # Errors
/// What is wrong with the file or in it.
fn checked_values(path: &Path) -> Result<PathBuf, String> {
    let shown = path.display();
    let read: fn(&[u8]) -> _ = match path.extension().and_then(|extension| extension.to_str()) {
        Some("csv") => Values::csv,
        Some("jsonl" | "ndjson") => Values::jsonl,
        _ => return Err(format!("values {shown}: the name must end in .csv or .jsonl")),
    };
    let text = plan::read_file(path, VALUES_BYTES_MAX)
        .map_err(|error| format!("cannot read the values {shown}: {error}"))?;
    read(&text).map_err(|error| format!("values {shown}: {error}"))?;
    path.canonicalize().map_err(|error| format!("cannot read the values {shown}: {error}"))
}

/// The absolute path of a file that can be read.
fn readable(what: &str, path: &Path) -> Result<PathBuf, Failed> {
    let absolute = plan::open_file(path).and_then(|_| path.canonicalize());
    absolute.map_err(|error| Failed::usage(format!("cannot read {what} from {}: {error}", path.display())))
}
