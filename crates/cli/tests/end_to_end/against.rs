//! `--against REF`: the code of a repository compared with a commit, built from its own lock file, and all
//! ways in which that fails.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::place::{Draft, Place, Run, SERVICE};

/// A repository whose service takes a time that is set in its package `dep`. That package is installed from
/// the lock file, without a network. It has one commit, and an experiment.
struct Shop {
    place: Place,
    commit: String,
}

const LOCK: &str = r#"{"name":"api","version":"1.0.0","lockfileVersion":3,"requires":true,"packages":{
"":{"name":"api","version":"1.0.0","dependencies":{"dep":"file:dep"}},
"dep":{"version":"1.0.0"},"node_modules/dep":{"resolved":"dep","link":true}}}"#;

fn experiment() -> String {
    let service =
        "directory = \"../api\"\ncommand = [\"node\", \"server.js\"]\nenv = { PORT = \"{port}\" }";
    let text = Draft {
        service,
        design: "seed = 1",
        ..Draft::default()
    }
    .text();
    text.replace(
        "name = \"test\"",
        "name = \"shop\"\nquestion = \"Is it slower?\"",
    )
}

impl Shop {
    fn new() -> Shop {
        let place = Place::new();
        let service = fs::read_to_string(SERVICE).expect("the service");
        for (file, text) in [
            (
                "api/server.js",
                "process.env.SPIN_MS = require(\"dep\");\nrequire(\"./service.js\");\n",
            ),
            ("api/service.js", &service),
            (
                "api/package.json",
                r#"{"name":"api","version":"1.0.0","dependencies":{"dep":"file:dep"}}"#,
            ),
            ("api/package-lock.json", LOCK),
            (
                "api/dep/package.json",
                r#"{"name":"dep","version":"1.0.0"}"#,
            ),
            ("api/dep/index.js", "module.exports = 1;\n"),
            ("bench/shop.toml", &experiment()),
            (".gitignore", "node_modules\n"),
        ] {
            place.write(&format!("shop/{file}"), text);
        }
        let mut shop = Shop {
            place,
            commit: String::new(),
        };
        shop.git(&["init", "--quiet"]);
        shop.git(&["add", "--all"]);
        shop.git(&["commit", "--quiet", "--message=first"]);
        shop.commit = shop.git(&["rev-parse", "HEAD"]);
        // The user's installation, changed since.
        let modules = shop.place.path("shop/api/node_modules");
        fs::create_dir(&modules).expect("it is made");
        std::os::unix::fs::symlink("../dep", modules.join("dep")).expect("a link");
        shop.place
            .write("shop/api/dep/index.js", "module.exports = 3;\n");
        shop
    }

    fn git(&self, words: &[&str]) -> String {
        let mut git = Command::new("git");
        git.arg("-C").arg(self.place.path("shop"));
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

    fn experiment(&self) -> PathBuf {
        self.place.path("shop/bench/shop.toml")
    }

    /// A command as a git hook might run it: its variables name another repository.
    fn here(&self, mut command: Command) -> Command {
        command
            .env("XDG_CACHE_HOME", self.place.path("cache"))
            .env("GIT_DIR", "/nowhere");
        command.env("npm_config_update_notifier", "false");
        command
    }

    fn run(&self, flags: &[&str]) -> Command {
        let mut command = self.here(self.place.command(&self.experiment()));
        command.args(flags);
        command
    }

    /// Output of `check --against HEAD`, without parts that differ between places.
    fn check(&self) -> String {
        let check = self.place.proofload(&[
            "run",
            "--dry-run",
            "shop/bench/shop.toml",
            "--against",
            "HEAD",
        ]);
        let said = self.here(check).said();
        let folder = self.place.path("").display().to_string();
        let text = said
            .ends(0)
            .out
            .replace(&folder, "PLACE/")
            .replace(&self.commit[..12], "0123456789ab");
        let text = text.replace(&self.commit[..7], "0123456");
        text.split("\njudged by")
            .next()
            .unwrap_or_default()
            .to_owned()
    }
}

#[test]
fn code_that_is_slower_than_the_commit_is_found_slower() {
    let shop = Shop::new();
    insta::assert_snapshot!(shop.check());
    let Some(said) = shop
        .place
        .run_well_as(|| shop.run(&["--against", "HEAD"]), 0, "SLOWER")
    else {
        return;
    };
    let name = format!("HEAD ({})", &shop.commit[..7]);
    said.tells(&[&format!("built api of {name}: ")]).prints(&[
        &format!("SLOWER here + uncommitted changes vs {name}"),
        &format!(
            "compared HEAD ({}…): working tree with 1 file changed",
            &shop.commit[..12]
        ),
        "built there by npm ci --no-audit --no-fund",
        "shop.toml --against HEAD --seed 2",
    ]);
    let record = shop.place.opened();
    let against = record.header.plan.against.as_ref().expect("it is kept");
    assert_eq!((&against.commit, against.uncommitted), (&shop.commit, true));
    // It stays for the next run, and the working tree is unchanged.
    assert!(shop.check().contains(
        "api of HEAD (0123456): there, in PLACE/cache/proofload/worktrees/0123456789ab-"
    ));
    assert_eq!(shop.git(&["status", "--porcelain"]), "M api/dep/index.js");
}

#[test]
fn configuration_that_git_ignores_is_on_both_sides() {
    let shop = Shop::new();
    shop.place
        .write("shop/.gitignore", "node_modules\n.env\n*.db\n");
    shop.place.write("shop/api/.env", "SECRET=hunter2\n");
    shop.place.write("shop/api/rows.db", "rows");
    let server = "require(\"fs\").accessSync(__dirname + \"/.env\");\nrequire(\"./service.js\");\n";
    shop.place.write("shop/api/server.js", server);
    shop.git(&["add", "--all"]);
    shop.git(&["commit", "--quiet", "--message=reads .env"]);
    let dry = shop.run(&["--against", "HEAD", "--dry-run"]).said();
    dry.ends(0).prints(&[
        "  copied: api/.env\n",
        "  not copied: api/rows.db\n",
        "--copy api/rows.db",
    ]);
    let said = shop.run(&["--against", "HEAD", "--budget", "10s"]).said();
    said.ends(0)
        .tells(&["note: copied to the other side, as git does not keep them: api/.env"]);
    let left = Command::new("find")
        .arg(shop.place.path("cache"))
        .args(["-name", ".env"])
        .said();
    assert_eq!(left.ends(0).out, "", "no secret stays in the cache");
    assert!(!shop.place.read("record/record.json").contains("hunter2"));
}

#[test]
fn a_build_that_fails_and_refs_that_are_not_there_are_told() {
    let shop = Shop::new();
    let failing = [
        "--against",
        "HEAD",
        "--build",
        "echo no such table ${HOME:+at home}; exit 3",
    ];
    let said = shop.run(&failing).said();
    said.ends(3).tells(&[
        "building api of HEAD (",
        "ended with status 3",
        "no such table at home",
    ]);
    assert_eq!(said.out, "", "what never ran has no report");
    let logs: Vec<(String, String)> = shop.place.logs().into_iter().collect();
    assert_eq!(logs.len(), 1, "no service was started");
    assert!(
        logs[0].0.starts_with("prepare-api-of-HEAD-") && logs[0].1.contains("no such table"),
        "{logs:?}"
    );
    let shop = Shop::new();
    for (flags, part) in [
        (&["--against", "mian"][..], "has no commit `mian`"),
        (&["--against=-n"], "it begins with `-`"),
        (&["--build", "make"], "--against"),
    ] {
        shop.run(flags).said().ends(2).tells(&[part]);
    }
    shop.run(&["--against", "HEAD"])
        .env("PATH", "/nowhere")
        .said()
        .ends(6);
}
