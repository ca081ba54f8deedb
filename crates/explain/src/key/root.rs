//! Where a service lies. Of a profile that somebody brought, it is the folder that holds its `node_modules`, else the one that all of
//! its own files are below. It must not look at the disk.

use super::place::{is_agent, path_of, relative};

const PACKAGES: &str = "/node_modules/";

/// The folder against which a service's own files are named, without a slash at its end; empty where there is none. It is the one
/// that is given, except where no file of the profile is near it: the system has told another path to the same folder.
pub(super) fn of<'a>(given: &str, urls: impl Iterator<Item = &'a str>) -> String {
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
    let holder =
        holders.filter(|holder| own.clone().any(|path| is_below(path, holder))).max_by_key(|it| it.len());
    holder.unwrap_or(shared).to_owned()
}

fn folder(path: &str) -> &str {
    path.rfind('/').map_or("", |end| &path[..end])
}

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

fn shared_folder<'a>(one: &'a str, other: &'a str) -> &'a str {
    if one == other || is_below(other, one) {
        return one;
    }
    if is_below(one, other) {
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
            assert_eq!(of("", urls.iter().copied()), expected, "{urls:?}");
        }
        for (given, urls, expected) in [
            ("/srv/a/", vec!["/srv/a/x.js"], "/srv/a"),
            ("/srv/a", vec!["/srv/b/x.js"], "/srv/a"),
            ("/link/a", vec!["/srv/a/x.js", "/srv/a/node_modules/e/i.js"], "/srv/a"),
            ("/link/a", vec!["/srv/a/node_modules/e/i.js", "/tmp/proofload-1/agent.cjs"], "/link/a"),
        ] {
            assert_eq!(of(given, urls.iter().copied()), expected, "{given} {urls:?}");
        }
    }
}
