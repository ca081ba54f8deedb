//! Paths below `node_modules`: which package, which file of it, and whose code it is, however a package manager laid it out. Text alone:
//! whether a folder is there is not asked.

use crate::Kind;

/// Folders in which packages lie. The second is Debian's.
const STORES: [&str; 2] = ["/node_modules/", "/usr/share/nodejs/"];
/// PM2 measures each worker with packages of its own. They are shown as one: whoever uses PM2 chose all of them.
const PM2: &str = "pm2";
const PM2_SCOPE: &str = "@pm2/";

/// Whose code a package below `node_modules` is: of a web framework and its routers, or any other.
pub(super) fn kind(name: &str) -> Kind {
    let framework = matches!(
        name,
        "avvio"
            | "connect"
            | "elysia"
            | "express"
            | "fastify"
            | "find-my-way"
            | "h3"
            | "hapi"
            | "hono"
            | "hyper-express"
            | "koa"
            | "koa-compose"
            | "koa-router"
            | "light-my-request"
            | "micro"
            | "nestjs"
            | "next"
            | "polka"
            | "restana"
            | "restify"
            | "router"
            | "sails"
            | "trouter"
            | "uWebSockets.js"
            | "0http"
            | "tinyhttp"
    );
    // All packages of these scopes are of a framework.
    let scope = name.split_once('/').map_or("", |(scope, _)| scope);
    let scoped = matches!(
        scope,
        "@adonisjs" | "@hapi" | "@hono" | "@koa" | "@loopback" | "@nestjs" | "@polka" | "@tinyhttp" | "@trpc"
    );
    if framework || scoped { Kind::Framework } else { Kind::Middleware }
}

/// A file of a package.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InPackage<'a> {
    /// The package's name.
    pub name: &'a str,
    /// Its folder; its package.json tells the version. Empty where it would tell another one's.
    pub folder: &'a str,
    /// The file, relative to the folder.
    pub file: &'a str,
    /// The version, where the folder's path has it.
    pub version: Option<String>,
}

/// The package that a file belongs to: the innermost one, for packages have packages of their own.
pub(super) fn of_path(path: &str) -> Option<InPackage<'_>> {
    let (store, start) = STORES
        .iter()
        .filter_map(|store| path.rfind(store).map(|at| (at, at + store.len())))
        .max_by_key(|(_, start)| *start)?;
    let name = name_at(&path[start..])?;
    let end = start + name.len();
    let whole = InPackage {
        name,
        folder: &path[..end],
        file: &path[end + 1..],
        version: version_in_store(&path[..store], name),
    };
    // A package of that scope somewhere else has a version of its own, which is not PM2's.
    let unversioned = InPackage { name: PM2, folder: "", file: whole.file, version: None };
    Some(if name.starts_with(PM2_SCOPE) { of_pm2(path).unwrap_or(unversioned) } else { whole })
}

/// As PM2's own, where it is installed with it.
fn of_pm2(path: &str) -> Option<InPackage<'_>> {
    let inside = "/node_modules/pm2/";
    let end = path.find(inside)? + inside.len() - 1;
    let file = path[end + 1..].trim_start_matches("node_modules/");
    Some(InPackage { name: PM2, folder: &path[..end], file, version: None })
}

/// The name at the beginning of what follows `node_modules/`: one segment, or two with a scope. There must be a file after it.
fn name_at(rest: &str) -> Option<&str> {
    let mut ends = rest.match_indices('/').map(|(at, _)| at);
    let end = if rest.starts_with('@') { ends.nth(1) } else { ends.next() }?;
    (end > 0).then(|| &rest[..end])
}

/// The version that pnpm and Yarn put into the paths of their stores:
/// `.pnpm/@babel+core@7.20.0_peer/node_modules/…`, `express-npm-4.18.2-bb15ff679a-3c4b9b0767.zip/node_modules/…`.
fn version_in_store(store: &str, name: &str) -> Option<String> {
    let folder = store.rsplit('/').next()?;
    let version = match folder.split_once("-npm-") {
        Some((_, rest)) => without_hashes(rest.trim_end_matches(".zip")),
        None => {
            let rest = folder.strip_prefix(&name.replace('/', "+"))?.strip_prefix('@')?;
            rest.split(['_', '(']).next().unwrap_or(rest)
        }
    };
    version.starts_with(|c: char| c.is_ascii_digit()).then(|| version.to_owned())
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
    fn every_package_manager_says_where_a_file_belongs() {
        for (path, name, folder, file, version) in [
            ("/a/node_modules/express/lib/a.js", "express", "/a/node_modules/express", "lib/a.js", None),
            (
                "/a/node_modules/x/node_modules/@s/y/i.js",
                "@s/y",
                "/a/node_modules/x/node_modules/@s/y",
                "i.js",
                None,
            ),
            (
                "/a/node_modules/.pnpm/@babel+core@7.20.0_x@1/node_modules/@babel/core/i.js",
                "@babel/core",
                "/a/node_modules/.pnpm/@babel+core@7.20.0_x@1/node_modules/@babel/core",
                "i.js",
                Some("7.20.0"),
            ),
            (
                "/a/.yarn/cache/ms-npm-2.1.0-beta.1-bb15ff679a-3c4b9b0767.zip/node_modules/ms/index.js",
                "ms",
                "/a/.yarn/cache/ms-npm-2.1.0-beta.1-bb15ff679a-3c4b9b0767.zip/node_modules/ms",
                "index.js",
                Some("2.1.0-beta.1"),
            ),
            ("/usr/share/nodejs/qs/lib/parse.js", "qs", "/usr/share/nodejs/qs", "lib/parse.js", None),
            (
                "/p/node_modules/pm2/node_modules/@pm2/io/b.js",
                "pm2",
                "/p/node_modules/pm2",
                "@pm2/io/b.js",
                None,
            ),
            ("/p/node_modules/@pm2/io/b.js", "pm2", "", "b.js", None),
            (
                "/p/node_modules/pm2/lib/ProcessContainer.js",
                "pm2",
                "/p/node_modules/pm2",
                "lib/ProcessContainer.js",
                None,
            ),
        ] {
            let expected = InPackage { name, folder, file, version: version.map(str::to_owned) };
            assert_eq!(of_path(path), Some(expected), "{path}");
        }
        for path in [
            "/a/server.js",
            "/node_modules/",
            "/node_modules/x.js",
            "/node_modules//x.js",
            "/node_modules/@a/b",
        ] {
            assert_eq!(of_path(path), None, "{path}");
        }
    }
}
