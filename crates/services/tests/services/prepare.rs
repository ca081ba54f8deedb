//! Data made once and cached: reused, never partial, and no process left, however its command ends.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use plan::Preparation;
use proofload_services::{Blame, Cache, Error, PreparedData, Preparing};

use crate::stage::{PATIENCE, wait_until as happens_within, warden};

/// A separate cache, and a directory for the steps.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("source")).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn cache(&self) -> Cache {
        Cache {
            folder: self.path("cache/proofload"),
        }
    }

    /// A step that runs a script, with the folder to fill as `$1`.
    fn step(&self, script: &str) -> Preparation {
        Preparation {
            name: "zips".to_owned(),
            command: ["/bin/sh", "-c", script, "sh", "{output}"]
                .map(str::to_owned)
                .to_vec(),
            directory: self.path("source"),
            env: [("HERE".to_owned(), "{directory}".to_owned())].into(),
            inputs: Vec::new(),
            space_bytes: None,
            timeout: PATIENCE,
            mark: None,
        }
    }

    fn prepare(&self, step: &Preparation) -> Result<PreparedData, Error> {
        self.prepare_unless(step, &mut |_| {}, &|| false)
    }

    fn prepare_unless(
        &self,
        step: &Preparation,
        watch: &mut dyn FnMut(Preparing),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<PreparedData, Error> {
        self.cache().prepare(
            (&warden(), &BTreeMap::new()),
            step,
            &self.path("log"),
            watch,
            cancelled,
        )
    }

    /// Names of everything in the cache.
    fn kept(&self) -> Vec<String> {
        names(&self.cache().folder)
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect()
}

fn wait_until(what: &str, done: impl Fn() -> bool) {
    assert!(
        happens_within(PATIENCE, done),
        "waited in vain until {what}"
    );
}

#[test]
fn data_is_made_once_and_found_by_whoever_asks_again() {
    let place = Place::new();
    let step = place.step("echo working in $HERE; mkdir $1/a; printf 12345 >$1/a/b; echo x >>runs");
    assert!(!place.cache().place(&step, &BTreeMap::new()).unwrap().there);
    assert_eq!(place.kept(), [] as [&str; 0], "looking makes nothing");
    let first = place.prepare(&step).unwrap();
    assert_eq!((first.made, first.bytes, first.key.len()), (true, 5, 64));
    assert_eq!(fs::read_to_string(first.path.join("a/b")).unwrap(), "12345");
    let source = place.path("source").display().to_string();
    assert_eq!(
        fs::read_to_string(place.path("log")).unwrap(),
        format!("working in {source}\n")
    );
    let second = place.prepare(&step).unwrap();
    assert_eq!(
        (second.made, second.bytes, &second.path),
        (false, 5, &first.path)
    );
    assert_eq!(
        fs::read_to_string(place.path("source/runs")).unwrap(),
        "x\n"
    );
    assert_eq!(
        place.cache().place(&step, &BTreeMap::new()).unwrap().path,
        first.path
    );
    assert_eq!(
        place.kept(),
        [first.key],
        "no lock and nothing half made stays"
    );
}

/// The permissions of a path.
fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().mode() & 0o777
}

#[test]
fn other_users_reach_nothing_in_the_cache() {
    let place = Place::new();
    // As an older version created it, with data that is still there.
    let (root, old) = (place.cache().folder, place.path("cache/proofload/old"));
    fs::create_dir_all(&old).unwrap();
    for folder in [place.0.path(), &place.path("cache"), &root, &old] {
        fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    }
    let made = place
        .prepare(&place.step("umask 0; mkdir $1/open; echo secret >$1/open/data"))
        .unwrap();
    assert_eq!(
        mode(&made.path.join("open/data")),
        0o666,
        "the command's own choice"
    );
    let mark = place.path("cache/proofload/built");
    let build = Preparation {
        mark: Some(mark.clone()),
        ..place.step("echo >x")
    };
    place.prepare(&build).unwrap();
    assert_eq!(
        (mode(&root), mode(&made.path), mode(&mark)),
        (0o700, 0o700, 0o600)
    );
    // The mode of the root folder keeps other users out of everything below it.
    if rustix::process::geteuid().is_root() {
        let as_nobody = |path: &Path| {
            Command::new("cat")
                .arg(path)
                .uid(65534)
                .gid(65534)
                .output()
                .unwrap()
        };
        for path in [old, made.path.join("open/data")] {
            assert!(!as_nobody(&path).status.success(), "{path:?}");
            assert!(
                String::from_utf8_lossy(&as_nobody(&path).stderr).contains("denied"),
                "{path:?}"
            );
        }
    }

    fs::set_permissions(&root, Permissions::from_mode(0o755)).unwrap();
    let links = Place::new();
    fs::create_dir(links.path("cache")).unwrap();
    std::os::unix::fs::symlink(&root, links.cache().folder).unwrap();
    links.prepare(&links.step("echo >$1/x")).unwrap();
    assert_eq!(
        mode(&root),
        0o700,
        "also where the user has linked it elsewhere"
    );
}

#[test]
fn data_that_was_made_with_another_value_is_not_found() {
    let place = Place::new();
    let mut step = place.step("echo $2 >$1/size");
    step.command.push("{env.SIZE}".to_owned());
    let make = |size: &str| {
        let values = BTreeMap::from([("env.SIZE".to_owned(), size.to_owned())]);
        let log = place.path("log");
        place
            .cache()
            .prepare((&warden(), &values), &step, &log, &mut |_| {}, &|| false)
            .unwrap()
    };
    assert!(make("10").made);
    let large = make("1000");
    assert!(large.made && !make("10").made);
    assert_eq!(
        fs::read_to_string(large.path.join("size")).unwrap(),
        "1000\n"
    );
}

#[test]
fn a_command_that_fails_leaves_nothing_and_says_why() {
    let place = Place::new();
    let fail = |script: &str| {
        let error = place.prepare(&place.step(script)).unwrap_err();
        assert_eq!(place.kept(), [] as [&str; 0]);
        error
    };
    let error = fail("echo half >$1/data; echo no such table >&2; exit 3");
    assert!(
        error
            .to_string()
            .starts_with("prepare.zips ended with status 3 after "),
        "{error}"
    );
    assert_eq!(error.tail(), Some("no such table"));
    let error = fail("echo half >$1/data; echo 'write: No space left on device' >&2; exit 1");
    let cache = place.cache().folder.display().to_string();
    assert!(
        error
            .to_string()
            .contains(&format!("no space is left in {cache}")),
        "{error}"
    );
    assert!(error.hint().unwrap().contains("XDG_CACHE_HOME"));
    assert!(
        fail("true")
            .to_string()
            .starts_with("prepare.zips ended well and put nothing into {output}: ")
    );
    let mut step = place.step("true");
    step.command[0] = "no-such-program".to_owned();
    let error = place.prepare(&step).unwrap_err().to_string();
    assert!(
        error.starts_with("prepare.zips: cannot run no-such-program: No such file"),
        "{error}"
    );
}

#[test]
fn a_step_is_ended_when_it_takes_too_long_or_is_not_wanted_any_more() {
    let place = Place::new();
    // The command and its child ignore SIGTERM.
    let mut step = place.step(
        "trap '' TERM; echo $$ >pid; echo half >$1/data; sleep 600 & while :; do sleep 600; done",
    );
    step.timeout = Duration::from_secs(1);
    let ended = |error: &Error| {
        assert_eq!(place.kept(), [] as [&str; 0], "{error}");
        let pid = fs::read_to_string(place.path("source/pid")).unwrap();
        assert!(
            !Path::new("/proc").join(pid.trim()).exists(),
            "{error}: its process stayed"
        );
        fs::remove_file(place.path("source/pid")).unwrap();
    };
    let error = place.prepare(&step).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("prepare.zips had not ended after 1s: "),
        "{error}"
    );
    ended(&error);
    step.timeout = PATIENCE * 10;
    let begun = || place.path("source/pid").exists();
    let error = place
        .prepare_unless(&step, &mut |_| {}, &begun)
        .unwrap_err();
    assert_eq!(*error.blame(), Blame::Cancelled, "{error}");
    ended(&error);
}

#[test]
fn too_little_space_is_told_before_anything_starts() {
    let place = Place::new();
    let mut step = place.step("echo >ran; echo >$1/data");
    step.space_bytes = Some(1 << 60);
    let error = place.prepare(&step).unwrap_err();
    let cache = place.cache().folder.display().to_string();
    assert!(
        error
            .to_string()
            .starts_with("prepare.zips needs 1,150,000,000 GB, and "),
        "{error}"
    );
    assert!(
        error.to_string().contains(&format!("{cache} has ")),
        "{error}"
    );
    assert!(!place.path("source/ran").exists() && place.kept().is_empty());
}

#[test]
fn what_dead_runs_left_is_removed_and_what_living_ones_make_is_not() {
    let place = Place::new();
    let step = place.step("echo x >$1/data");
    let key = place.prepare(&step).unwrap().key;
    let cache = place.cache();
    let folder = &cache.folder;
    fs::rename(folder.join(&key), folder.join(format!("{key}.partial-1"))).unwrap();
    for name in ["dead.partial-2", "living.partial-3"] {
        fs::create_dir(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("half"), "x").unwrap();
    }
    // Lock files of a killed Proofload and of a living one.
    File::create(folder.join("dead.lock")).unwrap();
    let living = File::create(folder.join("living.lock")).unwrap();
    living.lock().unwrap();
    assert!(
        place.prepare(&step).unwrap().made,
        "a half made folder is not taken for data"
    );
    let mut kept = place.kept();
    kept.sort_unstable();
    let mut expected = [key.as_str(), "living.lock", "living.partial-3"];
    expected.sort_unstable();
    assert_eq!(kept, expected);
}

#[test]
fn of_two_who_want_the_same_one_makes_it_and_the_other_waits() {
    let place = Place::new();
    let step = place.step("echo x >>runs; while [ ! -e go ]; do sleep 0.05; done; echo x >$1/data");
    let waited = AtomicBool::new(false);
    let ask = || {
        let watch = |preparing| waited.fetch_or(preparing == Preparing::Waiting, Ordering::SeqCst);
        place
            .prepare_unless(&step, &mut |preparing| _ = watch(preparing), &|| false)
            .unwrap()
    };
    let made = thread::scope(|scope| {
        let both = [scope.spawn(ask), scope.spawn(ask)];
        wait_until("one waits for the other", || waited.load(Ordering::SeqCst));
        wait_until("the other is at it", || place.path("source/runs").exists());
        fs::write(place.path("source/go"), "").unwrap();
        both.map(|one| one.join().unwrap().made)
    });
    assert_eq!(made.iter().filter(|made| **made).count(), 1);
    assert_eq!(
        fs::read_to_string(place.path("source/runs")).unwrap(),
        "x\n"
    );
    assert_eq!(place.kept().len(), 1);
}
