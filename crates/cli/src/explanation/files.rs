//! Files for whoever explains: of the record, and of services where they still are. It reads, with limits, and never follows a name
//! out of a record or onto a network.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use explain::Source;

/// The largest profile that is read. Half an hour of a busy process at a sample a millisecond has less.
pub const PROFILE_BYTES_MAX: u64 = 512 << 20;
/// The largest package.json, script and source map.
const PACKAGE_BYTES_MAX: u64 = 4 << 20;
const SCRIPT_BYTES_MAX: u64 = 64 << 20;
const MAP_BYTES_MAX: u64 = 128 << 20;
/// What a script says in front of the place of its source map.
const MAPPING: &str = "sourceMappingURL=";

/// The files of a record's folder, and those of the machine for names.
#[derive(Debug)]
pub struct Files {
    directory: PathBuf,
}

impl Files {
    /// Those of this folder.
    pub fn of(directory: &Path) -> Files {
        Files { directory: directory.to_owned() }
    }
}

impl Source for Files {
    fn file(&self, path: &str) -> Result<Vec<u8>, String> {
        // A record may come from anywhere: what it names lies in its folder, or is not read.
        let inside = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if !inside || path.is_empty() {
            return Err(format!("{path}: lies outside of the record"));
        }
        let file = self.directory.join(path);
        let real = |file: &Path| file.canonicalize().map_err(|error| format!("{path}: {error}"));
        if !real(&file)?.starts_with(real(&self.directory)?) {
            return Err(format!("{path}: a link leads out of the record"));
        }
        plan::read_file(&file, PROFILE_BYTES_MAX).map_err(|error| format!("{path}: {error}"))
    }

    fn version(&self, folder: &str) -> Option<String> {
        let folder = Path::new(folder);
        let text = folder
            .is_absolute()
            .then(|| plan::read_file(&folder.join("package.json"), PACKAGE_BYTES_MAX).ok())??;
        let package: serde_json::Value = serde_json::from_slice(&text).ok()?;
        Some(package["version"].as_str()?.to_owned())
    }

    fn source_map(&self, script: &str) -> Option<Vec<u8>> {
        let script = Path::new(script.strip_prefix("file://").unwrap_or(script));
        if !script.is_absolute() {
            return None;
        }
        let text = plan::read_file(script, SCRIPT_BYTES_MAX).ok()?;
        let text = String::from_utf8_lossy(&text);
        let (_, named) = text.rsplit_once(MAPPING)?;
        let named = named.split(|c: char| c.is_whitespace() || matches!(c, '\'' | '"' | '*')).next()?;
        match named.strip_prefix("data:") {
            Some(data) => {
                let (form, data) = data.split_once(',')?;
                form.ends_with(";base64").then(|| STANDARD.decode(data).ok())?
            }
            // Nothing is fetched from anywhere.
            None if named.is_empty() || named.contains("://") => None,
            None => plan::read_file(&script.parent()?.join(named), MAP_BYTES_MAX).ok(),
        }
    }
}

/// A file's bytes, if it is a file and not larger than this. Pipes are read as well, for they are given by hand.
///
/// # Errors
/// What the system says; a folder and a size beyond the limit are errors too.
pub fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    if about.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "is a folder"));
    }
    let too_large = |bytes: u64| {
        let (is, limit) = (report::bytes(bytes as f64), report::bytes(limit as f64));
        io::Error::new(io::ErrorKind::FileTooLarge, format!("{is}, at most {limit} are read"))
    };
    if about.len() > limit {
        return Err(too_large(about.len()));
    }
    let mut text = Vec::with_capacity(usize::try_from(about.len()).unwrap_or(0));
    file.take(limit + 1).read_to_end(&mut text)?;
    if text.len() as u64 > limit { Err(too_large(text.len() as u64)) } else { Ok(text) }
}
