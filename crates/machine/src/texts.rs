//! The files of /proc and /sys that tell about a machine, as text by path: this machine's when they are asked for, or kept from another.
//!
//! A file that is not there is no error: it tells that the kernel has no such thing. It must not understand what it reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::process::{field, names};

const HEADING: &str = "== ";

/// Text by absolute path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texts {
    /// `None`: this machine's.
    kept: Option<BTreeMap<String, String>>,
}

impl Texts {
    /// This machine's.
    pub fn look() -> Texts {
        Texts { kept: None }
    }

    /// What was kept of a machine: each file below a line `== PATH`.
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

    /// The same kept machine with another text in one place.
    #[must_use]
    pub fn with(mut self, path: &str, text: &str) -> Texts {
        self.kept.get_or_insert_default().insert(path.to_owned(), text.to_owned());
        self
    }

    pub(crate) fn get(&self, path: &str) -> Option<String> {
        match &self.kept {
            Some(files) => files.get(path).cloned(),
            None => fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// Its first line.
    pub(crate) fn line(&self, path: &str) -> Option<String> {
        Some(self.get(path)?.lines().next()?.trim().to_owned())
    }

    /// The number that it begins with.
    pub(crate) fn number(&self, path: &str) -> Option<i64> {
        self.line(path)?.split_ascii_whitespace().next()?.parse().ok()
    }

    /// What follows `name` and a colon, in the first line that begins so.
    pub(crate) fn field(&self, path: &str, name: &str) -> Option<String> {
        field(&self.get(path)?, name).map(str::to_owned)
    }

    /// What is in a folder, by name.
    pub(crate) fn inside(&self, folder: &str) -> BTreeSet<String> {
        let below =
            |path: &str| Some(path.strip_prefix(folder)?.strip_prefix('/')?.split('/').next()?.to_owned());
        match &self.kept {
            Some(files) => files.keys().filter_map(|path| below(path)).collect(),
            None => {
                let names = names(Path::new(folder)).unwrap_or_default().into_iter();
                names.filter_map(|name| name.into_string().ok()).collect()
            }
        }
    }

    /// The first line of this file in each folder inside of `folder` that has it.
    pub(crate) fn of_each(&self, folder: &str, file: &str) -> impl Iterator<Item = String> {
        let inside = self.inside(folder).into_iter();
        inside.filter_map(move |name| self.line(&format!("{folder}/{name}/{file}")))
    }
}
