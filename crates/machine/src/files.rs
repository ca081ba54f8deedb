//! Private files that are written completely or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, DirEntry, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

/// Writing takes seconds, so older temporary files were left by a process that was killed.
const LEFT: Duration = Duration::from_secs(3600);
const END: &str = ".new";
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// Creates a folder that is private to this user, with its parents. An existing one becomes private: older
/// versions created folders that others could read.
///
/// # Errors
/// Returns an error if the folder belongs to another user, is a symbolic link or no folder, or cannot be
/// created.
pub fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    // By its descriptor, because another user could exchange the target of a path between two calls.
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let folder = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    let found = folder.metadata()?;
    let (owner, own) = (found.uid(), rustix::process::geteuid().as_raw());
    if owner != own {
        let message =
            format!("it belongs to the user with the number {owner}, and this one has {own}");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    if found.mode() & 0o077 == 0 {
        Ok(())
    } else {
        folder.set_permissions(Permissions::from_mode(0o700))
    }
}

/// Creates a folder with the mode 0700 in the system's temporary folder, or in `/dev/shm` if a container can
/// write nowhere else. Dropping it removes it.
///
/// # Errors
/// Returns an error if both fail.
pub fn temporary_folder() -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    let private = builder.permissions(Permissions::from_mode(0o700));
    private
        .tempdir()
        .or_else(|_| private.tempdir_in("/dev/shm"))
}

/// Writes a file that only this user may read, completely or not at all. Replaces an existing file or link of
/// this name. Of several concurrent writers the last one wins.
///
/// # Errors
/// Returns the system's error. The existing file is then unchanged.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".");
    remove_left(path, &name);
    // A unique name, so that only its writer renames or removes it.
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let number = BEGUN.fetch_add(1, Ordering::Relaxed);
    name.push(format!(
        "{}-{}-{number}{END}",
        process::id(),
        now.as_nanos()
    ));
    let made = path.with_file_name(name);
    let mut file = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&made)?;
    let written = file.write_all(bytes).and_then(|()| fs::rename(&made, path));
    written.inspect_err(|_| _ = fs::remove_file(&made))
}

/// Removes unfinished files with this prefix beside a file.
fn remove_left(path: &Path, begin: &OsStr) {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let is_left = |entry: &DirEntry| {
        let name = entry.file_name();
        let is_ours = name.as_bytes().starts_with(begin.as_bytes())
            && name.as_bytes().ends_with(END.as_bytes());
        let changed = || {
            entry
                .metadata()
                .and_then(|of| of.modified())
                .ok()?
                .elapsed()
                .ok()
        };
        is_ours && changed().is_some_and(|age| age > LEFT)
    };
    let left = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(is_left);
    left.for_each(|entry| _ = fs::remove_file(entry.path()));
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::thread;

    use super::*;

    #[test]
    fn a_file_is_written_whole_and_for_nobody_else_or_stays_as_it_was() {
        let folder = std::env::temp_dir().join(format!("proofload-files-{}", process::id()));
        let (file, in_the_way) = (folder.join("page"), folder.join("folder"));
        fs::create_dir_all(in_the_way.join("full")).unwrap();
        assert!(
            write_whole(&in_the_way, b"new").is_err(),
            "a folder is in its way"
        );
        // One writer was killed an hour ago, and one is still writing.
        for (name, age) in [(".page.1-1.new", LEFT * 2), (".page.2-2.new", LEFT / 2)] {
            let left = File::create(folder.join(name)).unwrap();
            left.set_modified(SystemTime::now() - age).unwrap();
        }
        let texts = ["old".repeat(100_000), "new".repeat(200_000)];
        let write = |text: &str| write_whole(&file, text.as_bytes()).unwrap();
        thread::scope(|scope| {
            let writers = texts.iter().cycle().take(8);
            writers.for_each(|text| _ = scope.spawn(move || write(text)));
        });
        assert!(
            texts.contains(&fs::read_to_string(&file).unwrap()),
            "several wrote it at once"
        );
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let name = |entry: io::Result<DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = fs::read_dir(&folder).unwrap().map(name).collect();
        names.sort();
        assert_eq!(names, [".page.2-2.new", "folder", "page"]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_private_folder_is_no_link_and_tightened() {
        let place = std::env::temp_dir().join(format!("proofload-private-{}", process::id()));
        let (old, link) = (place.join("a/old"), place.join("a/link"));
        private_folder(&old).unwrap();
        fs::set_permissions(&old, Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(&old, &link).unwrap();
        assert!(private_folder(&link).is_err(), "a link is followed");
        private_folder(&old).unwrap();
        for folder in [&place, &place.join("a"), &old] {
            assert_eq!(
                folder.metadata().unwrap().mode() & 0o777,
                0o700,
                "{folder:?}"
            );
        }
        fs::remove_dir_all(&place).unwrap();
    }
}
