//! Printing that survives a closed terminal: stdout is data, stderr is talk, and neither may end the program.

use std::io::{self, Write};

use anstream::AutoStream;

/// Columns of text that goes to no terminal.
pub const WIDTH: usize = 100;

/// Columns of the terminal on stdout, within what can be read; [`WIDTH`] where it is none.
pub fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    size.map_or(WIDTH, |size| usize::from(size.ws_col).clamp(60, 140))
}

/// Prints data on stdout, colours only where it is a terminal.
///
/// # Errors
/// If stdout cannot be written, but for a reader that went away: `| head` is no error.
pub fn data(text: &str) -> io::Result<()> {
    let mut out = AutoStream::auto(io::stdout().lock());
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Prints talk on stderr. A stderr that is gone is no reason to stop measuring.
pub fn talk(text: &str) {
    let mut err = AutoStream::auto(io::stderr().lock());
    let _ = writeln!(err, "{text}");
}

/// Tells an error.
pub fn error(message: &str) {
    talk(&format!("\x1b[1;31merror\x1b[0m: {message}"));
}

/// Tells what to do about it.
pub fn hint(message: &str) {
    talk(&format!("\x1b[1;36m hint\x1b[0m: {message}"));
}
