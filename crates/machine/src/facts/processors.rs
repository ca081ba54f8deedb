//! Processors: how many there are, how many are ours, and how many cores they are. It reads texts and pins nobody.

use std::collections::BTreeSet;

use serde::Serialize;

use super::groups::Group;
use super::parse_list;
use crate::texts::Texts;

/// The processors of a machine, as this process has them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Processors {
    /// Name, as /proc/cpuinfo has it.
    pub model: Option<String>,
    /// Online on the machine.
    pub online: Option<usize>,
    /// Those on which this process may run, by affinity or cpuset.
    pub allowed: Option<usize>,
    /// Physical cores among the allowed ones: processors that share a core are counted once.
    pub cores: Option<usize>,
    /// The control group of this process, as far as it bears on CPU time.
    pub group: Group,
}

impl Processors {
    pub(super) fn of(texts: &Texts) -> Processors {
        let online = texts.line("/sys/devices/system/cpu/online").map(|list| parse_list(list).len());
        let told = texts.get("/proc/cpuinfo").unwrap_or_default();
        let listed = told.lines().filter(|line| line.starts_with("processor")).count();
        let allowed = texts.field("/proc/self/status", "Cpus_allowed_list").map(parse_list);
        let model = texts.field("/proc/cpuinfo", "model name").filter(|name| !name.is_empty());
        Processors {
            model: model.map(str::to_owned),
            online: online.filter(|count| *count > 0).or(Some(listed).filter(|count| *count > 0)),
            cores: cores(texts, allowed.as_deref().unwrap_or_default()),
            allowed: allowed.map(|list| list.len()).filter(|count| *count > 0),
            group: Group::of(texts),
        }
    }
}

/// Distinct sets of siblings among the processors; `None` where the kernel does not tell one's.
fn cores(texts: &Texts, processors: &[usize]) -> Option<usize> {
    let siblings = |cpu: &usize| {
        texts.line(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")).map(parse_list)
    };
    let sets: Option<BTreeSet<Vec<usize>>> = processors.iter().map(siblings).collect();
    sets.map(|sets| sets.len()).filter(|count| *count > 0)
}
