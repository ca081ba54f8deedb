//! From a script's address to its place: a file as it is called on every machine, whose it is, and of which package; and where a service
//! lies, by its files. It must not look at the disk.

use std::collections::HashMap;

use super::package;
use crate::label::{clean, clean_path};
use crate::{Kind, Package, Source};

/// The file that takes our own profiles, in a folder of its own. What it costs is the profiler's, not the service's.
const AGENT: &str = "agent.cjs";
const AGENT_FOLDER: &str = "proofload-";
const AGENT_PACKAGE: &str = "proofload-agent";
/// Files further up than this are named by their whole path.
const UP_MAX: usize = 3;

/// Where a function is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Its file as it is called.
    pub file: String,
    /// Whose it is.
    pub kind: Kind,
    /// Of which package.
    pub package: Option<Package>,
    /// Where it is on this disk, if it is a file.
    pub path: Option<String>,
}

impl Place {
    fn own(file: &str, path: Option<String>) -> Self {
        Self { file: clean_path(file), kind: Kind::Application, package: None, path }
    }

    /// For notes.
    pub fn shown(&self) -> String {
        match &self.package {
            Some(package) => format!("{}/{}", package.name, self.file),
            None => self.file.clone(),
        }
    }
}

/// Tells places, below a directory.
pub(super) struct Placing<'a> {
    directory: String,
    source: &'a dyn Source,
    versions: HashMap<String, Option<String>>,
}

impl<'a> Placing<'a> {
    pub fn below(directory: String, source: &'a dyn Source) -> Self {
        Self { directory, source, versions: HashMap::new() }
    }

    /// The place of a script.
    pub fn of_script(&mut self, url: &str) -> Place {
        if let Some(file) = core(url) {
            return Place { file: clean_path(&file), kind: Kind::Core, package: None, path: None };
        }
        match path_of(url) {
            Some(path) => self.on_disk(path),
            None => self.elsewhere(url),
        }
    }

    /// The place of what a script was made of, as its source map says.
    pub fn mapped(&mut self, script: &Place, source: &str) -> Place {
        if let Some(path) = path_of(source) {
            return self.on_disk(normal(&path));
        }
        let relative = match source.split_once("://") {
            // webpack://NAME/./src/a.ts, from the directory in which it was built.
            Some((_, rest)) => {
                format!("{}/{}", self.directory, rest.split_once('/').map_or(rest, |(_, file)| file))
            }
            None => {
                let folder = script.path.as_deref().and_then(|path| path.rsplit_once('/'));
                format!("{}/{source}", folder.map_or("", |(folder, _)| folder))
            }
        };
        let mut place = self.on_disk(normal(&relative));
        if self.directory.is_empty() && source.contains("://") {
            // Nobody knows where that was.
            place.file = place.file.trim_start_matches('/').to_owned();
        }
        place
    }

    fn on_disk(&mut self, path: String) -> Place {
        let below = below(&path, &self.directory);
        if below.is_some_and(|rest| !rest.contains("/node_modules/")) {
            return Place::own(&relative(&path, &self.directory), Some(path));
        }
        if let Some(found) = package::of_path(&path) {
            let name = clean(found.name);
            let version = self.version(found.folder).or(found.version).map(|version| clean(&version));
            let (kind, file) = (package::kind(&name), clean_path(found.file));
            return Place { file, kind, package: Some(Package { name, version }), path: Some(path) };
        }
        if is_agent(&path) {
            let package = Some(Package { name: AGENT_PACKAGE.into(), version: None });
            return Place { file: AGENT.into(), kind: Kind::Middleware, package, path: None };
        }
        Place::own(&relative(&path, &self.directory), Some(path))
    }

    /// What is no file: `[eval]`, an address on the net, or a path without a beginning.
    fn elsewhere(&self, url: &str) -> Place {
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let rest = rest.split(['?', '#']).next().unwrap_or(rest);
        let rest = rest.trim_start_matches('/').trim_start_matches("./");
        match package::of_path(&format!("/{rest}")) {
            Some(found) => {
                let name = clean(found.name);
                let version = found.version.map(|version| clean(&version));
                let (kind, file) = (package::kind(&name), clean_path(found.file));
                Place { file, kind, package: Some(Package { name, version }), path: None }
            }
            None => Place::own(rest, None),
        }
    }

    fn version(&mut self, folder: &str) -> Option<String> {
        if folder.is_empty() {
            return None;
        }
        if let Some(known) = self.versions.get(folder) {
            return known.clone();
        }
        let version = self.source.version(folder);
        self.versions.insert(folder.to_owned(), version.clone());
        version
    }
}

/// Whether a file is what takes our own profiles.
fn is_agent(path: &str) -> bool {
    let mut ends = path.rsplit('/');
    ends.next() == Some(AGENT) && ends.next().is_some_and(|folder| folder.starts_with(AGENT_FOLDER))
}

/// A module of Node.js itself, as `node:NAME`.
fn core(url: &str) -> Option<String> {
    if url.starts_with("node:") {
        return Some(url.to_owned());
    }
    // Before Node.js 15.
    url.starts_with("internal/").then(|| format!("node:{}", url.trim_end_matches(".js")))
}

/// The absolute path of a script, with slashes, if it is a file.
fn path_of(url: &str) -> Option<String> {
    let path = match url.strip_prefix("file://") {
        Some(rest) => decoded(rest.split(['?', '#']).next().unwrap_or(rest)),
        None => url.to_owned(),
    };
    let drive = |path: &str| matches!(path.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    if let Some(rest) = path.strip_prefix('/').filter(|rest| drive(rest)) {
        return Some(rest.replace('\\', "/"));
    }
    if drive(&path) {
        return Some(path.replace('\\', "/"));
    }
    path.starts_with('/').then_some(path)
}

/// Undoes percent signs. What is none, or is no text, stays as it is.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let byte = match (first, after) {
            (b'%', [high, low, ..]) => {
                hexadecimal(*high).zip(hexadecimal(*low)).map(|(high, low)| high * 16 + low)
            }
            _ => None,
        };
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

fn hexadecimal(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// What follows a folder in a path, beginning with its slash.
fn below<'p>(path: &'p str, folder: &str) -> Option<&'p str> {
    path.strip_prefix(folder).filter(|rest| !folder.is_empty() && rest.starts_with('/'))
}

/// A path without `.` and `..`.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let begin = if path.starts_with('/') { "/" } else { "" };
    format!("{begin}{}", parts.join("/"))
}

/// A path as seen from a folder, where it is near; else as it is.
fn relative(path: &str, folder: &str) -> String {
    if let Some(rest) = below(path, folder) {
        return rest[1..].to_owned();
    }
    let (to, from): (Vec<&str>, Vec<&str>) = (path.split('/').collect(), folder.split('/').collect());
    let shared = to.iter().zip(&from).take_while(|(a, b)| a == b).count();
    let up = from.len() - shared;
    // The first part is what stands before the first slash: nothing.
    if folder.is_empty() || shared < 2 || up > UP_MAX {
        return path.to_owned();
    }
    format!("{}{}", "../".repeat(up), to[shared..].join("/"))
}

const PACKAGES: &str = "/node_modules/";

/// The folder against which a service's own files are named, without a slash at its end; empty where there is none. It is the one that
/// is given, except where no file of the profile is near it: the system has told another path to the same folder. Of a profile that
/// somebody brought, it is the folder that holds its `node_modules`, else the one that all of its own files are below.
pub(super) fn directory<'a>(given: &str, urls: impl Iterator<Item = &'a str>) -> String {
    let given = given.trim_end_matches('/');
    let paths: Vec<String> = urls.filter_map(path_of).filter(|path| !is_agent(path)).collect();
    let own = paths.iter().map(String::as_str).filter(|path| !path.contains(PACKAGES));
    let is_near = |path: &str| !relative(path, given).starts_with('/');
    if !given.is_empty() && (paths.iter().any(|path| is_near(path)) || own.clone().next().is_none()) {
        return given.to_owned();
    }
    let shared = own.clone().map(folder).reduce(shared_folder).unwrap_or("");
    let holders = paths.iter().filter_map(|path| path.find(PACKAGES).map(|at| &path[..at]));
    // A package manager of the whole machine has node_modules too; the service's has its files beside it.
    let holder = holders
        .filter(|holder| own.clone().any(|path| below(path, holder).is_some()))
        .max_by_key(|it| it.len());
    holder.unwrap_or(shared).to_owned()
}

fn folder(path: &str) -> &str {
    path.rfind('/').map_or("", |end| &path[..end])
}

fn shared_folder<'a>(one: &'a str, other: &'a str) -> &'a str {
    if one == other || below(other, one).is_some() {
        return one;
    }
    if below(one, other).is_some() {
        return other;
    }
    let same = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    // Up to the last slash that both have: a slash is never inside of a character.
    one.as_bytes()[..same].iter().rposition(|byte| *byte == b'/').map_or("", |end| &one[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_out_of_addresses() {
        for (url, path) in [
            ("file:///srv/my%20app/a.mjs?v=1#x", Some("/srv/my app/a.mjs")),
            ("file:///C:/app/a.js", Some("C:/app/a.js")),
            ("C:\\app\\a.js", Some("C:/app/a.js")),
            ("/srv/100%/a.js", Some("/srv/100%/a.js")),
            ("file:///srv/100%/%e9.js", Some("/srv/100%/%e9.js")),
            ("evalmachine.<anonymous>", None),
            ("https://localhost/a.js", None),
            ("", None),
        ] {
            assert_eq!(path_of(url).as_deref(), path, "{url}");
        }
    }

    #[test]
    fn files_outside_are_named_from_here_where_they_are_near() {
        for (path, folder, expected) in [
            ("/srv/mono/app/src/a.js", "/srv/mono/app", "src/a.js"),
            ("/srv/mono/lib/a.js", "/srv/mono/app", "../lib/a.js"),
            ("/srv/mono/application/a.js", "/srv/mono/app", "../application/a.js"),
            ("/opt/a.js", "/srv/app", "/opt/a.js"),
            ("/srv/a.js", "/srv/1/2/3/4", "/srv/a.js"),
            ("/srv/a.js", "", "/srv/a.js"),
        ] {
            assert_eq!(relative(path, folder), expected);
        }
        assert_eq!(normal("/srv/dist/../src/./a.ts"), "/srv/src/a.ts");
        assert_eq!(normal("/../../a.ts"), "/a.ts");
    }

    #[test]
    fn a_service_lies_where_its_packages_or_its_own_files_do() {
        for (urls, expected) in [
            (vec!["/srv/a/src/x.js", "/srv/a/src/y/z.js", "node:fs", ""], "/srv/a/src"),
            (vec!["/srv/a/src/x.js", "file:///srv/a/node_modules/e/i.js"], "/srv/a"),
            (vec!["/srv/a/x.js", "/usr/lib/node_modules/pm2/i.js"], "/srv/a"),
            (vec!["/srv/ab/x.js", "/srv/ac/x.js"], "/srv"),
            (vec!["/srv/a/b/x.js", "/srv/a/x.js"], "/srv/a"),
            (vec!["/srv/ab/x.js", "/srv/a/x.js"], "/srv"),
            (vec!["/usr/lib/node_modules/npm/i.js"], ""),
            (vec!["[eval]", "node:fs"], ""),
        ] {
            assert_eq!(directory("", urls.iter().copied()), expected, "{urls:?}");
        }
        for (given, urls, expected) in [
            ("/srv/a/", vec!["/srv/a/x.js"], "/srv/a"),
            ("/srv/a", vec!["/srv/b/x.js"], "/srv/a"),
            ("/link/a", vec!["/srv/a/x.js", "/srv/a/node_modules/e/i.js"], "/srv/a"),
            ("/link/a", vec!["/srv/a/node_modules/e/i.js", "/tmp/proofload-1/agent.cjs"], "/link/a"),
        ] {
            assert_eq!(directory(given, urls.iter().copied()), expected, "{given} {urls:?}");
        }
    }
}
