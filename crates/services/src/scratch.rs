//! A folder of a service's own: made before the service starts, removed when all its processes have gone.
//!
//! The warden makes and removes it. Its name has the marker, so that one whose warden was killed is known and removed by
//! whoever comes next, and a lock tells whether a warden still holds it. It must not touch a folder that is not ours.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};

use crate::marker::Marker;
use crate::message::Scratch;

/// Beginning of the names of our folders; a marker follows.
const PREFIX: &str = "proofload-";
/// Where temporary folders are if the system's are too deep.
const SHORT: &str = "/tmp";
/// The address of a unix socket has 107 bytes. Our names take at most 47 of them, and PM2's sockets below 21.
const PARENT_BYTES_MAX: usize = 38;

/// The folder of the service with this marker; it need not exist.
pub(crate) fn directory(marker: &Marker) -> PathBuf {
    parent().join(format!("{PREFIX}{marker}"))
}

fn parent() -> PathBuf {
    let temporary = std::env::temp_dir();
    let fits = temporary.is_absolute() && temporary.as_os_str().as_bytes().len() <= PARENT_BYTES_MAX;
    if fits { temporary } else { SHORT.into() }
}

/// A folder that this process holds; dropped, it is removed.
#[derive(Debug)]
pub(crate) struct Held {
    directory: PathBuf,
    _lock: OwnedFd,
}

impl Held {
    /// Makes it with its files, readable for its owner only.
    ///
    /// # Errors
    /// Whatever the system says, also if there is one already.
    pub fn create(scratch: &Scratch) -> io::Result<Self> {
        if let Some(parent) = scratch.directory.parent() {
            remove_abandoned(parent);
        }
        private_folder(&scratch.directory)?;
        let held = match lock(&scratch.directory) {
            Ok(lock) => Self { directory: scratch.directory.clone(), _lock: lock },
            Err(error) => {
                let _ = fs::remove_dir(&scratch.directory);
                return Err(error);
            }
        };
        for (name, text) in &scratch.files {
            held.write(name, text)?;
        }
        Ok(held)
    }

    fn write(&self, name: &str, text: &str) -> io::Result<()> {
        let file = self.directory.join(name);
        if let Some(folder) = file.parent().filter(|folder| !folder.exists()) {
            private_folder(folder)?;
        }
        File::create_new(file)?.write_all(text.as_bytes())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // What the service took away our right to remove stays, for nobody could do more.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Whoever has the lock is the only one who may remove the folder. It ends with its holder, however that ends.
fn lock(directory: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let descriptor = open(directory, flags, Mode::empty())?;
    flock(&descriptor, FlockOperation::NonBlockingLockExclusive)?;
    Ok(descriptor)
}

/// Removes the folder of a service whose warden was killed.
pub(crate) fn remove(marker: &Marker) {
    remove_unheld(&directory(marker));
}

/// Removes what others left behind whose Proofload and warden were both killed.
pub(crate) fn remove_all_abandoned() {
    remove_abandoned(&parent());
}

fn remove_abandoned(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let marker = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(Marker::parse);
        if marker.is_some_and(|marker| !marker.proofload().is_alive()) {
            remove_unheld(&entry.path());
        }
    }
}

fn remove_unheld(directory: &Path) {
    // A warden outlives its Proofload for as long as its service takes to end.
    if let Ok(_lock) = lock(directory) {
        let _ = fs::remove_dir_all(directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn scratch(parent: &Path, name: &str) -> Scratch {
        let files = vec![("a".to_owned(), "x".to_owned()), (".deep/b".to_owned(), "y".to_owned())];
        Scratch { directory: parent.join(name), files }
    }

    #[test]
    fn a_folder_is_private_has_its_files_and_goes_with_its_holder() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = scratch(parent.path(), &format!("{PREFIX}{}", Marker::new()));
        let held = Held::create(&scratch).unwrap();
        assert_eq!(scratch.directory.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_to_string(scratch.directory.join(".deep/b")).unwrap(), "y");
        assert!(Held::create(&scratch).is_err(), "one that is there already may be somebody's trap");
        drop(held);
        assert!(!scratch.directory.exists());
    }

    #[test]
    fn an_abandoned_folder_goes_with_the_next_one_but_not_while_it_is_held() {
        let parent = tempfile::tempdir().unwrap();
        let of_dead = |random: &str| format!("{PREFIX}4194305-1-{random}");
        let abandoned = parent.path().join(of_dead("aa"));
        fs::create_dir(&abandoned).unwrap();
        let foreign = parent.path().join("proofload-logs");
        fs::create_dir(&foreign).unwrap();
        // Its Proofload is dead, and the warden is still at it.
        let held = Held::create(&scratch(parent.path(), &of_dead("bb"))).unwrap();
        assert!(!abandoned.exists());
        let next = Held::create(&scratch(parent.path(), &format!("{PREFIX}{}", Marker::new()))).unwrap();
        assert!(held.directory.exists() && next.directory.exists() && foreign.exists());
    }

    #[test]
    fn a_socket_in_it_has_an_address_that_is_short_enough() {
        let longest = "proofload-4194304-999999999999-0123456789abcdef/.pm2/interactor.sock";
        assert!(PARENT_BYTES_MAX + 1 + longest.len() <= 107);
        assert!(parent().as_os_str().len() <= PARENT_BYTES_MAX);
    }
}
