//! The pages that people read, and the calls of proofload in them. Must not: judge them.

use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Each page with its path and text.
pub fn pages() -> Vec<(PathBuf, String)> {
    let mut folders = vec![Path::new(ROOT).join("docs")];
    let mut paths: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "npm/README.md"]
        .map(|name| Path::new(ROOT).join(name))
        .into();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of pages").flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path if path.extension().is_some_and(|it| it == "md") => paths.push(path),
                _ => {}
            }
        }
    }
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a page");
        (path, text)
    };
    paths.into_iter().map(read).collect()
}

/// The lines of a page's blocks of shell, and the words in backticks outside of all blocks.
pub fn shell_and_codes(page: &str) -> (Vec<String>, Vec<String>) {
    let (mut shell, mut codes) = (Vec::new(), Vec::new());
    for (place, part) in page.split("```").enumerate() {
        if place % 2 == 0 {
            codes.extend(part.split('`').skip(1).step_by(2).map(str::to_owned));
        } else if let Some(script) = part.strip_prefix("sh\n") {
            shell.extend(script.replace("\\\n", " ").lines().map(str::to_owned));
        }
    }
    (shell, codes)
}
