//! What lies in a record's folder, with sizes. Links are not followed: they lead out of it.

use std::fs;
use std::path::Path;

/// Files and folders by name, folders with a stroke behind their names and all that is below them.
pub fn files(directory: &Path) -> Vec<(String, u64)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let one = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = if is_folder { name + "/" } else { name };
        (name, size(&entry.path()))
    };
    let mut files: Vec<(String, u64)> = entries.map(one).collect();
    files.sort();
    files
}

fn size(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    if !metadata.is_dir() {
        return metadata.len();
    }
    fs::read_dir(path).into_iter().flatten().flatten().map(|entry| size(&entry.path())).sum()
}
