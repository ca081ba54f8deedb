//! The mix file: several requests with their weights, values and expectations. `docs/mix-file.md` tells its form.
//!
//! It reads that file and those that it names; it sends nothing. All that is wrong is shown at its place in the file.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

use load::{Contract, Digest, Request, Values};
use plan::Problem;
use serde::Deserialize;
use toml::Spanned;

use super::flags::values;
use crate::exit::Failed;
use crate::problems;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    request: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    #[serde(default)]
    name: String,
    weight: Option<Spanned<u32>>,
    method: Option<String>,
    path: Spanned<String>,
    #[serde(default)]
    headers: BTreeMap<String, OneOrMore<String>>,
    body: Option<String>,
    body_file: Option<Spanned<PathBuf>>,
    values: Option<Spanned<PathBuf>>,
    expect: Option<Expect>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Expect {
    status: Option<Spanned<OneOrMore<u16>>>,
    headers: BTreeMap<String, OneOrMore<String>>,
    bytes: Option<u64>,
    sha256: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected one value or a list of such")]
enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

impl<T> OneOrMore<T> {
    fn all(self) -> Vec<T> {
        match self {
            OneOrMore::One(one) => vec![one],
            OneOrMore::More(more) => more,
        }
    }
}

/// Reads the requests of a mix file, at least one; `host` becomes their `Host`.
///
/// # Errors
/// If the file cannot be read or has problems; these are shown before.
pub fn read(path: &Path, host: &str) -> anyhow::Result<Vec<Request>> {
    let unreadable = |error| Failed::usage(format!("cannot read the mix {}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    Ok(parse(&text, folder, host).map_err(|found| problems::shown(path, &text, &found))?)
}

fn parse(text: &str, folder: &Path, host: &str) -> Result<Vec<Request>, Vec<Problem>> {
    let file: File = toml::from_str(text).map_err(|error| vec![of_form(&error)])?;
    let mut reader = Reader { folder, host, tables: HashMap::new(), problems: Vec::new() };
    if file.request.is_empty() {
        let hint = "begin with [[request]] and path = \"/\"";
        reader.problem(0..0, "there is no request", "the file is empty", Some(hint));
    }
    let requests = file.request.into_iter().map(|entry| reader.request(entry)).collect();
    if reader.problems.is_empty() { Ok(requests) } else { Err(reader.problems) }
}

/// What goes on while entries become requests.
struct Reader<'a> {
    folder: &'a Path,
    host: &'a str,
    /// By the name in the file, so that requests with the same values share them.
    tables: HashMap<PathBuf, Option<Values>>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn problem(&mut self, span: Range<usize>, message: impl Into<String>, label: &str, hint: Option<&str>) {
        let (label, hint) = (label.to_owned(), hint.map(str::to_owned));
        self.problems.push(Problem { span, message: message.into(), label, hint });
    }

    fn request(&mut self, entry: Entry) -> Request {
        if !entry.path.get_ref().starts_with('/') {
            let message = format!("the path {:?} does not begin with /", entry.path.get_ref());
            let hint = "path and query only; scheme and host are those of the URL";
            self.problem(entry.path.span(), message, "expected a /", Some(hint));
        }
        if let Some(weight) = entry.weight.as_ref().filter(|weight| *weight.get_ref() == 0) {
            let hint = "take the request out of the file, or give it a weight from 1";
            self.problem(weight.span(), "a weight of 0 is never sent", "at least 1", Some(hint));
        }
        if let Some(both) = entry.body_file.as_ref().filter(|_| entry.body.is_some()) {
            self.problem(both.span(), "there are a body and a body_file", "leave one out", None);
        }
        let inline = entry.body.map(String::into_bytes);
        let body = inline.or_else(|| entry.body_file.and_then(|path| self.body(&path)));
        let by_itself = if body.is_some() { "POST" } else { "GET" };
        let headers = entry.headers.into_iter();
        let headers =
            headers.flat_map(|(name, values)| values.all().into_iter().map(move |v| (name.clone(), v)));
        Request {
            name: entry.name,
            weight: entry.weight.map_or(1, Spanned::into_inner),
            method: entry.method.unwrap_or_else(|| by_itself.into()),
            path: entry.path.into_inner(),
            headers: headers.collect(),
            body: body.unwrap_or_default(),
            host: self.host.to_owned(),
            values: entry.values.and_then(|path| self.values(&path)),
            contract: entry.expect.map(|expect| self.contract(expect)),
        }
    }

    fn body(&mut self, path: &Spanned<PathBuf>) -> Option<Vec<u8>> {
        let found = std::fs::read(self.folder.join(path.get_ref()));
        if let Err(error) = &found {
            let message = format!("cannot read {}: {error}", path.get_ref().display());
            self.problem(path.span(), message, "no such body", Some(RELATIVE));
        }
        found.ok()
    }

    fn values(&mut self, path: &Spanned<PathBuf>) -> Option<Values> {
        if let Some(known) = self.tables.get(path.get_ref()) {
            return known.clone();
        }
        let read = values(&self.folder.join(path.get_ref()));
        if let Err(message) = &read {
            self.problem(path.span(), message.clone(), "no such values", Some(RELATIVE));
        }
        let table = read.ok();
        self.tables.insert(path.get_ref().clone(), table.clone());
        table
    }

    fn contract(&mut self, expect: Expect) -> Contract {
        let (place, status) = expect.status.map_or((0..0, Vec::new()), |s| (s.span(), s.into_inner().all()));
        if let Some(strange) = status.iter().find(|status| !(100..1000).contains(*status)) {
            self.problem(place, format!("{strange} is no status code"), "from 100 to 999", None);
        }
        let content = expect.sha256.and_then(|digits| {
            let digest = digits.get_ref().parse::<Digest>();
            if let Err(error) = &digest {
                let hint = "sha256sum FILE prints it, of the content without compression";
                self.problem(digits.span(), error.to_string(), "no SHA-256", Some(hint));
            }
            digest.ok()
        });
        let headers = expect.headers.into_iter().map(|(name, values)| (name, values.all())).collect();
        Contract { status, headers, body_bytes: expect.bytes, content }
    }
}

const RELATIVE: &str = "paths are relative to the mix file";

/// A problem of the form: the parser's words, and what was probably meant by a key that is none.
fn of_form(error: &toml::de::Error) -> Problem {
    let message = error.message().trim_end().replace('\n', "; ");
    let mut quoted = message.split('`').skip(1).step_by(2);
    let hint = match (message.starts_with("unknown field"), quoted.next()) {
        (true, Some(word)) => nearest(word, quoted).map(|known| format!("did you mean `{known}`?")),
        _ => None,
    };
    Problem { span: error.span().unwrap_or(0..0), message, label: "here".into(), hint }
}

/// As in the experiment file, about a third of the letters may be wrong.
fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let slips = |known: &&str| strsim::damerau_levenshtein(word, known);
    let allowed = |known: &str| word.len().max(known.len()).div_ceil(3);
    known.filter(|known| slips(known) <= allowed(known)).min_by_key(slips)
}

#[cfg(test)]
mod tests;
