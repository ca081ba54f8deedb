//! From a script's address to its place: a file name that is the same on every machine, the owner, and the
//! package, for all package manager layouts. Also derives a service's directory from its files. Pure text:
//! this module does not access the disk.

use std::collections::HashMap;
use std::path::Path;

use model::text::percent_decoded;

use crate::label::{clean, clean_path, is_among};
use crate::{CaptureFiles, CodeKind, Package};

/// The file of the agent that captures profiles, in its own folder. Its cost belongs to the profiler, not to
/// the service.
const AGENT: &str = "agent.cjs";
const AGENT_FOLDER: &str = "proofload-";
pub(super) const AGENT_PACKAGE: &str = "proofload-agent";
/// Files further up than this are named by their full path.
const UP_MAX: usize = 3;
/// Folders that contain packages. The second is Debian's.
const STORES: [&str; 2] = [PACKAGES, "/usr/share/nodejs/"];
const PACKAGES: &str = "/node_modules/";
/// PM2 instruments each worker with its own packages. They are shown as one, because using PM2 includes all
/// of them.
const PM2: &str = "pm2";
const PM2_SCOPE: &str = "@pm2/";

const FRAMEWORKS: &str = "avvio connect elysia express fastify find-my-way h3 hapi hono hyper-express koa koa-compose koa-router \
                          light-my-request micro nestjs next polka restana restify router sails trouter uWebSockets.js 0http tinyhttp";
/// All packages of these scopes belong to a framework.
const FRAMEWORK_SCOPES: &str =
    "@adonisjs @hapi @hono @koa @loopback @nestjs @polka @tinyhttp @trpc";

/// The place of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FunctionPlace {
    pub file: String,
    pub kind: CodeKind,
    pub package: Option<Package>,
    /// Its path on this disk, if it is a file.
    pub path: Option<String>,
}

impl FunctionPlace {
    fn of(file: &str, kind: CodeKind) -> Self {
        Self {
            file: clean_path(file),
            kind,
            package: None,
            path: None,
        }
    }

    /// A file of a package, which is a web framework with its routers, or any other.
    fn of_package(found: &InPackage<'_>, version: Option<String>) -> Self {
        let scope = found.name.split_once('/').map_or("", |(scope, _)| scope);
        let framework = is_among(FRAMEWORKS, found.name) || is_among(FRAMEWORK_SCOPES, scope);
        let kind = if framework {
            CodeKind::Framework
        } else {
            CodeKind::Middleware
        };
        let version = version
            .or_else(|| found.version.map(str::to_owned))
            .map(|version| clean(&version));
        Self {
            package: Some(Package {
                name: clean(found.name),
                version,
            }),
            ..Self::of(found.file, kind)
        }
    }

    pub fn shown(&self) -> String {
        match &self.package {
            Some(package) => format!("{}/{}", package.name, self.file),
            None => self.file.clone(),
        }
    }
}

/// Resolves places relative to a directory.
pub(super) struct Placing<'a> {
    pub directory: String,
    pub source: &'a dyn CaptureFiles,
    pub versions: HashMap<String, Option<String>>,
}

impl Placing<'_> {
    pub fn of_script(&mut self, url: &str) -> FunctionPlace {
        if url.starts_with("node:") {
            return FunctionPlace::of(url, CodeKind::Core);
        }
        if url.starts_with("internal/") {
            // Before Node.js 15.
            return FunctionPlace::of(
                &format!("node:{}", url.trim_end_matches(".js")),
                CodeKind::Core,
            );
        }
        if let Some(path) = path_of(url) {
            return self.on_disk(path);
        }
        // Not a file: `[eval]`, a network address, or a relative path.
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let rest = rest.split(['?', '#']).next().unwrap_or(rest);
        let rest = rest.trim_start_matches('/').trim_start_matches("./");
        match in_package(&format!("/{rest}")) {
            Some(found) => FunctionPlace::of_package(&found, None),
            None => FunctionPlace::of(rest, CodeKind::Application),
        }
    }

    /// The place of a script's source, according to the source map in this file.
    pub fn mapped(&mut self, map: &str, source: &str) -> FunctionPlace {
        if let Some(path) = path_of(source) {
            return self.on_disk(normal(&path));
        }
        let address = source.split_once("://").map(|(_, rest)| rest);
        let relative = match address {
            // webpack://NAME/./src/a.ts, from the directory in which it was built.
            Some(rest) => format!("{}/{}", self.directory, built_from(rest)),
            None => format!("{}/{source}", folder(map)),
        };
        let mut place = self.on_disk(normal(&relative));
        if self.directory.is_empty() && address.is_some() {
            // The directory is unknown.
            place.file = place.file.trim_start_matches('/').to_owned();
        }
        place
    }

    fn on_disk(&mut self, path: String) -> FunctionPlace {
        let is_own = below(&path, &self.directory).is_some_and(|rest| !rest.contains(PACKAGES));
        if let Some(found) = in_package(&path).filter(|_| !is_own) {
            let (folder, source) = (found.folder.to_owned(), self.source);
            let version = || {
                if folder.is_empty() {
                    None
                } else {
                    source.version(&folder)
                }
            };
            let version = self
                .versions
                .entry(folder.clone())
                .or_insert_with(version)
                .clone();
            return FunctionPlace {
                path: Some(path.clone()),
                ..FunctionPlace::of_package(&found, version)
            };
        }
        if !is_own && is_agent(&path) {
            let package = Some(Package {
                name: AGENT_PACKAGE.into(),
                version: None,
            });
            return FunctionPlace {
                package,
                ..FunctionPlace::of(AGENT, CodeKind::Middleware)
            };
        }
        FunctionPlace {
            path: Some(path.clone()),
            ..FunctionPlace::of(&relative(&path, &self.directory), CodeKind::Application)
        }
    }
}

/// The file in `NAME/./src/a.ts?1a2b`. The name is that of the built package, possibly with a scope, or
/// empty. The part after the question mark distinguishes parts of one file, and differs between builds.
fn built_from(rest: &str) -> &str {
    let rest = rest.split('?').next().unwrap_or(rest);
    let name = if rest.starts_with('@') { 2 } else { 1 };
    rest.splitn(name + 1, '/').nth(name).unwrap_or(rest)
}

/// Whether a file is the agent that captures profiles.
fn is_agent(path: &str) -> bool {
    let mut ends = path.rsplit('/');
    ends.next() == Some(AGENT)
        && ends
            .next()
            .is_some_and(|folder| folder.starts_with(AGENT_FOLDER))
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

/// Decodes percent-encoding. Invalid sequences and invalid text are unchanged.
fn decoded(text: &str) -> String {
    String::from_utf8(percent_decoded(text)).unwrap_or_else(|_| text.to_owned())
}

/// The rest of a path after a folder, beginning with its slash.
fn below<'p>(path: &'p str, folder: &str) -> Option<&'p str> {
    path.strip_prefix(folder)
        .filter(|rest| !folder.is_empty() && rest.starts_with('/'))
}

/// A path without `.` and `..`.
fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match part {
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let begin = if path.starts_with('/') { "/" } else { "" };
    format!("{begin}{}", parts.join("/"))
}

/// A path relative to a folder if it is near. Otherwise unchanged.
fn relative(path: &str, folder: &str) -> String {
    if let Some(rest) = below(path, folder) {
        return rest[1..].to_owned();
    }
    let (to, from): (Vec<&str>, Vec<&str>) =
        (path.split('/').collect(), folder.split('/').collect());
    let shared = to.iter().zip(&from).take_while(|(a, b)| a == b).count();
    let up = from.len() - shared;
    // The first part is the text before the first slash, which is empty.
    if folder.is_empty() || shared < 2 || up > UP_MAX {
        return path.to_owned();
    }
    format!("{}{}", "../".repeat(up), to[shared..].join("/"))
}

/// The folder to which a service's own files are relative, without a trailing slash. Empty if there is none.
/// It is the given folder, unless no file of the profile is near it, because the system reported another path
/// to the same folder. For an imported profile, it is the folder that contains its `node_modules`, otherwise
/// the common parent folder of the service's files.
pub(super) fn directory<'a>(given: &str, urls: impl Iterator<Item = &'a str>) -> String {
    let given = given.trim_end_matches('/');
    let paths: Vec<String> = urls
        .filter_map(path_of)
        .filter(|path| !is_agent(path))
        .collect();
    let own = paths
        .iter()
        .map(String::as_str)
        .filter(|path| !path.contains(PACKAGES));
    let mut own: Vec<&str> = own.collect();
    own.sort_unstable();
    let is_near = |path: &str| !relative(path, given).starts_with('/');
    if !given.is_empty() && (paths.iter().any(|path| is_near(path)) || own.is_empty()) {
        return given.to_owned();
    }
    let shared = own
        .iter()
        .copied()
        .map(folder)
        .reduce(shared_folder)
        .unwrap_or("");
    let holders = paths
        .iter()
        .filter_map(|path| path.find(PACKAGES).map(|at| &path[..at]));
    // A global package manager has node_modules too. The service's folder also contains its own files. In
    // sorted paths, the files below a folder follow the folder's path with a slash.
    let has_own = |holder: &&str| {
        let begin = format!("{holder}/");
        let first = own.get(own.partition_point(|path| *path < begin.as_str()));
        first.is_some_and(|path| below(path, holder).is_some())
    };
    let holder = holders.filter(has_own).max_by_key(|it| it.len());
    holder.unwrap_or(shared).to_owned()
}

fn folder(path: &str) -> &str {
    path.rfind('/').map_or("", |end| &path[..end])
}

fn shared_folder<'a>(one: &'a str, other: &'a str) -> &'a str {
    let shared = Path::new(one)
        .ancestors()
        .find(|folder| Path::new(other).starts_with(folder));
    shared
        .and_then(Path::to_str)
        .map_or("", |folder| folder.trim_end_matches('/'))
}

/// A file of a package.
struct InPackage<'a> {
    name: &'a str,
    /// Its folder, whose package.json has the version. Empty if that would be another package's version.
    folder: &'a str,
    /// The file, relative to the folder.
    file: &'a str,
    /// The version, if the folder's path contains it.
    version: Option<&'a str>,
}

/// The innermost package that contains a file, because packages can be nested.
fn in_package(path: &str) -> Option<InPackage<'_>> {
    let stores = STORES
        .iter()
        .filter_map(|store| path.rfind(store).map(|at| (at, at + store.len())));
    let (store, start) = stores.max_by_key(|(_, start)| *start)?;
    // The name is one segment, or two with a scope. There must be a file after it.
    let rest = &path[start..];
    let end = rest
        .match_indices('/')
        .nth(usize::from(rest.starts_with('@')))
        .filter(|(at, _)| *at > 0)?
        .0;
    let name = &rest[..end];
    if name.starts_with(PM2_SCOPE) {
        // Counted as PM2 itself if it is installed with it. Elsewhere its version is its own, not PM2's.
        let inside = path
            .find("/node_modules/pm2/")
            .map(|at| at + "/node_modules/pm2".len());
        let (folder, file) =
            inside.map_or(("", &rest[end + 1..]), |at| (&path[..at], &path[at + 1..]));
        let file = file.trim_start_matches("node_modules/");
        return Some(InPackage {
            name: PM2,
            folder,
            file,
            version: None,
        });
    }
    let version = version_in_store(&path[..store], name);
    Some(InPackage {
        name,
        folder: &path[..start + end],
        file: &rest[end + 1..],
        version,
    })
}

/// The version that pnpm and Yarn put into the paths of their stores:
/// `.pnpm/@babel+core@7.20.0_peer/node_modules/…`, `express-npm-4.18.2-bb15ff679a-3c4b9b0767.zip/node_modules/…`.
fn version_in_store<'p>(store: &'p str, name: &str) -> Option<&'p str> {
    let folder = store.rsplit('/').next()?;
    let version = match folder.split_once("-npm-") {
        Some((_, rest)) => without_hashes(rest.trim_end_matches(".zip")),
        None => {
            let rest = folder
                .strip_prefix(&name.replace('/', "+"))?
                .strip_prefix('@')?;
            rest.split(['_', '(']).next().unwrap_or(rest)
        }
    };
    Some(version).filter(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}

fn without_hashes(version: &str) -> &str {
    let is_hash = |part: &str| part.len() >= 8 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut version = version;
    while let Some((rest, _)) = version.rsplit_once('-').filter(|(_, last)| is_hash(last)) {
        version = rest;
    }
    version
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_outside_are_named_from_here_where_they_are_near() {
        for (path, folder, expected) in [
            ("/srv/mono/app/src/a.js", "/srv/mono/app", "src/a.js"),
            ("/srv/mono/lib/a.js", "/srv/mono/app", "../lib/a.js"),
            (
                "/srv/mono/application/a.js",
                "/srv/mono/app",
                "../application/a.js",
            ),
            ("/opt/a.js", "/srv/app", "/opt/a.js"),
            ("/srv/a.js", "/srv/1/2/3/4", "/srv/a.js"),
            ("/srv/a.js", "", "/srv/a.js"),
        ] {
            assert_eq!(relative(path, folder), expected);
        }
        for rest in [
            "app/./src/a.ts",
            "/./src/a.ts",
            "@scope/app/./src/a.ts?1a2b",
        ] {
            assert_eq!(built_from(rest), "./src/a.ts");
        }
        assert_eq!(normal("/srv/dist/../src/./a.ts"), "/srv/src/a.ts");
        assert_eq!(normal("/../../a.ts"), "/a.ts");
    }

    #[test]
    fn a_service_lies_where_its_packages_or_its_own_files_do() {
        for (given, urls, expected) in [
            (
                "",
                "/srv/a/src/x.js /srv/a/src/y/z.js node:fs",
                "/srv/a/src",
            ),
            (
                "",
                "/srv/a/src/x.js file:///srv/a/node_modules/e/i.js",
                "/srv/a",
            ),
            ("", "/srv/a/x.js /usr/lib/node_modules/pm2/i.js", "/srv/a"),
            ("", "/srv/ab/x.js /srv/ac/x.js", "/srv"),
            ("", "/srv/a/b/x.js /srv/a/x.js", "/srv/a"),
            ("", "/srv/ab/x.js /srv/a/x.js", "/srv"),
            ("", "/usr/lib/node_modules/npm/i.js", ""),
            ("", "[eval] node:fs", ""),
            ("/srv/a/", "/srv/a/x.js", "/srv/a"),
            ("/srv/a", "/srv/b/x.js", "/srv/a"),
            (
                "/link/a",
                "/srv/a/x.js /srv/a/node_modules/e/i.js",
                "/srv/a",
            ),
            (
                "/link/a",
                "/srv/a/node_modules/e/i.js /tmp/proofload-1/agent.cjs",
                "/link/a",
            ),
        ] {
            assert_eq!(
                directory(given, urls.split(' ')),
                expected,
                "{given} {urls:?}"
            );
        }
    }
}
