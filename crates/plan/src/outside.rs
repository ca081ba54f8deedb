//! External files: found, opened without blocking, and read with a size limit. Independent of their contents.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use ::model::quantity;

/// The absolute path, or why no file of this kind exists there.
pub(crate) fn found(
    path: &Path,
    is_wanted: fn(&Path) -> bool,
    otherwise: &str,
) -> Result<PathBuf, String> {
    match path.canonicalize() {
        Ok(path) if is_wanted(&path) => Ok(path),
        Ok(_) => Err(otherwise.to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => Err("it does not exist".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Opens a regular file. Others are rejected: a pipe without a writer would block forever, and a device never
/// ends.
///
/// # Errors
/// The error of the system, or the kind of file.
pub fn open_file(path: &Path) -> io::Result<File> {
    let kind = fs::metadata(path)?.file_type();
    let what = match () {
        () if kind.is_file() => return File::open(path),
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    };
    Err(io::Error::new(
        ErrorKind::InvalidInput,
        format!("it is {what}, not a file"),
    ))
}

/// Reads a file of at most `bytes_max` bytes.
///
/// # Errors
/// As [`open_file`], and [`ErrorKind::FileTooLarge`].
pub fn read_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_opened(open_file(path)?, bytes_max)
}

/// Reads a file that the user named, which may be a pipe.
///
/// # Errors
/// The error of the system, and [`ErrorKind::FileTooLarge`].
pub fn read_given(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_opened(File::open(path)?, bytes_max)
}

/// The bytes of an opened file that has no more of them than this.
///
/// # Errors
/// Errors of the system, and [`ErrorKind::FileTooLarge`].
pub fn read_opened(file: File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let mut bytes = Vec::with_capacity(usize::try_from(length.min(bytes_max)).unwrap_or(0));
    let read = if length > bytes_max {
        length
    } else {
        file.take(bytes_max + 1).read_to_end(&mut bytes)? as u64
    };
    if read > bytes_max {
        let (is, most) = (
            quantity::bytes(read as f64),
            quantity::bytes(bytes_max as f64),
        );
        let message = format!("{is}, at most {most} are read");
        return Err(io::Error::new(ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// Reads a file as text.
///
/// # Errors
/// As [`read_file`], and if it is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let text = String::from_utf8(read_file(path, bytes_max)?);
    text.map_err(|error| {
        io::Error::new(
            ErrorKind::InvalidData,
            format!("it is not UTF-8: {}", error.utf8_error()),
        )
    })
}
