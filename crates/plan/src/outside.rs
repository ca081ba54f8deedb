//! Files that others made: looked for, opened without waiting, and read with a limit. It knows nothing of what is in them.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use ::model::quantity;

/// What is at a path, made absolute, or why nothing of this kind is there.
pub(crate) fn found(path: &Path, is_wanted: fn(&Path) -> bool, otherwise: &str) -> Result<PathBuf, String> {
    match path.canonicalize() {
        Ok(path) if is_wanted(&path) => Ok(path),
        Ok(_) => Err(otherwise.to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => Err("it does not exist".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Opens a file. Nothing else is opened: a pipe without a writer would wait for ever, and a device never ends.
///
/// # Errors
/// What the system says, or what it is instead of a file.
pub fn open_file(path: &Path) -> io::Result<File> {
    let kind = fs::metadata(path)?.file_type();
    let what = match () {
        () if kind.is_file() => return File::open(path),
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Err(io::Error::new(ErrorKind::InvalidInput, format!("it is {what}, not a file")))
}

/// The bytes of a file that has no more of them than this.
///
/// # Errors
/// As [`open_file`], and [`ErrorKind::FileTooLarge`].
pub fn read_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_opened(open_file(path)?, bytes_max)
}

/// The same of what may be a pipe, for it is given by hand.
///
/// # Errors
/// What the system says, and [`ErrorKind::FileTooLarge`].
pub fn read_given(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_opened(File::open(path)?, bytes_max)
}

/// The bytes of an opened file that has no more of them than this.
///
/// # Errors
/// What the system says, and [`ErrorKind::FileTooLarge`].
pub fn read_opened(file: File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let mut bytes = Vec::with_capacity(usize::try_from(length.min(bytes_max)).unwrap_or(0));
    let read =
        if length > bytes_max { length } else { file.take(bytes_max + 1).read_to_end(&mut bytes)? as u64 };
    if read > bytes_max {
        let (is, most) = (quantity::bytes(read as f64), quantity::bytes(bytes_max as f64));
        let message = format!("{is}, at most {most} are read");
        return Err(io::Error::new(ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// The same as text.
///
/// # Errors
/// As [`read_file`], and where it is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let text = String::from_utf8(read_file(path, bytes_max)?);
    text.map_err(|error| {
        io::Error::new(ErrorKind::InvalidData, format!("it is not UTF-8: {}", error.utf8_error()))
    })
}
