//! Native stacks of services in a window of load: sampled by `explain::perf`, written where the record keeps profiles.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use explain::NativeProfile;
use explain::perf::{PerfError, Sampler};
use model::{Absence, CaptureKind, CapturedService, Missing, ProfileFile};

use super::Folder;

/// A little more than a millisecond of CPU time, so as not to keep step with what happens every one.
const PERIOD: Duration = Duration::from_micros(1001);

/// What came of it, by process.
pub(super) struct Stacks(BTreeMap<u32, NativeProfile>);

/// Begins to sample these processes, where that is what is captured.
///
/// # Errors
/// Why it cannot be done, with what to do about it.
pub(super) fn start(kind: CaptureKind, pids: &[u32]) -> Result<Option<Sampler>, String> {
    // Where all services run on other machines there is nothing to sample here.
    if kind != CaptureKind::Native || pids.is_empty() {
        return Ok(None);
    }
    let refused = |error: PerfError| {
        let hint = error.hint().map(|hint| format!("; {hint}"));
        format!("no native stacks: {error}{}", hint.unwrap_or_default())
    };
    Sampler::start(pids, PERIOD).map(Some).map_err(refused)
}

/// Ends sampling, where there is any.
pub(super) fn stop(sampler: Option<Sampler>) -> Stacks {
    let profiles = sampler.map(Sampler::stop).unwrap_or_default();
    Stacks(profiles.into_iter().map(|profile| (profile.pid, profile)).collect())
}

impl Stacks {
    /// Writes those of a service's processes; what cannot be written is missing.
    pub fn keep(&mut self, service: &mut CapturedService, folder: &Folder, variant: &str) {
        for process in &mut service.processes {
            let Some(profile) = self.0.remove(&process.pid) else { continue };
            let name = format!("{variant}-{}-{}.native.json", service.service, process.pid);
            let file = folder.path.join(name);
            match written(&profile, &file) {
                Ok(bytes) => process.native = Some(ProfileFile { path: folder.named(&file), bytes }),
                Err(reason) => service.missing.push(Missing::new(Absence::Other, reason)),
            }
        }
    }
}

fn written(profile: &NativeProfile, file: &Path) -> Result<u64, String> {
    let text = serde_json::to_vec(profile).map_err(|error| error.to_string())?;
    fs::write(file, &text).map_err(|error| format!("{}: not written: {error}", file.display()))?;
    Ok(text.len() as u64)
}
