//! Profiles of a record as values: the one place where explaining meets the readers of formats.
//!
//! Whoever explains asks for it as a trait, so that its arithmetic is tested with trees whose shares are known. It computes nothing.

use std::collections::BTreeMap;

use record::ProfileFile;

use crate::{
    CpuProfile, Cut, HeapProfile, Naming, NativeProfile, NativeStack, Source, Tree, Window, cpu_tree,
    heap_tree, native_tree,
};

/// What a thread did, by the kernel's sampling.
#[derive(Debug, Clone)]
pub(crate) struct ThreadTree {
    /// Its number.
    pub thread: u32,
    /// Its tree.
    pub tree: Tree,
}

/// Gives profiles; errors are complete texts.
pub(crate) trait Profiles {
    /// A profile of CPU within a window of nanoseconds of CLOCK_MONOTONIC.
    fn cpu(&self, file: &ProfileFile, window: Window, directory: &str) -> Result<Cut, String>;

    /// A native profile, thread by thread, and what makes it poorer than it could be.
    fn native(&self, file: &ProfileFile, directory: &str) -> Result<(Vec<ThreadTree>, Vec<String>), String>;

    /// A profile of the heap, in bytes.
    fn heap(&self, file: &ProfileFile, directory: &str) -> Result<Tree, String>;
}

/// The profiles that a source has.
pub(crate) struct Opened<'a>(pub &'a dyn Source);

impl Opened<'_> {
    fn bytes(&self, file: &ProfileFile) -> Result<Vec<u8>, String> {
        self.0.file(&file.path)
    }
}

impl Profiles for Opened<'_> {
    fn cpu(&self, file: &ProfileFile, window: Window, directory: &str) -> Result<Cut, String> {
        let profile =
            CpuProfile::read(&self.bytes(file)?).map_err(|error| format!("{}: {error}", file.path))?;
        Ok(cpu_tree(&profile, Some(window), &Naming { directory, source: self.0 }))
    }

    fn native(&self, file: &ProfileFile, directory: &str) -> Result<(Vec<ThreadTree>, Vec<String>), String> {
        let mut profile =
            NativeProfile::read(&self.bytes(file)?).map_err(|error| format!("{}: {error}", file.path))?;
        let naming = Naming { directory, source: self.0 };
        let notes = native_tree(&profile, &naming).notes;
        let mut by_thread: BTreeMap<u32, Vec<NativeStack>> = BTreeMap::new();
        for stack in std::mem::take(&mut profile.stacks) {
            by_thread.entry(stack.thread).or_default().push(stack);
        }
        let of_thread = |(thread, stacks): (u32, Vec<NativeStack>)| {
            let alone = NativeProfile { stacks, ..profile.clone() };
            ThreadTree { thread, tree: native_tree(&alone, &naming).tree }
        };
        Ok((by_thread.into_iter().map(of_thread).collect(), notes))
    }

    fn heap(&self, file: &ProfileFile, directory: &str) -> Result<Tree, String> {
        let profile =
            HeapProfile::read(&self.bytes(file)?).map_err(|error| format!("{}: {error}", file.path))?;
        Ok(heap_tree(&profile, &Naming { directory, source: self.0 }))
    }
}
