//! The files of /proc and /sys that describe a machine, as text by path: read from this machine on request,
//! or stored from another.
//!
//! A missing file is not an error: the kernel does not have this feature. This module does not interpret the
//! texts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::process::{field, names};

const HEADING: &str = "== ";

/// Text by absolute path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts {
    /// `None` means this machine's files.
    kept: Option<BTreeMap<String, String>>,
}

impl Texts {
    /// Texts of this machine.
    pub fn look() -> Texts {
        Texts { kept: None }
    }

    /// Parses the stored texts of a machine: each file below a line `== PATH`.
    pub fn kept(text: &str) -> Texts {
        let mut files: BTreeMap<String, String> = BTreeMap::new();
        let mut path = None;
        for line in text.lines() {
            if let Some(next) = line.strip_prefix(HEADING) {
                files.entry(next.trim().to_owned()).or_default();
                path = Some(next.trim());
            } else if let Some(file) = path.and_then(|path| files.get_mut(path)) {
                *file += &format!("{line}\n");
            }
        }
        Texts { kept: Some(files) }
    }

    /// The same stored machine with one text replaced.
    #[must_use]
    pub fn with(mut self, path: &str, text: &str) -> Texts {
        self.kept
            .get_or_insert_default()
            .insert(path.to_owned(), text.to_owned());
        self
    }

    pub(crate) fn get(&self, path: &str) -> Option<String> {
        match &self.kept {
            Some(files) => files.get(path).cloned(),
            None => fs::read(path)
                .ok()
                .map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Its first line.
    pub(crate) fn line(&self, path: &str) -> Option<String> {
        Some(self.get(path)?.lines().next()?.trim().to_owned())
    }

    /// Its leading number.
    pub(crate) fn number(&self, path: &str) -> Option<i64> {
        self.line(path)?
            .split_ascii_whitespace()
            .next()?
            .parse()
            .ok()
    }

    /// The text after `name` and a colon, in the first line that begins with them.
    pub(crate) fn field(&self, path: &str, name: &str) -> Option<String> {
        field(&self.get(path)?, name).map(str::to_owned)
    }

    /// The names in a folder.
    pub(crate) fn inside(&self, folder: &str) -> BTreeSet<String> {
        let below = |path: &str| {
            Some(
                path.strip_prefix(folder)?
                    .strip_prefix('/')?
                    .split('/')
                    .next()?
                    .to_owned(),
            )
        };
        match &self.kept {
            Some(files) => files.keys().filter_map(|path| below(path)).collect(),
            None => {
                let names = names(Path::new(folder)).unwrap_or_default().into_iter();
                names.filter_map(|name| name.into_string().ok()).collect()
            }
        }
    }

    /// The first line of this file in each subfolder of `folder` that has it.
    pub(crate) fn of_each(&self, folder: &str, file: &str) -> impl Iterator<Item = String> {
        let inside = self.inside(folder).into_iter();
        inside.filter_map(move |name| self.line(&format!("{folder}/{name}/{file}")))
    }
}
