//! The key for hashes of secrets: one for each user of a machine, created at first use in
//! `$XDG_STATE_HOME/proofload/key`.
//!
//! If the key cannot be stored, this process uses a random one. Equal values then have equal marks within a
//! run.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::{env, process};

use ::model::Digest;

use super::MARK;
use crate::outside::read_file;

const KEY_BYTES: usize = 32;
/// 48 bits: the chance that two values of a machine have the same mark is about 1 in 10¹⁴.
const HASH_DIGITS: usize = 12;

static KEY: LazyLock<Vec<u8>> = LazyLock::new(|| kept().or_else(|_| random()).unwrap_or_default());

/// Mark that replaces a secret.
pub(super) fn mark(value: &str) -> String {
    let hash = Digest::of(&[KEY.as_slice(), value.as_bytes()].concat()).to_string();
    format!("{MARK}{}]", &hash[..HASH_DIGITS])
}

/// Whether this may be the hash in a mark.
pub(super) fn is_hash(text: &str) -> bool {
    text.len() == HASH_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn kept() -> io::Result<Vec<u8>> {
    // The XDG Base Directory Specification ignores relative paths.
    let absolute = |name: &str| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    let folder = base.ok_or(io::ErrorKind::NotFound)?.join("proofload");
    let path = folder.join("key");
    read(&path).or_else(|_| make(&folder, &path))
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let key = read_file(path, KEY_BYTES as u64)?;
    if key.len() == KEY_BYTES {
        Ok(key)
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// Creates the key under another name and links it when it is complete. If several processes do this, the
/// first wins. A file that is not a key is replaced.
fn make(folder: &Path, path: &Path) -> io::Result<Vec<u8>> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let draft = folder.join(format!("key.{}", process::id()));
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&draft)?;
    file.write_all(&random()?)?;
    if fs::hard_link(&draft, path).is_err() && read(path).is_err() {
        fs::rename(&draft, path)?;
    }
    let _ = fs::remove_file(&draft);
    read(path)
}

fn random() -> io::Result<Vec<u8>> {
    let mut key = vec![0; KEY_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut key)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_and_is_no_key_is_replaced_and_a_device_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        let first = make(folder.path(), &path).unwrap();
        assert_eq!(make(folder.path(), &path).unwrap(), first);
        fs::write(&path, "short").unwrap();
        assert_ne!(make(folder.path(), &path).unwrap(), first);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
