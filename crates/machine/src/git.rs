//! The git program: how it is asked, so that whatever the caller's shell and configuration say it answers about the repository that
//! a directory lies in, in English, and starts nothing. It knows no command of it.

use std::path::Path;
use std::process::Command;

/// Variables that point git, or npm, somewhere else than to where they run. Git sets them for its hooks, npm for its scripts.
pub const ELSEWHERE: [&str; 11] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_SHALLOW_FILE",
    "npm_config_local_prefix",
];

/// Hooks are somebody's programs, file system monitors daemons that stay, and a collection of garbage would run on in the background
/// while services are measured.
const SETTINGS: [&str; 4] =
    ["core.hooksPath=/dev/null", "core.fsmonitor=false", "gc.auto=0", "maintenance.auto=false"];

/// Git in a directory; its command is to be added.
pub fn git(directory: &Path) -> Command {
    let mut command = Command::new("git");
    ELSEWHERE.iter().for_each(|name| {
        command.env_remove(name);
    });
    // Messages in English; no question to anyone; no lock taken for the sake of speed.
    command.envs([("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_OPTIONAL_LOCKS", "0")]);
    command.arg("--no-pager").arg("-C").arg(directory);
    SETTINGS.iter().for_each(|setting| {
        command.args(["-c", setting]);
    });
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_hook_or_a_shell_says_of_another_repository_is_not_heard() {
        let place = std::env::temp_dir().join(format!("proofload-git-{}", std::process::id()));
        let make = |name: &str| {
            let directory = place.join(name);
            std::fs::create_dir_all(&directory).unwrap();
            assert!(git(&directory).args(["init", "--quiet"]).status().unwrap().success());
            directory.canonicalize().unwrap()
        };
        let (ours, other) = (make("ours"), make("other"));
        let monitor = format!("touch {}", place.join("started").display());
        assert!(git(&ours).args(["config", "core.fsmonitor", &monitor]).status().unwrap().success());
        // The environment of a hook of the other repository: this very test, run again in it.
        if std::env::var_os("GIT_DIR").is_none() {
            let this = std::env::current_exe().unwrap();
            let mut again = Command::new(this);
            again.args(["what_a_hook_or_a_shell_says"]).env("GIT_DIR", other.join(".git"));
            assert!(again.env("GIT_WORK_TREE", &other).output().unwrap().status.success());
        }
        let said = git(&ours).args(["rev-parse", "--show-toplevel"]).output().unwrap().stdout;
        assert_eq!(String::from_utf8(said).unwrap().trim(), ours.to_str().unwrap());
        assert!(git(&ours).args(["status", "--porcelain"]).status().unwrap().success());
        assert!(!place.join("started").exists(), "a file system monitor was started");
        std::fs::remove_dir_all(&place).unwrap();
    }
}
