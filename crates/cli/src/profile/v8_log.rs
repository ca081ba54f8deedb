//! V8's own log, which `node --prof` writes: made readable by the `node` that is installed. It starts that and nothing else.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use crate::exit::{Failed, SELF};
use crate::explanation::PROFILE_BYTES_MAX;
use crate::print;

/// Every such log begins with this.
const BEGIN: &[u8] = b"v8-version,";
/// Longest that node may take to read one.
const PATIENCE: Duration = Duration::from_secs(30 * 60);

/// Whether a file is such a log: by its beginning, or by the name that V8 gives it.
pub fn is_one(path: &Path, text: &[u8]) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    text.starts_with(BEGIN) || name.starts_with("isolate") && name.ends_with(".log")
}

/// What `node --prof-process --preprocess` makes of it: JSON.
///
/// # Errors
/// If there is no node, or it cannot make anything of the file.
pub fn preprocessed(path: &Path) -> Result<Vec<u8>, Failed> {
    let name = path.display();
    // Absolute, for a name that begins with a dash is none of node's flags.
    let absolute = path.canonicalize().map_err(|error| Failed::usage(format!("{name}: {error}")))?;
    print::talk(&format!("{name}: a log of V8; node --prof-process reads it"));
    let mut command = Command::new("node");
    command.args(["--prof-process", "--preprocess"]).arg(absolute);
    // What others preload into Node.js has no business here.
    command.env_remove("NODE_OPTIONS");
    let ran = machine::run_keeping(&mut command, PATIENCE, PROFILE_BYTES_MAX as usize + 1);
    let ran = ran.map_err(|error| not_started(path, &error))?;
    let late =
        || Failed::usage(format!("{name}: node --prof-process took over {} min", PATIENCE.as_secs() / 60));
    let Output { status, stdout: text, .. } = ran.ok_or_else(late)?;
    let over = text.len() as u64 > PROFILE_BYTES_MAX;
    if over {
        let limit = report::bytes(PROFILE_BYTES_MAX as f64);
        return Err(Failed::usage(format!(
            "{name}: node makes more than {limit} of it, which is more than is read"
        )));
    }
    if !status.success() || text.is_empty() {
        return Err(Failed::usage(format!("{name}: node --prof-process cannot read it ({status})")).hint(
            "the log must be whole, and of the same Node.js as the one that is installed: node --version",
        ));
    }
    Ok(text)
}

fn not_started(path: &Path, error: &io::Error) -> Failed {
    let name = path.display();
    let message = match error.kind() {
        io::ErrorKind::NotFound => {
            format!("{name}: a log of V8, which takes `node` to read, and there is none")
        }
        _ => format!("{name}: node cannot be started: {error}"),
    };
    let hint = format!(
        "install Node.js; or where there is one: node --prof-process --preprocess {name} > v8.json, and give v8.json here"
    );
    Failed::new(SELF, message).hint(hint)
}
