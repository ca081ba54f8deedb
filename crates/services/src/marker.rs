//! The marker of every process of a service: an environment variable that identifies its Proofload and its
//! service.
//!
//! This module only defines and parses markers. [`crate::orphans`] searches for them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use machine::groups::{ControlGroup, counting, mounted_in};
use machine::process::{self, ProcessId, text};

use crate::message::Scratch;

/// Prefix of the folders and groups that Proofload creates. A marker follows.
const PREFIX: &str = "proofload-";

/// The environment variable that contains the marker.
pub(crate) const VARIABLE: &str = "PROOFLOAD_TRIAL";

/// Returns Proofload's folders in `folder` whose Proofload is dead. Its warden may still be working on them.
pub(crate) fn abandoned(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let marker = |entry: &fs::DirEntry| Marker::named(entry.file_name().to_str()?);
    let dead =
        |entry: &fs::DirEntry| marker(entry).is_some_and(|marker| marker.proofload.is_gone());
    entries.filter(dead).map(|entry| entry.path()).collect()
}

/// Identifies a service and the Proofload that started it: `PID-START-RANDOM`. The first half of the random
/// part is from [`place`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Marker {
    /// Value of the variable.
    pub text: String,
    /// The Proofload process that started the service.
    pub proofload: ProcessId,
}

impl Marker {
    /// Creates a marker for a service that this process starts.
    pub fn new() -> Self {
        let pid = std::process::id();
        // Without /proc no process could be found by its marker later, so any start time does.
        let proofload = ProcessId::of(pid).unwrap_or(ProcessId {
            pid,
            start_ticks: 0,
        });
        let random = rand::random::<u32>();
        let text = format!("{pid}-{}-{}{random:08x}", proofload.start_ticks, place());
        Self { text, proofload }
    }

    /// Parses the value of the variable, or the end of a group's name.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        let pid = parts.next()?.parse().ok()?;
        let start_ticks = parts.next()?.parse().ok()?;
        u64::from_str_radix(parts.next()?, 16).ok()?;
        Some(Self {
            text: text.to_owned(),
            proofload: ProcessId { pid, start_ticks },
        })
    }

    /// Whether the marker belongs to a dead Proofload of this PID namespace. The state of a Proofload in
    /// another namespace is unknown here.
    pub fn is_abandoned(&self) -> bool {
        let random = self.text.rsplit('-').next().unwrap_or_default();
        random.starts_with(&place()) && self.proofload.is_gone()
    }

    /// Parses the name of a folder, a group or a project.
    pub fn named(name: &str) -> Option<Self> {
        Self::parse(name.strip_prefix(PREFIX)?)
    }

    /// Name of the folder or group of this service.
    pub fn name(&self) -> String {
        format!("{PREFIX}{}", self.text)
    }
}

/// Eight characters that identify this boot of the machine and our PID and time namespaces, in which a
/// process number and a start time identify a process. Several such places may share a container engine.
fn place() -> String {
    model::Digest::of(process::place_of_numbers().as_bytes()).to_string()[..8].to_owned()
}

// The private folder of a service: created before the service starts, removed after its last process has
// ended.
//
// The warden creates and removes it. Its name contains the marker, so that the folder of a killed warden is
// recognized and removed by the next run. A lock shows whether a warden still holds it. This module must not
// touch a folder that Proofload did not create.

/// Location of temporary folders if the system's path is too long.
const SHORT: &str = "/tmp";
/// The address of a unix socket has at most 107 bytes. Our names take at most 47 of them, and PM2's sockets
/// fewer than 21.
const PARENT_BYTES_MAX: usize = 38;

/// Returns the folder of the service with this marker. It need not exist.
pub(crate) fn scratch_directory(marker: &Marker) -> PathBuf {
    parent().join(marker.name())
}

pub(crate) fn parent() -> PathBuf {
    // The path as Node.js sees it: a script knows its own file by this name.
    let temporary = std::env::temp_dir();
    let temporary = temporary.canonicalize().unwrap_or(temporary);
    let fits =
        temporary.is_absolute() && temporary.as_os_str().as_bytes().len() <= PARENT_BYTES_MAX;
    if fits { temporary } else { SHORT.into() }
}

/// A folder held by this process. It is removed on drop.
#[derive(Debug)]
pub(crate) struct HeldFolder {
    directory: PathBuf,
    _lock: File,
}

impl HeldFolder {
    /// Creates the folder with its files, readable by its owner only.
    ///
    /// # Errors
    /// Any error of the system, also if the folder exists.
    pub fn create(scratch: &Scratch) -> io::Result<Self> {
        if let Some(parent) = scratch.directory.parent() {
            remove_abandoned(parent);
        }
        private_folder(&scratch.directory)?;
        let lock =
            lock(&scratch.directory).inspect_err(|_| _ = fs::remove_dir(&scratch.directory))?;
        let held = Self {
            directory: scratch.directory.clone(),
            _lock: lock,
        };
        scratch
            .files
            .iter()
            .try_for_each(|(name, text)| held.write(name, text))?;
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

impl HeldFolder {
    /// Removes the folder. Returns the reason if it stays.
    pub fn remove(self) -> Option<String> {
        remove(&self.directory).err()
    }
}

impl Drop for HeldFolder {
    fn drop(&mut self) {
        let _ = remove(&self.directory);
    }
}

/// Removes a folder unless something is mounted in it, because mounted files are not ours. A folder that a
/// program made unremovable stays as well.
pub(crate) fn remove(folder: &Path) -> Result<(), String> {
    if let Some(mount) = mounted_in(folder) {
        return Err(format!(
            "the folder {}, in which {} is mounted",
            folder.display(),
            mount.display()
        ));
    }
    let _ = fs::remove_dir_all(folder);
    Ok(())
}

fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Locks a folder. Only the holder of the lock may remove the folder. The lock ends with its holder.
fn lock(directory: &Path) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    let folder = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(directory)?;
    folder.try_lock()?;
    Ok(folder)
}

/// Removes the folders of runs whose Proofload and warden were both killed.
pub(crate) fn remove_abandoned(parent: &Path) {
    abandoned(parent)
        .iter()
        .for_each(|folder| remove_unheld(folder));
}

/// Removes the folder of a service whose warden was killed.
pub(crate) fn remove_unheld(directory: &Path) {
    // A warden outlives its Proofload until its service has ended.
    if let Ok(_lock) = lock(directory) {
        let _ = remove(directory);
    }
}

// A control group that counts the CPU time of a service's tree, including short-lived children.
//
// It only counts. No group is created where it would come with its own scheduling group (the `cpu`
// controller), because that would change the measurement. The warden creates and removes it, and Proofload
// reads it. Joining makes the kernel wait for a grace period, so a start takes up to 15 ms longer without
// using a CPU.

/// A group may only be removable some moments after its last process has ended.
const REMOVAL_TRIES: u32 = 50;
const REMOVAL_PAUSE: Duration = Duration::from_millis(4);

/// Creates a group below our own, in the first hierarchy that permits it. `None` if none does.
pub(crate) fn create_group(marker: &Marker) -> Option<ControlGroup> {
    own().iter().find_map(|parent| create_below(parent, marker))
}

fn own() -> Vec<ControlGroup> {
    let me = std::process::id();
    counting(&text(me, "mountinfo"), &text(me, "cgroup"))
}

fn create_below(parent: &ControlGroup, marker: &Marker) -> Option<ControlGroup> {
    // Groups of runs whose Proofload and warden were both killed are removed here. Busy groups refuse.
    for abandoned in abandoned(&parent.folder) {
        let _ = remove_groups(&abandoned);
    }
    let group = ControlGroup {
        folder: parent.folder.join(marker.name()),
        unified: parent.unified,
    };
    fs::create_dir(&group.folder).ok()?;
    let counts_only = !group.folder.join("cpu.weight").exists() && group.cpu_ns().is_some();
    if counts_only && entrance(&group).is_ok() {
        return Some(group);
    }
    remove_group(&group);
    None
}

/// Opens the file through which a process joins the group, with all its future children, by writing `0`.
pub(crate) fn entrance(group: &ControlGroup) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .open(group.folder.join("cgroup.procs"))
}

/// Kills all processes of the group at once. With version 2 no fork escapes. Older kernels freeze the group
/// first or forbid new processes. Files that do not exist are not needed.
pub(crate) fn kill_group(group: &ControlGroup) {
    for (file, value) in [
        ("pids.max", "0"),
        ("cgroup.freeze", "1"),
        ("cgroup.kill", "1"),
    ] {
        let _ = group
            .unified
            .then(|| fs::write(group.folder.join(file), value));
    }
}

/// Removes the group once it is empty. Gives up after a fifth of a second.
pub(crate) fn remove_group(group: &ControlGroup) {
    for _ in 0..REMOVAL_TRIES {
        match remove_groups(&group.folder) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                thread::sleep(REMOVAL_PAUSE)
            }
            _ => return,
        }
    }
}

/// Removes a group and the groups that the service created below it.
fn remove_groups(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_groups(&entry.path())?;
        }
    }
    fs::remove_dir(folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;
    use std::time::Instant;

    use super::*;

    #[test]
    fn what_bears_the_mark_of_a_dead_proofload_is_abandoned_but_not_where_another_place_shares_the_engine()
     {
        let of_dead = |place: &str| Marker::parse(&format!("4194305-1-{place}01234567")).unwrap();
        assert!(of_dead(&place()).is_abandoned() && !Marker::new().is_abandoned());
        assert!(!of_dead("0123abcd").is_abandoned());
    }

    fn scratch(parent: &Path, name: &str) -> Scratch {
        let files = vec![
            ("a".to_owned(), "x".to_owned()),
            (".deep/b".to_owned(), "y".to_owned()),
        ];
        Scratch {
            directory: parent.join(name),
            files,
        }
    }

    #[test]
    fn a_folder_is_private_has_its_files_and_goes_with_its_holder() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = scratch(parent.path(), &Marker::new().name());
        let held = HeldFolder::create(&scratch).unwrap();
        assert_eq!(
            scratch.directory.metadata().unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert_eq!(
            fs::read_to_string(scratch.directory.join(".deep/b")).unwrap(),
            "y"
        );
        assert!(
            HeldFolder::create(&scratch).is_err(),
            "one that is there already may be somebody's trap"
        );
        drop(held);
        assert!(!scratch.directory.exists());
    }

    #[test]
    fn an_abandoned_folder_goes_with_the_next_one_but_not_while_it_is_held() {
        let parent = tempfile::tempdir().unwrap();
        let of_dead = |random: &str| format!("proofload-4194305-1-{random}");
        let abandoned = parent.path().join(of_dead("aa"));
        fs::create_dir(&abandoned).unwrap();
        let foreign = parent.path().join("proofload-logs");
        fs::create_dir(&foreign).unwrap();
        // Its Proofload is dead, and the warden still holds it.
        let held = HeldFolder::create(&scratch(parent.path(), &of_dead("bb"))).unwrap();
        assert!(!abandoned.exists());
        let next = HeldFolder::create(&scratch(parent.path(), &Marker::new().name())).unwrap();
        assert!(held.directory.exists() && next.directory.exists() && foreign.exists());
    }

    #[test]
    fn a_socket_in_it_has_an_address_that_is_short_enough() {
        let longest = "proofload-4194304-999999999999-0123456789abcdef/.pm2/interactor.sock";
        assert!(PARENT_BYTES_MAX + 1 + longest.len() <= 107);
        assert!(parent().as_os_str().len() <= PARENT_BYTES_MAX);
    }

    #[test]
    fn a_group_counts_what_its_processes_use_and_goes_and_an_abandoned_one_with_the_next() {
        for parent in own() {
            let Some(group) = create_below(&parent, &Marker::new()) else {
                continue;
            };
            let mut child = Command::new("/bin/sh")
                .args(["-c", "while :; do :; done"])
                .spawn()
                .unwrap();
            fs::write(group.folder.join("cgroup.procs"), child.id().to_string()).unwrap();
            let deadline = Instant::now() + Duration::from_secs(20);
            while group.cpu_ns().unwrap() < 50_000_000 && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(5));
            }
            let (used_ns, members) = (group.cpu_ns().unwrap(), group.members());
            child.kill().unwrap();
            child.wait().unwrap();
            let abandoned = parent.folder.join("proofload-4194305-1-00");
            fs::create_dir(&abandoned).unwrap();
            let next = create_below(&parent, &Marker::new()).unwrap();
            // Groups as an engine creates them.
            fs::create_dir_all(next.folder.join("pod/one")).unwrap();
            assert!(!abandoned.exists() && group.folder.exists());
            remove_group(&group);
            remove_group(&next);
            assert!(!group.folder.exists() && !next.folder.exists());
            assert!(used_ns >= 50_000_000, "{parent:?}: {used_ns}");
            assert_eq!(members, [child.id()]);
        }
    }
}
