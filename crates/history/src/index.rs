//! The index on disk: one table, a row a record. What cannot be read of it is told, and never believed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use analysis::Essentials;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior, params};

/// What SQLite keeps in a file's header to tell whose it is: "prld".
const APPLICATION: i32 = 0x7072_6c64;
/// Version of the table below. An older one is made anew, a newer one is left alone.
const SCHEMA: i32 = 1;
/// How long to wait for another process that is writing.
const BUSY: Duration = Duration::from_secs(5);

/// The columns beside `essentials` are for people who look into it with sqlite3.
const TABLE: &str = "
CREATE TABLE IF NOT EXISTS records (
    name         TEXT PRIMARY KEY,  -- the folder's
    mark         TEXT NOT NULL,     -- size and time of change of its files
    concluded_by TEXT NOT NULL,     -- version of Proofload, and of what it concludes
    created      TEXT NOT NULL,
    experiment   TEXT,
    wrong        TEXT,              -- why it cannot be read
    essentials   TEXT               -- JSON
) STRICT";

/// What the index says of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// As [`crate::scan::Folder::mark`].
    pub mark: String,
    /// Who concluded it.
    pub concluded_by: String,
    /// As [`crate::Entry::created`].
    pub created: String,
    /// As [`crate::Entry::found`].
    pub found: Result<Box<Essentials>, String>,
}

/// Why the index cannot be used.
#[derive(Debug)]
pub enum Trouble {
    /// It is damaged, or something else: it may be made anew.
    Sick(String),
    /// It is a newer Proofload's, or cannot be opened or written here: it is left as it is.
    Unusable(String),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Trouble {
        use rusqlite::Error::{
            FromSqlConversionFailure, InvalidColumnName, InvalidColumnType, SqlInputError,
        };
        let code = error.sqlite_error_code();
        let sick =
            matches!(code, Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::Unknown))
                || matches!(
                    error,
                    FromSqlConversionFailure(..)
                        | InvalidColumnName(_)
                        | InvalidColumnType(..)
                        | SqlInputError { .. }
                );
        if sick { Trouble::Sick(error.to_string()) } else { Trouble::Unusable(error.to_string()) }
    }
}

/// An open index.
#[derive(Debug)]
pub struct Index(Connection);

impl Index {
    /// Opens the index at a path, or makes it where there is none.
    ///
    /// # Errors
    /// If it is no index, one of another form, or cannot be opened.
    pub fn open(path: &Path) -> Result<Index, Trouble> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY)?;
        match whose(&connection)? {
            (APPLICATION, SCHEMA) => {}
            (APPLICATION, newer) if newer > SCHEMA => {
                return Err(Trouble::Unusable(format!(
                    "its form {newer} is newer than the newest known here, {SCHEMA}"
                )));
            }
            (APPLICATION, older) => {
                return Err(Trouble::Sick(format!("its form {older} is older than {SCHEMA}")));
            }
            (0, 0) if is_empty(&connection)? => make(&mut connection)?,
            _ => return Err(Trouble::Sick("it is a database, but no index of records".to_owned())),
        }
        Ok(Index(connection))
    }

    /// Every row that can be read, by name. One that cannot is left out: its record is concluded again.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn rows(&self) -> Result<BTreeMap<String, Row>, Trouble> {
        let mut all =
            self.0.prepare("SELECT name, mark, concluded_by, created, wrong, essentials FROM records")?;
        let mut rows = all.query([])?;
        let mut found = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let (wrong, essentials): (Option<String>, Option<String>) = (row.get(4)?, row.get(5)?);
            let essentials = essentials.and_then(|text| serde_json::from_str(&text).ok());
            let content = match (essentials, wrong) {
                (Some(essentials), _) => Ok(Box::new(essentials)),
                (None, Some(wrong)) => Err(wrong),
                (None, None) => continue,
            };
            let kept =
                Row { mark: row.get(1)?, concluded_by: row.get(2)?, created: row.get(3)?, found: content };
            found.insert(row.get(0)?, kept);
        }
        Ok(found)
    }

    /// Keeps some rows, all or none of them. Another process may have kept the same meanwhile.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn keep(&mut self, rows: &[(&str, &Row)]) -> Result<(), Trouble> {
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut statement =
            transaction.prepare("INSERT OR REPLACE INTO records VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
        for (name, row) in rows {
            let essentials = row.found.as_deref().ok();
            // Plain values with text keys cannot fail to become JSON.
            let json = essentials.map(|essentials| serde_json::to_string(essentials).unwrap_or_default());
            statement.execute(params![
                name,
                row.mark,
                row.concluded_by,
                row.created,
                essentials.map(|essentials| &essentials.experiment),
                row.found.as_ref().err(),
                json,
            ])?;
        }
        drop(statement);
        Ok(transaction.commit()?)
    }

    /// Forgets records that are gone.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn forget(&mut self, names: &[String]) -> Result<(), Trouble> {
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for name in names {
            transaction.execute("DELETE FROM records WHERE name = ?1", [name])?;
        }
        Ok(transaction.commit()?)
    }
}

/// Puts what stands at the path aside, so that an index can be made there, and gives the name it has now.
///
/// Two processes may find the same damage. The folder is locked meanwhile, and whoever comes second finds an index that is sound and
/// leaves it, unless it is `sure`.
///
/// # Errors
/// If it cannot be renamed.
pub fn put_aside(path: &Path, sure: bool) -> std::io::Result<Option<String>> {
    let folder = path.parent().map(File::open).transpose()?;
    // Without locks both put it aside; then the second loses rows, which are made again.
    let _ = folder.as_ref().map(File::lock);
    if !sure
        && let Ok(index) = Index::open(path)
        && index.rows().is_ok()
    {
        return Ok(None);
    }
    let aside = path.with_extension("sqlite.old");
    fs::rename(path, &aside)?;
    // A journal belongs to the file that was there, and would be played back into the new one.
    for journal in ["-journal", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(journal);
        let _ = fs::remove_file(name);
    }
    Ok(aside.file_name().map(|name| name.to_string_lossy().into_owned()))
}

fn whose(connection: &Connection) -> rusqlite::Result<(i32, i32)> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get(0));
    Ok((pragma("application_id")?, pragma("user_version")?))
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(tables == 0)
}

/// In one transaction: a second process sees all of it or nothing, and then makes the same.
fn make(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(TABLE)?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", SCHEMA)?;
    transaction.commit()
}
