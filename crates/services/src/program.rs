//! Programs of this machine: where they are searched, and the error for a missing one.

use std::env;
use std::path::Path;

use rustix::fs::{Access, access};

use crate::Error;

/// Search path if there is no `PATH`.
const PATH_DEFAULT: &str = "/usr/local/bin:/usr/bin:/bin";

/// Search path for programs: the service's `own` PATH, or the inherited one.
pub(crate) fn search_path(own: Option<&String>) -> String {
    let inherited = || env::var_os("PATH").map(|path| path.to_string_lossy().into_owned());
    own.cloned()
        .or_else(inherited)
        .unwrap_or_else(|| PATH_DEFAULT.to_owned())
}

/// Whether this is an executable file.
pub(crate) fn executable(file: &Path) -> bool {
    file.is_file() && access(file, Access::EXEC_OK).is_ok()
}

/// Error for a missing program: where it was searched, and for common programs how to install it.
pub(crate) fn not_found(service: &str, program: &str, searched: &str) -> Error {
    let install = match program {
        "nginx" => "; on Debian and Ubuntu `apt-get install nginx` installs it",
        "haproxy" => "; on Debian and Ubuntu `apt-get install haproxy` installs it",
        "docker" => "; docs.docker.com/engine/install says how to install it; podman does as well",
        "podman" => "; on Debian and Ubuntu `apt-get install podman` installs it",
        "node" | "npm" | "npx" => {
            "; install Node.js 20 or newer from nodejs.org or with your system's packages"
        }
        _ => "",
    };
    Error::of(service, format!("command not found: {program}"))
        .help(format!("looked for it in {searched}{install}"))
}
