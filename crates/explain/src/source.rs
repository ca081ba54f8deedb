//! What an explanation asks of the outside: files of the record, and of the services where they still are.
//!
//! Everything may be missing, on another machine for example; then names are poorer, and figures the same.

/// Gives files to whoever explains.
pub trait Source {
    /// The bytes of a file of the record, by its path relative to it.
    ///
    /// # Errors
    /// If it cannot be read; the text is complete.
    fn file(&self, path: &str) -> Result<Vec<u8>, String>;

    /// The version of the package in this absolute folder, as its package.json has it.
    fn version(&self, folder: &str) -> Option<String>;

    /// The source map that belongs to this absolute path of a script, inline ones included.
    fn source_map(&self, script: &str) -> Option<Vec<u8>>;
}
