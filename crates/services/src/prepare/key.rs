//! The cache key of prepared data: a hash of all its declared inputs.
//!
//! It reads files and changes nothing. The key must not depend on the location of the checkout, times, or
//! owners.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use plan::Preparation;
use sha2::{Digest as _, Sha256};

use super::label;
use crate::Error;

/// Version of the hashing scheme. Later schemes must not find data of this one.
const RULE: &[u8] = b"proofload prepare 1";
/// A name whose value always counts as a secret.
const ANY_SECRET: &str = "SECRET";
const READ_BYTES: usize = 64 << 10;

/// Returns 64 hexadecimal digits.
///
/// # Errors
/// An input that cannot be read.
pub(super) fn key(step: &Preparation, values: &BTreeMap<String, String>) -> Result<String, Error> {
    // The key is stored in records.
    let step = &step.masked();
    // Each field is named, so that none is forgotten.
    let Preparation {
        command,
        directory,
        env,
        inputs,
        // Name, needs and limits do not change the data.
        name: _,
        space_bytes: _,
        timeout: _,
        // The mark is stored with the data.
        mark: _,
    } = step;
    let mut parts = Parts::new();
    parts.add(RULE);
    parts.count(command.len());
    command.iter().for_each(|part| parts.add(part.as_bytes()));
    parts.count(env.len());
    for (name, value) in env {
        parts.add(name.as_bytes());
        parts.add(value.as_bytes());
    }
    for (name, value) in values {
        parts.add(name.as_bytes());
        // Hashes the mask of the value, from which it cannot be found by trying words.
        parts.add(plan::masked(Some(ANY_SECRET), value).as_bytes());
    }
    parts.count(inputs.len());
    for input in inputs {
        parts.add(input.as_bytes());
        parts
            .entry(&directory.join(input))
            .map_err(|(path, error)| {
                Error::new(format!(
                    "{}: cannot read its input {}: {error}",
                    label(step),
                    path.display()
                ))
            })?;
    }
    if inputs.is_empty() {
        // Nothing else distinguishes two experiments whose command is `make`.
        parts.add(directory.as_os_str().as_bytes());
    }
    Ok(parts.digits())
}

/// The hash input. Each part is preceded by its length, so that different lists of parts differ.
pub(crate) struct Parts(Sha256);

impl Parts {
    pub fn new() -> Parts {
        Parts(Sha256::new())
    }

    pub fn add(&mut self, part: &[u8]) {
        self.count(part.len());
        self.0.update(part);
    }

    fn count(&mut self, number: usize) {
        self.0.update((number as u64).to_le_bytes());
    }

    /// Adds a file, or a folder with everything in it. On failure returns the path and the error.
    fn entry(&mut self, path: &Path) -> Result<(), (PathBuf, io::Error)> {
        let at = |error| (path.to_owned(), error);
        let found = fs::metadata(path).map_err(at)?;
        if found.is_file() {
            self.add(b"file");
            self.add(&hash_of(path).map_err(at)?);
            return Ok(());
        }
        if !found.is_dir() {
            return Err(at(io::Error::other("it is neither a file nor a folder")));
        }
        let names = fs::read_dir(path)
            .map_err(at)?
            .map(|entry| Ok(entry?.file_name()));
        let mut names = names.collect::<io::Result<Vec<_>>>().map_err(at)?;
        // The order on disk differs between machines.
        names.sort_unstable();
        self.add(b"folder");
        self.count(names.len());
        for name in &names {
            self.add(OsStr::as_bytes(name));
            let inside = path.join(name);
            match fs::read_link(&inside) {
                // Hashed by its target: following a link to a parent folder would never end.
                Ok(target) if inside.is_dir() || !inside.exists() => {
                    self.add(b"link");
                    self.add(target.as_os_str().as_bytes());
                }
                _ => self.entry(&inside)?,
            }
        }
        Ok(())
    }

    pub fn digits(self) -> String {
        model::Digest::from(<[u8; 32]>::from(self.0.finalize())).to_string()
    }
}

fn hash_of(path: &Path) -> io::Result<[u8; 32]> {
    let (mut file, mut hash, mut buffer) = (File::open(path)?, Sha256::new(), vec![0; READ_BYTES]);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hash.finalize().into()),
            Ok(count) => hash.update(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn step(directory: &Path, inputs: &[&str]) -> Preparation {
        Preparation {
            name: "data".to_owned(),
            command: vec!["make".to_owned(), "{output}".to_owned()],
            directory: directory.to_owned(),
            env: [("SIZE".to_owned(), "2".to_owned())].into(),
            inputs: inputs.iter().map(|input| (*input).to_owned()).collect(),
            space_bytes: None,
            timeout: Duration::from_secs(1),
            mark: None,
        }
    }

    fn key(step: &Preparation) -> Result<String, Error> {
        super::key(step, &BTreeMap::new())
    }

    /// A checkout with a generator and a folder of two files.
    fn checkout() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("src")).unwrap();
        for (name, text) in [("make.js", "1"), ("src/a", "2"), ("src/b", "3")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    #[test]
    fn whatever_data_is_made_from_changes_its_key_and_nothing_else_does() {
        let inputs = ["make.js", "src"];
        let (one, other) = (checkout(), checkout());
        let first = key(&step(one.path(), &inputs)).unwrap();
        assert_eq!(first.len(), 64);
        fs::write(other.path().join("unnamed"), "x").unwrap();
        assert_eq!(
            key(&step(other.path(), &inputs)).unwrap(),
            first,
            "where it lies does not count"
        );
        std::os::unix::fs::symlink("..", other.path().join("src/up")).unwrap();
        let mut keys = vec![first, key(&step(other.path(), &inputs)).unwrap()];
        let mut changed = |change: &dyn Fn(&mut Preparation)| {
            let mut step = step(one.path(), &inputs);
            change(&mut step);
            keys.push(key(&step).unwrap());
        };
        changed(&|step| step.command = vec!["make".to_owned(), "{output}/x".to_owned()]);
        changed(&|step| step.command = vec!["make{output}".to_owned()]);
        changed(&|step| _ = step.env.insert("SIZE".to_owned(), "3".to_owned()));
        changed(&|step| _ = step.inputs.pop());
        changed(&|_| fs::write(one.path().join("src/b"), "4").unwrap());
        changed(&|_| fs::rename(one.path().join("src/b"), one.path().join("src/c")).unwrap());
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count);
    }

    #[test]
    fn without_inputs_the_directory_counts_and_a_missing_input_is_named() {
        let (one, other) = (checkout(), checkout());
        assert_ne!(
            key(&step(one.path(), &[])).unwrap(),
            key(&step(other.path(), &[])).unwrap()
        );
        let error = key(&step(one.path(), &["gone.js"]))
            .unwrap_err()
            .to_string();
        let told = "prepare.data: cannot read its input ";
        assert!(
            error.starts_with(told) && error.contains("gone.js"),
            "{error}"
        );
    }
}
