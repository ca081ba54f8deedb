//! The tree in memory: all our files with path and text, and Rust files parsed. Reads the disk once and does
//! not judge files.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

use super::TidyFinding;
use super::code::ParsedCode;

/// Folders at any depth that contain nothing written here.
const FOREIGN_FOLDERS: [&str; 2] = [".git", "node_modules"];

/// Output folders by their full path, because for example `crates/services` is source code.
const OUTPUT_FOLDERS: [&str; 7] = [
    "target",
    "records",
    "web/dist",
    "fuzz/target",
    "fuzz/seeds",
    "fuzz/corpus",
    "fuzz/artifacts",
];

/// All files of the repository, by path.
pub struct SourceTree {
    files: Vec<File>,
}

/// One file. The path is relative to the root, with `/`. The text is empty if the file is not UTF-8.
pub struct File {
    pub path: String,
    pub text: String,
    /// The parsed code of a `.rs` file.
    pub code: Option<syn::Result<ParsedCode>>,
    /// Whether the file is test-only, by its path or because it is declared as `#[cfg(test)] mod`.
    pub is_test: bool,
}

impl File {
    fn new(path: String, text: String) -> Self {
        let code = path.ends_with(".rs").then(|| ParsedCode::parse(&text));
        let is_test = is_test_path(&path);
        Self {
            path,
            text,
            code,
            is_test,
        }
    }

    /// Creates a finding for this line.
    pub fn finding(&self, line: usize, what: String, remedy: &'static str) -> TidyFinding {
        TidyFinding {
            path: self.path.clone(),
            line,
            what,
            remedy,
        }
    }

    /// Creates a finding for the line at this byte offset.
    pub fn finding_at(&self, offset: usize, what: String, remedy: &'static str) -> TidyFinding {
        self.finding(self.text[..offset].matches('\n').count() + 1, what, remedy)
    }

    /// The last component of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The part of the name after its last dot, if any.
    pub fn extension(&self) -> Option<&str> {
        self.name().rsplit_once('.').map(|(_, extension)| extension)
    }

    /// Whether the file is below a folder named `name`.
    pub fn is_below(&self, name: &str) -> bool {
        self.path.split('/').rev().skip(1).any(|part| part == name)
    }

    /// The parsed code, if this is a Rust file that parses.
    pub fn parsed(&self) -> Option<&ParsedCode> {
        self.code.as_ref().and_then(|code| code.as_ref().ok())
    }
}

impl SourceTree {
    /// Reads all files below `root` except version control, installed packages and output.
    pub fn read(root: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        read_folder(root, "", &mut files)?;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        mark_test_modules(&mut files);
        Ok(Self { files })
    }

    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// The file at exactly this path.
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether a file or folder with this path exists. The empty path is the root.
    pub fn has(&self, path: &str) -> bool {
        path.is_empty()
            || self.files.iter().any(|file| {
                file.path
                    .strip_prefix(path)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
    }
}

fn read_folder(folder: &Path, prefix: &str, files: &mut Vec<File>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let (path, kind) = (format!("{prefix}{name}"), entry.file_type()?);
        if kind.is_dir() {
            if !FOREIGN_FOLDERS.contains(&&*name) && !OUTPUT_FOLDERS.contains(&&*path) {
                read_folder(&entry.path(), &format!("{path}/"), files)?;
            }
        } else {
            // Symbolic links are listed but not followed. Their targets are read at their own paths.
            let bytes = if kind.is_file() {
                fs::read(entry.path())?
            } else {
                Vec::new()
            };
            files.push(File::new(
                path,
                String::from_utf8(bytes).unwrap_or_default(),
            ));
        }
    }
    Ok(())
}

fn is_test_path(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let in_test_folder = folders
        .split('/')
        .any(|folder| folder == "tests" || folder == "test");
    in_test_folder || name == "tests.rs" || name.contains(".test.")
}

/// Marks the files of modules that their parent declares under `#[cfg(test)]`, and of modules below them.
fn mark_test_modules(files: &mut [File]) {
    let of_file = |file: &File| {
        let folder = module_folder(&file.path);
        let modules = file
            .parsed()
            .into_iter()
            .flat_map(|code| &code.test_modules);
        modules
            .map(|module| format!("{folder}{module}"))
            .collect::<Vec<_>>()
    };
    let stems: BTreeSet<String> = files.iter().flat_map(of_file).collect();
    for file in files {
        file.is_test |= stems.iter().any(|stem| {
            file.path
                .strip_prefix(stem)
                .is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        });
    }
}

/// The folder of a file's child modules, with its final `/`.
fn module_folder(path: &str) -> String {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    match name {
        "lib.rs" | "main.rs" | "mod.rs" => format!("{folder}/"),
        _ => format!("{}/", path.trim_end_matches(".rs")),
    }
}
