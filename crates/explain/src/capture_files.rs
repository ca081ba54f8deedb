//! Access to the files that explanations need.

/// Access to files of the record and of the services. All may be missing, for example on another machine.
/// Names are then less precise, and figures are the same.
pub trait CaptureFiles {
    /// Reads a file of the record, by its path relative to it.
    ///
    /// # Errors
    /// Returns a complete message if it cannot be read.
    fn file(&self, path: &str) -> Result<Vec<u8>, String> {
        Err(format!("{path}: nothing is here"))
    }

    /// The version of the package in this absolute folder, from its package.json.
    fn version(&self, _folder: &str) -> Option<String> {
        None
    }

    /// The source map of a script, given by its absolute path. Also returns the absolute path of the file
    /// with the map, to which sources are relative. For inline maps this is the script.
    fn source_map(&self, _script: &str) -> Option<(Vec<u8>, String)> {
        None
    }
}

/// An empty source.
impl CaptureFiles for () {}
