//! Files that are kept: never half, and for nobody else.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes a file that only this user may read, whole or not at all. What was there by its name is replaced, also a link.
///
/// # Errors
/// What the system says; what was there stays then.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".new");
    let made = path.with_file_name(name);
    // Somebody who was killed in the middle may have left one.
    let _ = fs::remove_file(&made);
    let file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&made);
    let written = file.and_then(|mut file| file.write_all(bytes)).and_then(|()| fs::rename(&made, path));
    written.inspect_err(|_| _ = fs::remove_file(&made))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_written_whole_and_for_nobody_else_or_stays_as_it_was() {
        let folder = std::env::temp_dir().join(format!("proofload-files-{}", std::process::id()));
        let (file, made) = (folder.join("page"), folder.join(".page.new"));
        fs::create_dir_all(&made).unwrap();
        fs::write(&file, "old").unwrap();
        assert!(write_whole(&file, b"new").is_err(), "a folder is in its way");
        assert_eq!(fs::read(&file).unwrap(), b"old");
        fs::remove_dir(&made).unwrap();
        fs::write(&made, "cut o").unwrap();
        write_whole(&file, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!made.exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
