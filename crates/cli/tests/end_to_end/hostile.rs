//! A repository whose settings, hooks and files name programs wherever git accepts one. Each program leaves a
//! mark. With git called directly they do, with Proofload none does. docs/security.md lists each of them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::place::{Draft, Place, Run, SERVICE};

/// Settings in the repository's own file, each with a program that leaves a mark of this name, and whether
/// git runs it in the commands of [`Hostile::by_hand`].
const SETTINGS: [(&str, bool); 30] = [
    ("core.fsmonitor", true),
    ("core.sshCommand", false),
    ("core.gitProxy", false),
    ("core.pager", false),
    ("core.editor", false),
    ("core.askPass", false),
    ("core.alternateRefsCommand", false),
    ("core.virtualFilesystem", false),
    ("credential.helper", false),
    ("diff.external", true),
    ("diff.text.textconv", true),
    ("diff.whole.command", true),
    ("filter.plain.clean", true),
    ("filter.plain.smudge", true),
    ("filter.long.process", true),
    ("filter.with=sign.clean", true),
    ("filter.everywhere.clean", true),
    ("merge.own.driver", false),
    ("gpg.program", false),
    ("gpg.ssh.defaultKeyCommand", false),
    ("hook.own.command", false),
    ("interactive.diffFilter", false),
    ("pager.diff", false),
    ("sequence.editor", false),
    ("submodule.own.update", false),
    ("remote.origin.uploadpack", false),
    ("uploadpack.packObjectsHook", false),
    ("alias.diff", false),
    ("lfs.extension.own.clean", false),
    ("lfs.customtransfer.own.path", false),
];
/// Other ways, with the mark of each.
const WAYS: [&str; 8] = [
    "core.hooksPath",
    "hooks",
    "include.path",
    "includeIf",
    "includeIf of worktrees",
    "config.worktree",
    "remote.origin.url",
    "bare",
];
/// Variables that name a program, and one that names a folder of them.
const VARIABLES: [&str; 11] = [
    "GIT_EXTERNAL_DIFF",
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_PROXY_COMMAND",
    "GIT_ASKPASS",
    "GIT_PAGER",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "GIT_CONFIG_PARAMETERS",
];
const HOOKS: [&str; 4] = [
    "post-checkout",
    "post-index-change",
    "reference-transaction",
    "pre-auto-gc",
];

/// The repository, in the folder `shop` of a place: a commit `clean`, one with attributes before it, and one
/// `lost` with a missing file.
struct Hostile {
    place: Place,
}

impl Hostile {
    fn new() -> Hostile {
        let place = Place::new();
        fs::create_dir(place.path("marks")).expect("a folder");
        let hostile = Hostile { place };
        hostile.write(
            "service.js",
            fs::read_to_string(SERVICE).expect("the service"),
        );
        for file in [
            "a.plain",
            "b.long",
            "c.sign",
            "d.text",
            "e.whole",
            "g.everywhere",
            "h.include",
            "i.if",
            "j.worktree",
        ] {
            hostile.write(file, format!("{file}\n"));
        }
        let of_service = "command = [\"node\", \"service.js\"]\ndirectory = \"DIRECTORY\"";
        for (name, directory) in [("here", "."), ("inner", "bare")] {
            let service = of_service.replace("DIRECTORY", directory).replace(
                "\"service.js",
                &format!("\"{}service.js", if directory == "." { "" } else { "../" }),
            );
            let design = "warmup = \"100ms\"\nslice = \"100ms\"\nblocks = 4\nbudget = \"20s\"";
            hostile.write(
                &format!("{name}.toml"),
                Draft {
                    service: &service,
                    design,
                    ..Draft::default()
                }
                .text(),
            );
        }
        hostile.write(".gitignore", "/bare\n");
        hostile.git(&["init", "--quiet", "--initial-branch=main"]);
        hostile.commit("clean");
        let attributes = "*.plain filter=plain\n*.long filter=long\n*.sign filter=with=sign\n*.text diff=text\n*.whole diff=whole\n\
                          *.include filter=included\n*.if filter=included-if\n*.worktree filter=of-worktree\n";
        hostile.write(".gitattributes", attributes);
        hostile.write("lost.txt", "lost\n");
        hostile.commit("lost");
        let object = hostile.git(&["rev-parse", "lost:lost.txt"]);
        fs::remove_file(hostile.path(&format!(".git/objects/{}/{}", &object[..2], &object[2..])))
            .expect("an object");
        hostile.git(&["rm", "--quiet", "--cached", "lost.txt"]);
        fs::remove_file(hostile.path("lost.txt")).expect("it was there");
        hostile.commit("attributes");
        hostile.arm();
        hostile.touch();
        hostile
    }

    fn path(&self, file: &str) -> PathBuf {
        self.place.path("shop").join(file)
    }

    fn write(&self, file: &str, text: impl AsRef<[u8]>) {
        self.place.write(&format!("shop/{file}"), text);
    }

    fn git(&self, words: &[&str]) -> String {
        let mut git = Command::new("git");
        git.arg("-C").arg(self.path(""));
        git.args([
            "-c",
            "user.name=Test",
            "-c",
            "user.email=test@localhost",
            "-c",
            "commit.gpgsign=false",
        ]);
        git.args(words).said().ends(0).out.trim().to_owned()
    }

    fn commit(&self, name: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message=x"]);
        self.git(&["tag", name]);
    }

    /// A program that leaves a mark and passes on its input.
    fn program(&self, mark: &str) -> String {
        format!(
            "touch '{}'; cat",
            self.place.path("marks").join(mark).display()
        )
    }

    /// The same as a file.
    fn script(&self, path: &Path, mark: &str) {
        fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
        fs::write(
            path,
            format!("#!/bin/sh\n{} 2>/dev/null\n", self.program(mark)),
        )
        .expect("it is written");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it may be run");
    }

    /// Sets every trap.
    fn arm(&self) {
        let set = |name: &str, value: &str| _ = self.git(&["config", name, value]);
        for hook in HOOKS {
            self.script(&self.path(".git/hooks").join(hook), "hooks");
            self.script(&self.place.path("hooks").join(hook), "core.hooksPath");
        }
        let filter = |name: &str, mark: &str| {
            format!(
                "[filter \"{name}\"]\n\tclean = \"{}\"\n",
                self.program(mark)
            )
        };
        let included = self
            .place
            .write("included", filter("included", "include.path"));
        let included_if = self
            .place
            .write("included-if", filter("included-if", "includeIf"));
        let of_worktrees =
            filter("included-if", "includeIf of worktrees").replace("clean", "smudge");
        let of_worktrees = self.place.write("included-if-worktree", of_worktrees);
        let attributes = self
            .place
            .write("attributes", "*.everywhere filter=everywhere\n");
        let bare = format!(
            "[core]\nrepositoryformatversion = 0\nworktree = ..\nfsmonitor = \"{}\"\n",
            self.program("bare")
        );
        for (file, text) in [
            ("HEAD", "ref: refs/heads/main\n"),
            ("config", bare.as_str()),
            ("objects/x", ""),
            ("refs/x", ""),
        ] {
            self.write(&format!("bare/{file}"), text);
        }
        set("extensions.worktreeConfig", "true");
        self.git(&[
            "config",
            "--worktree",
            "filter.of-worktree.clean",
            &self.program("config.worktree"),
        ]);
        // It ends at once, because git would wait for a response endlessly.
        let url = self.script_at("remote.origin.url");
        let mark = self.place.path("marks").join("remote.origin.url");
        fs::write(&url, format!("#!/bin/sh\ntouch '{}'\n", mark.display())).expect("it is written");
        let remote = format!("ext::sh -c {}", url.display());
        for (name, value) in [
            ("extensions.partialClone", "origin"),
            ("remote.origin.promisor", "true"),
            ("remote.origin.url", &remote),
            ("protocol.ext.allow", "always"),
            ("log.showSignature", "true"),
            ("core.attributesFile", &attributes.display().to_string()),
            ("include.path", &included.display().to_string()),
            (
                "includeIf.gitdir:**.path",
                &included_if.display().to_string(),
            ),
            (
                "includeIf.gitdir:**/worktrees/**.path",
                &of_worktrees.display().to_string(),
            ),
            ("hook.own.event", "post-checkout"),
        ] {
            set(name, value);
        }
        for (name, _) in SETTINGS {
            let exclamation = if name == "submodule.own.update" || name == "alias.diff" {
                "!"
            } else {
                ""
            };
            set(name, &format!("{exclamation}{}", self.program(name)));
        }
        // Last, because it would run from here on.
        set(
            "core.hooksPath",
            &self.place.path("hooks").display().to_string(),
        );
        self.forget();
    }

    fn script_at(&self, mark: &str) -> PathBuf {
        let path = self.place.path("programs").join(mark);
        self.script(&path, mark);
        path
    }

    fn forget(&self) {
        fs::remove_dir_all(self.place.path("marks")).expect("it was there");
        fs::create_dir(self.place.path("marks")).expect("a folder");
    }

    fn marks(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.place.path("marks"))
            .expect("a folder")
            .flatten();
        entries
            .map(|entry| entry.file_name().into_string().expect("a name"))
            .collect()
    }

    /// Makes git read the files again, whose content is unchanged.
    fn touch(&self) {
        let touched = Command::new("sh")
            .arg("-c")
            .arg("touch -d '1 hour ago' *.*")
            .current_dir(self.path(""))
            .said();
        touched.ends(0);
    }

    /// The commands that Proofload runs, called directly.
    fn by_hand(&self) {
        let run = |directory: &str, words: &[&str]| {
            // Commands that wait for a response are ended.
            let mut git = Command::new("timeout");
            git.args(["20", "git", "-C"])
                .arg(self.path(directory))
                .args(words)
                .stdin(Stdio::null())
                .env("GIT_TERMINAL_PROMPT", "0")
                .said();
        };
        self.write("d.text", "other\n");
        self.write("e.whole", "other\n");
        run("", &["status", "--porcelain"]);
        run("", &["diff", "HEAD"]);
        // A program that fails ends the whole comparison.
        run("", &["-c", "diff.external=true", "diff", "HEAD"]);
        run("", &["diff", "--no-ext-diff", "HEAD"]);
        run("", &["cat-file", "-e", "lost:lost.txt"]);
        run("bare", &["status"]);
        run(
            "",
            &["worktree", "add", "--detach", "../with-hooks", "clean"],
        );
        run(
            "",
            &[
                "-c",
                "core.hooksPath=.git/hooks",
                "worktree",
                "add",
                "--detach",
                "../with-filters",
                "attributes",
            ],
        );
        for folder in ["with-hooks", "with-filters"] {
            run(
                "",
                &["worktree", "remove", "--force", &format!("../{folder}")],
            );
        }
        self.write("d.text", "d.text\n");
        self.write("e.whole", "e.whole\n");
        self.touch();
    }

    /// Proofload in the repository, started by a user whose variables name programs, too.
    fn proofload(&self, words: &[&str]) -> Command {
        let mut command = self.place.proofload(words);
        command
            .current_dir(self.path(""))
            .env("XDG_CACHE_HOME", self.place.path("cache"))
            .stdin(Stdio::null());
        for name in VARIABLES {
            command.env(name, self.script_at(name));
        }
        let programs = self.place.path("programs-of-git");
        for name in [
            "git",
            "git-reset",
            "git-config",
            "git-remote-ext",
            "git-fetch",
        ] {
            self.script(&programs.join(name), "GIT_EXEC_PATH");
        }
        self.script(
            &self.place.path("template/hooks/post-checkout"),
            "GIT_TEMPLATE_DIR",
        );
        command
            .env("GIT_EXEC_PATH", programs)
            .env("GIT_TEMPLATE_DIR", self.place.path("template"));
        let parameters = format!(
            "'core.fsmonitor={}'",
            self.script_at("GIT_CONFIG_PARAMETERS").display()
        );
        command
            .env("GIT_CONFIG_PARAMETERS", parameters)
            .env("GIT_DIR", self.path("bare"));
        command
    }
}

#[test]
fn no_program_that_a_repository_names_runs() {
    let hostile = Hostile::new();
    // The traps work: git called directly runs all that these commands reach.
    hostile.by_hand();
    let reached = SETTINGS
        .iter()
        .filter(|(_, reached)| *reached)
        .map(|(name, _)| *name);
    let expected: BTreeSet<String> = reached.chain(WAYS).map(str::to_owned).collect();
    assert_eq!(hostile.marks(), expected);
    hostile.forget();

    let out = |name: &str| hostile.place.path(name).display().to_string();
    let quiet = |words: &[&str]| {
        let said = hostile.proofload(words).said();
        assert_eq!(hostile.marks(), BTreeSet::new(), "{words:?}: {said}");
        said
    };
    quiet(&["run", "here.toml", "--against", "clean", "--dry-run"]).ends(0);
    quiet(&["run", "here.toml", "--dry-run"]).ends(0);
    let run = quiet(&[
        "run",
        "here.toml",
        "--against",
        "clean",
        "--out",
        &out("against"),
    ]);
    // The repository selects a filter for a file of this commit that only it has.
    run.ends(2).tells(&["smudge filter everywhere failed"]);
    for (file, commit) in [("here.toml", true), ("inner.toml", false)] {
        quiet(&["run", file, "--out", &out(file)]);
        let record = record::open(&hostile.place.path(file)).expect("the record opens");
        assert_eq!(record.header.environment.commit.is_some(), commit, "{file}");
    }
    quiet(&["load", "http://127.0.0.1:1/", "-n", "1"]);
    // Features that need such a program are reported.
    quiet(&[
        "run",
        "here.toml",
        "--against",
        "attributes",
        "--out",
        &out("filtered"),
    ])
    .ends(2)
    .tells(&[
        "smudge filter",
        "failed",
        "Proofload does not run",
        "git config --global filter.",
    ]);
    quiet(&[
        "run",
        "here.toml",
        "--against",
        "lost",
        "--out",
        &out("lost"),
    ])
    .ends(2)
    .tells(&["partial clone", "fetches nothing"]);
}

#[test]
fn filters_of_the_users_own_settings_run() {
    let hostile = Hostile::new();
    let mine = hostile.place.write(
        "gitconfig",
        "[filter \"plain\"]\n\tsmudge = sed s/plain/MINE/\n\tclean = sed s/MINE/plain/\n[filter \"long\"]\n\tclean = cat\n\
         [filter \"with=sign\"]\n\tclean = cat\n[filter \"included\"]\n\tclean = cat\n[filter \"included-if\"]\n\tclean = cat\n\
         [filter \"of-worktree\"]\n\tclean = cat\n[filter \"everywhere\"]\n\tclean = cat\n",
    );
    let words = [
        "run",
        "here.toml",
        "--against",
        "attributes",
        "--build",
        "cat a.plain; exit 7",
    ];
    let said = hostile
        .proofload(&words)
        .env("GIT_CONFIG_GLOBAL", mine)
        .said();
    said.ends(3).tells(&["ended with status 7", "a.MINE"]);
    assert_eq!(hostile.marks(), BTreeSet::new(), "{said}");
}

#[test]
fn every_setting_that_is_kept_out_is_documented() {
    let page = fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/security.md"
    ))
    .expect("the page");
    let generic = |name: &str| match name.split('.').collect::<Vec<_>>()[..] {
        [first, _, last] => format!("{first}.NAME.{last}"),
        [first, second, _, last] => format!("{first}.{second}.NAME.{last}"),
        _ => name.to_owned(),
    };
    let settings = SETTINGS.iter().map(|(name, _)| generic(name));
    let settings = settings.chain(VARIABLES.map(str::to_owned));
    let more = [
        "core.hooksPath",
        "include.path",
        "includeIf",
        "config.worktree",
        "remote.NAME.url",
        "core.attributesFile",
        "core.worktree",
        "safe.bareRepository",
        "log.showSignature",
        "protocol.ext.allow",
    ];
    for name in settings.chain(more.map(str::to_owned)) {
        assert!(
            page.contains(&format!("`{name}`")),
            "docs/security.md says nothing of {name}"
        );
    }
}

#[test]
fn no_checkout_writes_outside_of_its_worktree() {
    let place = Place::new();
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(place.path("repository"));
        git.args(["-c", "user.name=Test", "-c", "user.email=test@localhost"]);
        git.args(["-c", "commit.gpgsign=false"]).args(words);
        git.said().ends(0);
    };
    for folder in ["repository", "home"] {
        fs::create_dir(place.path(folder)).expect("a folder");
    }
    place.write("home/service.js", "precious");
    let service = fs::read_to_string(SERVICE).expect("the service");
    place.write("repository/service.js", service);
    let design = "warmup = \"100ms\"\nslice = \"100ms\"\nblocks = 4\nbudget = \"20s\"";
    let draft = Draft {
        service: "command = [\"node\", \"service.js\"]",
        design,
        ..Draft::default()
    };
    place.write("repository/experiment.toml", draft.text());
    git(&["init", "--quiet", "--initial-branch=main"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message=first"]);
    git(&["config", "extensions.worktreeConfig", "true"]);
    let home = place.path("home").display().to_string();
    git(&["config", "core.worktree", &home]);
    place.write(
        "repository/.git/config.worktree",
        "[core]\n\tworktree = ..\n",
    );
    let file = "repository/experiment.toml";
    let said = place.said(&["run", file, "--against", "main", "--out", "record"]);
    said.ends(2)
        .tells(&["main", "cannot be checked out", "core.worktree"]);
    let kept = fs::read_to_string(place.path("home/service.js")).expect("the file");
    assert_eq!(kept, "precious");
}
