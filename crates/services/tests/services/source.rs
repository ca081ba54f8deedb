//! Commits to compare with, in git repositories made here: found, checked out once, and each problem reported
//! before anything runs.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use plan::{Building, Plan};
use proofload_services::{Blame, Cache, CommitSource, Error, Worktree};

/// A repository with a service in a subfolder, one commit, and an experiment beside it.
struct Repository(tempfile::TempDir);

const LOCK: &str = r#"{"name":"api","lockfileVersion":3,"packages":{}}"#;

impl Repository {
    fn new() -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        for (file, text) in [
            ("shop/api/server.js", "1"),
            ("shop/api/package.json", r#"{"dependencies":{"x":"1"}}"#),
            ("shop/api/package-lock.json", LOCK),
            ("shop/.gitignore", "node_modules\ndist\n"),
            ("elsewhere/db", ""),
        ] {
            repository.write(file, text);
        }
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository.commit();
        repository
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, file: &str, text: &str) {
        fs::create_dir_all(self.path(file).parent().unwrap()).unwrap();
        fs::write(self.path(file), text).unwrap();
    }

    fn git_in(&self, folder: &str, words: &[&str]) -> String {
        let mut git = Command::new("git");
        git.arg("-C").arg(self.path(folder));
        git.args([
            "-c",
            "user.name=Test",
            "-c",
            "user.email=test@localhost",
            "-c",
            "commit.gpgsign=false",
        ]);
        let output = git.args(words).output().unwrap();
        assert!(
            output.status.success(),
            "{words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn git(&self, words: &[&str]) -> String {
        self.git_in("shop", words)
    }

    fn commit(&self) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message=x"]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn plan(&self, service: &str) -> Plan {
        let text = format!("name = \"x\"\n[services.api]\n{service}\n");
        plan::parse(&text, &self.path("shop")).unwrap_or_else(|problems| panic!("{problems:#?}"))
    }

    fn cache(&self) -> Cache {
        Cache {
            folder: self.path("cache"),
        }
    }

    fn find_in(&self, plan: &Plan, reference: &str) -> Result<CommitSource, Error> {
        CommitSource::find(plan, reference, &Building::default(), &self.cache())
    }

    fn find(&self, reference: &str) -> Result<CommitSource, Error> {
        self.find_in(&self.plan(API), reference)
    }

    fn check_out(&self, source: &CommitSource) -> Worktree {
        source.check_out(&self.cache(), &mut |_| {}).unwrap()
    }

    fn worktrees(&self) -> usize {
        let entries = fs::read_dir(self.path("cache/worktrees"))
            .unwrap()
            .flatten();
        entries.filter(|entry| entry.path().is_dir()).count()
    }
}

const API: &str = "directory = \"api\"\ncommand = [\"node\", \"server.js\", \"--flag\"]";

/// Message and hint of an error.
fn refused(found: Result<CommitSource, Error>) -> (String, String) {
    let error = found.unwrap_err();
    assert_eq!(*error.blame(), Blame::Request, "{error}");
    (
        error.to_string(),
        error.hint().unwrap_or_default().to_owned(),
    )
}

#[test]
fn a_commit_is_found_with_what_has_changed_since_and_what_must_be_installed() {
    let repository = Repository::new();
    let commit = repository.git(&["rev-parse", "HEAD"]);
    let same = repository.find("main").unwrap().against;
    assert_eq!(
        (same.commit.as_str(), same.stat.as_str(), same.uncommitted),
        (commit.as_str(), "", false)
    );
    repository.write("shop/api/server.js", "2");
    repository.write("shop/api/new.js", "2");
    // Records of earlier runs are not code of the service.
    repository.write("shop/records/x/record.json", "{}");
    repository.write("shop/records/x/logs/y.log", "");
    let source = repository.find("HEAD").unwrap();
    let changed = &source.against;
    assert!(
        changed.stat.starts_with("1 file changed, 1 insertion(+)"),
        "{}",
        changed.stat
    );
    assert_eq!(
        (changed.untracked, changed.uncommitted, changed.notes.len()),
        (1, true, 0)
    );
    let [build] = source.builds.as_slice() else {
        panic!("one build: {:?}", source.builds)
    };
    assert_eq!(build.command, ["npm", "ci", "--no-audit", "--no-fund"]);
    assert_eq!(build.directory, changed.worktree.join("api"));
    assert_eq!(build.name, format!("api of HEAD ({})", &commit[..7]));
    assert!(!changed.worktree.exists(), "looking makes nothing");
}

#[test]
fn a_worktree_is_made_once_and_anew_where_it_is_not_as_git_made_it() {
    let repository = Repository::new();
    repository.write("shop/api/server.js", "2");
    let source = repository.find("main").unwrap();
    let first = repository.check_out(&source);
    let server = first.path.join("api/server.js");
    assert_eq!(
        (fs::read_to_string(&server).unwrap().as_str(), first.made),
        ("1", true)
    );
    for folder in ["cache", "cache/worktrees"] {
        assert_eq!(
            repository
                .path(folder)
                .metadata()
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o700
        );
    }
    drop(first);
    let mark = source.builds[0].mark.clone().unwrap();
    // A failed build leaves no mark: its output is removed at the next use.
    let module = source.builds[0].directory.join("node_modules/x");
    fs::create_dir_all(&module).unwrap();
    assert!(!repository.check_out(&source).made && !module.exists());
    fs::create_dir_all(&module).unwrap();
    fs::write(&mark, "").unwrap();
    assert!(
        !repository.check_out(&source).made && module.exists(),
        "what was built stays"
    );
    fs::write(&server, "3").unwrap();
    assert!(repository.check_out(&source).made && !module.exists() && !mark.exists());
    assert_eq!(fs::read_to_string(&server).unwrap(), "1");
    // The cache was emptied, and git still has the worktree registered. Then the reverse.
    fs::remove_dir_all(repository.path("cache")).unwrap();
    assert!(repository.check_out(&source).made && server.exists());
    fs::remove_dir_all(repository.path("shop/.git/worktrees")).unwrap();
    assert!(repository.check_out(&source).made && server.exists());
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 2);
    assert_eq!(
        fs::read_to_string(repository.path("shop/api/server.js")).unwrap(),
        "2",
        "never touched"
    );
}

#[test]
fn worktrees_that_nobody_has_used_for_long_are_removed_and_those_in_use_are_not() {
    let repository = Repository::new();
    let sources: Vec<CommitSource> = (0..8)
        .map(|number| {
            repository.write("shop/api/server.js", &number.to_string());
            repository.find(&repository.commit()).unwrap()
        })
        .collect();
    let used = repository.check_out(&sources[0]);
    sources[1..]
        .iter()
        .for_each(|source| drop(repository.check_out(source)));
    assert!(used.path.exists() && sources[7].against.worktree.exists());
    assert!(!sources[1].against.worktree.exists());
    assert_eq!(repository.worktrees(), 6, "five, and the one in use");
    assert_eq!(repository.git(&["worktree", "list"]).lines().count(), 7);
}

#[test]
fn refs_that_are_none_are_told_with_what_to_do() {
    let repository = Repository::new();
    for (reference, said) in [
        (
            "--upload-pack=x",
            "`--upload-pack=x` is not a git ref: it begins with `-`",
        ),
        (" ", "it is empty"),
        ("main:api", "it names no commit"),
    ] {
        let (message, _) = refused(repository.find(reference));
        assert!(message.contains(said), "{reference}: {message}");
    }
    let (message, hint) = refused(repository.find("mian"));
    assert!(message.ends_with("/shop has no commit `mian`") && hint.contains("git branch --all"));
    // A checkout as in CI: shallow, with one commit.
    repository.git(&["branch", "release"]);
    let before = repository.git(&["rev-parse", "HEAD"]).trim().to_owned();
    repository.write("shop/api/server.js", "2");
    repository.commit();
    let url = format!("file://{}", repository.path("shop").display());
    repository.git_in("", &["clone", "--quiet", "--depth=1", &url, "clone"]);
    let text = format!("name = \"x\"\n[services.api]\n{API}\n");
    let plan = plan::parse(&text, &repository.path("clone")).unwrap();
    let (message, hint) = refused(repository.find_in(&plan, &before));
    assert!(
        message.contains("has no commit") && hint.contains("fetch-depth: 0"),
        "{message}: {hint}"
    );
    let (_, hint) = refused(repository.find_in(&plan, "origin/release"));
    assert!(
        hint.contains("shallow") && hint.contains("git fetch --depth=1 origin release"),
        "{hint}"
    );
    repository.git_in(
        "clone",
        &[
            "fetch",
            "--quiet",
            "--depth=1",
            "origin",
            "release:refs/remotes/origin/release",
        ],
    );
    let (_, hint) = refused(repository.find_in(&plan, "release"));
    assert!(hint.ends_with("did you mean `origin/release`?"), "{hint}");
    assert!(repository.find_in(&plan, "origin/release").is_ok());
}

#[test]
fn services_without_a_repository_or_in_one_within_it_are_told_and_others_noted() {
    let repository = Repository::new();
    let bare = repository.path("bare.git");
    repository.git_in("", &["clone", "--quiet", "--bare", "shop", "bare.git"]);
    let at = |directory: &Path| {
        let plan = repository.plan(&format!("directory = {directory:?}\ncommand = [\"x\"]"));
        repository.find_in(&plan, "main")
    };
    let (message, _) = refused(at(&repository.path("elsewhere")));
    assert!(
        message.starts_with("no service's directory lies in a git repository"),
        "{message}"
    );
    let (message, _) = refused(at(&bare));
    assert!(
        message.ends_with("a repository that has no working tree"),
        "{message}"
    );
    let db = |directory: &str| {
        let db = format!("[services.db]\ncommand = [\"x\"]\ndirectory = \"{directory}\"\n");
        let text =
            format!("name = \"x\"\nentry = \"api\"\n[services.api]\n{API}\nneeds = [\"db\"]\n{db}");
        plan::parse(&text, &repository.path("shop")).unwrap()
    };
    let notes = repository
        .find_in(&db("../elsewhere"), "main")
        .unwrap()
        .against
        .notes;
    let same = "services.db is the same on both sides: it lies in no repository";
    assert!(notes[0].starts_with(same), "{notes:?}");
    repository.git_in("shop/api", &["init", "--quiet", "vendor"]);
    let (message, _) = refused(repository.find_in(&db("api/vendor"), "main"));
    assert!(
        message.starts_with("services.db lies in a repository of its own"),
        "{message}"
    );
}

#[test]
fn ignored_configuration_is_copied_and_removed_again() {
    let repository = Repository::new();
    repository.write(
        "shop/.gitignore",
        "node_modules\n.env*\n*.db\n*.log\nsecrets\n",
    );
    repository.write("shop/api/.env.test", "tracked before it was ignored");
    repository.git(&["add", "--force", "api/.env.test"]);
    repository.commit();
    for (file, text) in [
        (".env", "A=1"),
        ("api/.env", "A=2"),
        ("api/.env.test", "A=3"),
        ("api/secrets/token", "t"),
        ("api/node_modules/x/.env", "A=4"),
        ("api/data.db", ""),
        ("api/x.log", ""),
        ("docs/other.db", ""),
    ] {
        repository.write(&format!("shop/{file}"), text);
    }
    let source = repository.find("main").unwrap();
    let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
    assert_eq!(
        source.against.copied,
        paths(&[".env", "api/.env", "api/secrets/token"])
    );
    assert_eq!(source.against.only_here, paths(&["api/data.db"]));
    let notes = source.against.notes.join("\n");
    assert!(
        notes.contains("only your side has: api/data.db;") && notes.contains("--copy api/data.db"),
        "{notes}"
    );
    let worktree = repository.check_out(&source);
    let copy = worktree.path.join("api/.env");
    assert_eq!(fs::read_to_string(&copy).unwrap(), "A=2");
    assert_eq!(copy.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(
        worktree.path.join("api/secrets/token").exists()
            && !worktree.path.join("api/data.db").exists()
    );
    let tracked = fs::read_to_string(worktree.path.join("api/.env.test")).unwrap();
    assert_eq!(tracked, "tracked before it was ignored");
    drop(worktree);
    assert!(!copy.exists(), "no secret stays in the cache");
    // A build with another configuration is done again.
    let mark = |source: &CommitSource| source.builds[0].mark.clone();
    let before = mark(&source);
    repository.write("shop/api/.env", "A=5");
    assert_ne!(mark(&repository.find("main").unwrap()), before);
}

#[test]
fn named_files_are_copied_and_no_others() {
    let repository = Repository::new();
    repository.write("shop/.gitignore", "node_modules\n.env\n*.db\n");
    repository.commit();
    repository.write("shop/api/.env", "A=1");
    repository.write("shop/api/data.db", "rows");
    let find = |copy: &str| {
        let plan = repository.plan(&format!("{API}\n[against]\ncopy = [\"{copy}\"]"));
        CommitSource::find(&plan, "main", &plan.building, &repository.cache())
    };
    let against = find("api/data.db").unwrap().against;
    assert_eq!(
        (against.copied, against.only_here),
        (vec![PathBuf::from("api/data.db")], Vec::new())
    );
    for (copy, why) in [
        ("api/server.js", "is in git at main"),
        ("nothing", "does not exist"),
        ("../x", "is not in the repository"),
    ] {
        let (message, _) = refused(find(copy));
        assert!(message.contains(why), "{copy}: {message}");
    }
}

#[test]
fn paths_into_the_working_tree_are_refused_wherever_they_stand() {
    let repository = Repository::new();
    repository.write("shop/api/lib/x.js", "1");
    repository.commit();
    let x = repository.path("shop/api/lib/x.js").display().to_string();
    let root = repository.path("shop").display().to_string();
    let find = |more: &str| {
        repository.find_in(
            &repository.plan(&format!("directory = \"api\"\n{more}")),
            "main",
        )
    };
    for more in [
        format!("command = [\"node\", \"--require={x}\", \"server.js\"]"),
        format!("command = [\"node\", \"-r{x}\", \"server.js\"]"),
        format!(
            "command = [\"node\", \"server.js\"]\nenv = {{ NODE_OPTIONS = \"--import file://{x}\" }}"
        ),
        format!("command = [\"node\", \"server.js\"]\nenv = {{ APP_ROOT = \"{root}\" }}"),
    ] {
        let (message, hint) = refused(find(&more));
        assert!(
            message.contains("is the working tree's") && hint.contains("{directory}"),
            "{more}: {message}"
        );
    }
    // A relative path belongs to each side, and must exist.
    let relative = |path: &str| {
        find(&format!(
            "command = [\"node\", \"--require={path}\", \"server.js\"]"
        ))
    };
    assert_eq!(
        relative("./lib/x.js").unwrap().against.notes,
        Vec::<String>::new()
    );
    repository.write("shop/api/new.js", "1");
    assert!(
        refused(relative("./new.js"))
            .0
            .contains("`api/new.js` does not exist at main")
    );
    let (to, link) = (
        repository.path("shop/api/lib"),
        repository.path("shop/api/current"),
    );
    std::os::unix::fs::symlink(&to, &link).unwrap();
    let (message, _) = refused(relative("./current/x.js"));
    assert!(
        message.contains("`api/current/x.js` does not exist at main"),
        "{message}"
    );
    repository.commit();
    let (message, hint) = refused(relative("./lib/x.js"));
    assert!(
        message.starts_with("api/current is a symbolic link to ") && hint.contains("relative"),
        "{message}"
    );
    fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("lib", &link).unwrap();
    repository.commit();
    assert!(relative("./current/x.js").is_ok());
}

#[test]
fn a_command_whose_files_the_commit_lacks_or_shares_is_told() {
    let repository = Repository::new();
    repository.write("shop/api/new.js", "");
    repository.write("shop/api/dist/server.js", "");
    repository.write("shop/fresh/server.js", "");
    let find = |directory: &str, word: &str| {
        let command = format!("directory = \"{directory}\"\ncommand = [\"node\", \"{word}\"]");
        repository.find_in(&repository.plan(&command), "main")
    };
    let short = repository.git(&["rev-parse", "--short=7", "HEAD"]);
    for word in ["new.js", "{directory}/new.js"] {
        let (message, _) = refused(find("api", word));
        assert_eq!(
            message,
            format!("services.api.command: `api/new.js` does not exist at main ({short})")
        );
    }
    let (message, _) = refused(find("fresh", "server.js"));
    assert_eq!(
        message,
        format!("services.api.directory: `fresh` does not exist at main ({short})")
    );
    let server = repository.path("shop/api/server.js").display().to_string();
    let (message, hint) = refused(find("api", &server));
    let shared = format!("is the working tree's, also for the service at main ({short})");
    assert!(
        message.ends_with(&shared) && hint.contains("relative"),
        "{message} {hint}"
    );
    // The same applies to a program found through PATH, as with npm or an active venv.
    repository.write("shop/api/bin/tool", "");
    let bin = repository.path("shop/api/bin");
    fs::set_permissions(bin.join("tool"), Permissions::from_mode(0o755)).unwrap();
    let command = format!(
        "directory = \"api\"\ncommand = [\"tool\"]\nenv = {{ PATH = \"{}\" }}",
        bin.display()
    );
    let (message, _) = refused(repository.find_in(&repository.plan(&command), "main"));
    assert!(message.ends_with(&shared), "{message}");
    let notes = find("api", "dist/server.js").unwrap().against.notes;
    assert!(
        notes[0].contains("runs api/dist/server.js, which is not in git"),
        "{notes:?}"
    );
    // Lock files of other package managers are not supported, and a package.json with dependencies but no
    // lock file is reported.
    let lock = repository.path("shop/pnpm-lock.yaml");
    fs::rename(repository.path("shop/api/package-lock.json"), &lock).unwrap();
    repository.write("shop/package.json", "{}");
    repository.commit();
    let (message, hint) = refused(find("api", "server.js"));
    let is_told =
        message.ends_with("it has a pnpm-lock.yaml") && hint.contains("--frozen-lockfile");
    assert!(is_told, "{message} {hint}");
    fs::remove_file(lock).unwrap();
    repository.commit();
    let source = find("api", "server.js").unwrap();
    let notes = source.against.notes;
    assert!(
        source.builds.is_empty() && notes[0].starts_with("api/package.json names dependencies")
    );
}

#[test]
fn files_that_need_a_filter_of_the_repository_are_not_checked_out() {
    let repository = Repository::new();
    repository.write("shop/.gitattributes", "*.secret filter=own\n");
    repository.write("shop/api/x.secret", "x");
    repository.commit();
    let mark = repository.path("mark");
    for word in ["smudge", "clean", "process"] {
        repository.git(&[
            "config",
            &format!("filter.own.{word}"),
            &format!("touch {}; cat", mark.display()),
        ]);
    }
    let source = repository.find("main").unwrap();
    let error = source
        .check_out(&repository.cache(), &mut |_| {})
        .unwrap_err();
    assert_eq!(*error.blame(), Blame::Request, "{error}");
    let (message, hint) = (
        error.to_string(),
        error.hint().unwrap_or_default().to_owned(),
    );
    assert!(
        message.contains("api/x.secret: smudge filter own failed"),
        "{message}"
    );
    assert!(
        hint.contains("git config --global filter.own.smudge COMMAND"),
        "{hint}"
    );
    assert!(!mark.exists() && repository.worktrees() == 0);
}

#[test]
fn a_working_tree_that_is_elsewhere_is_refused() {
    let repository = Repository::new();
    repository.git(&[
        "config",
        "core.worktree",
        &repository.path("elsewhere").display().to_string(),
    ]);
    let (message, hint) = refused(repository.find("main"));
    assert!(
        message.contains("whose working tree is elsewhere") && hint.contains("core.worktree"),
        "{message}"
    );
}

#[test]
fn copies_do_not_follow_links_of_the_commit() {
    let repository = Repository::new();
    let outside = repository.path("elsewhere");
    repository.write("elsewhere/.env", "kept");
    std::os::unix::fs::symlink(&outside, repository.path("shop/api/conf")).unwrap();
    let commit = repository.commit();
    fs::remove_file(repository.path("shop/api/conf")).unwrap();
    repository.write("shop/api/conf/.env", "SECRET=1");
    repository.write("shop/.gitignore", ".env\nnode_modules\n");
    repository.commit();
    let source = repository.find(&commit).unwrap();
    assert_eq!(source.against.copied, [PathBuf::from("api/conf/.env")]);
    let error = source
        .check_out(&repository.cache(), &mut |_| {})
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("there api/conf is a symbolic link"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(outside.join(".env")).unwrap(), "kept");
}

#[test]
fn nothing_is_fetched_for_a_partial_clone() {
    let repository = Repository::new();
    repository.git(&["config", "uploadpack.allowFilter", "true"]);
    let url = format!("file://{}", repository.path("shop").display());
    repository.git_in(
        "",
        &[
            "clone",
            "--quiet",
            "--no-checkout",
            "--filter=blob:none",
            &url,
            "partial",
        ],
    );
    fs::create_dir(repository.path("partial/api")).unwrap();
    let text = format!("name = \"x\"\n[services.api]\n{API}\n");
    let plan = plan::parse(&text, &repository.path("partial")).unwrap();
    let (message, hint) = refused(repository.find_in(&plan, "main"));
    assert!(message.contains("lies in a partial clone"), "{message}");
    assert!(hint.contains("git archive"), "{hint}");
}
