//! The templates of a service, read and judged when the experiment is: a trial must not fail for a slip in one.
//!
//! It reads the files that the experiment names and nothing else.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::{may_be_known, placeholder_hint};
use crate::check::{clipped, shown_key};
use crate::file::Service;
use crate::placeholder::Placeholder;
use crate::problem::Problem;
use crate::site::Site;
use crate::template::template_placeholders;

/// Larger than any configuration; keeps a mistaken path from filling plan and record.
const TEMPLATE_BYTES_MAX: u64 = 1 << 20;
const NAME_BYTES_MAX: usize = 100;

/// Reports names under which no file can be made, or that launchers keep for themselves.
pub(super) fn judge_names(site: &mut Site<'_>, service_name: &str, service: &Service) {
    for name in service.templates.keys() {
        let plain = !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.contains(['/', '\0']);
        if !plain || name.starts_with('.') {
            let message = format!("`{}` is not a name for a file made from a template", clipped(name));
            let span = site.tree.key_place(&["services", service_name, "templates", name]);
            let label =
                format!("expected at most {NAME_BYTES_MAX} bytes, no `/`, and no `.` at the beginning");
            site.report(Problem::new(span, message, label));
        }
    }
}

/// The texts of all templates by the names of the files made from them; `known` are the placeholders' names.
///
/// A problem in a template is shown at the key that names it, and tells its place in the template itself.
pub(super) fn read(
    site: &mut Site<'_>,
    service_name: &str,
    service: &Service,
    directory: &Path,
    known: &[String],
) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for (name, written) in &service.templates {
        let span = site.tree.place(&["services", service_name, "templates", name]);
        let shown = match service.directory.as_str() {
            "." => written.clone(),
            _ if service.host.is_some() => written.clone(),
            folder => Path::new(folder).join(written).display().to_string(),
        };
        match text(&directory.join(written)) {
            Ok(text) => {
                for Unknown { place, name, message } in unknown(&text, known) {
                    if name.is_some_and(|name| may_be_known(site, name)) {
                        continue;
                    }
                    let hint = match name {
                        Some(name) => placeholder_hint(site, service_name, name, known, ("{{", "}}")),
                        None => NOT_CLOSED.to_owned(),
                    };
                    let message = format!("{shown}:{place}: {message}");
                    // The label tells problems of one template apart, which all stand at one place.
                    let problem = Problem::new(span.clone(), message, format!("at {place} of this template"));
                    site.report(problem.hint(hint));
                }
                texts.insert(name.clone(), text);
            }
            Err(Unreadable { place, reason }) => {
                let key = shown_key(name);
                let message = format!("`services.{service_name}.templates.{key}`: {shown}{place}: {reason}");
                let problem = Problem::new(span, message, "expected a template");
                site.report(problem.hint(format!("looked for {}", directory.join(written).display())));
            }
        }
    }
    texts
}

/// Why there is no text; where in the file, if the reason has a place there.
struct Unreadable {
    place: String,
    reason: String,
}

fn text(path: &Path) -> Result<String, Unreadable> {
    let nowhere = |reason: String| Unreadable { place: String::new(), reason };
    let bytes = bytes(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => nowhere("it does not exist".to_owned()),
        _ => nowhere(error.to_string()),
    })?;
    if bytes.len() as u64 > TEMPLATE_BYTES_MAX {
        return Err(nowhere(format!("it is larger than {TEMPLATE_BYTES_MAX} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let (before, rest) = error.as_bytes().split_at(at);
        let place = format!(":{}", line_column(&String::from_utf8_lossy(before)));
        Unreadable { place, reason: format!("the byte 0x{:02x} is not UTF-8", rest[0]) }
    })
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    // Opening something else, such as a pipe, might wait for ever.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(TEMPLATE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A placeholder without meaning: its line and column, its name where it has one, what is wrong with it.
struct Unknown<'a> {
    place: String,
    name: Option<&'a str>,
    message: String,
}

const NOT_CLOSED: &str =
    "a placeholder ends in its line with `}}`; two plain braces need a blank between them";

fn unknown<'a>(text: &'a str, known: &[String]) -> Vec<Unknown<'a>> {
    let found = template_placeholders(text).into_iter();
    let found = found.filter(|placeholder| !known.iter().any(|known| known == placeholder.name));
    let unknown = |Placeholder { name, range }: Placeholder<'a>| {
        let place = line_column(&text[..range.start]);
        if name.starts_with("{{") {
            return Unknown { place, name: None, message: "`{{` is not closed".to_owned() };
        }
        let message = format!("unknown placeholder `{}`", clipped(&text[range]));
        Unknown { place, name: Some(name), message }
    };
    found.map(unknown).collect()
}

/// Line and column of what comes behind `before`, both from 1, the column in characters.
fn line_column(before: &str) -> String {
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    format!("{}:{}", before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}
