//! What this process may ask the kernel for, as far as files tell. It reads texts and tries nothing.

use serde::Serialize;

use crate::texts::Texts;

/// Rights and the switches that restrict them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Rights {
    /// Whether this process is root.
    pub root: Option<bool>,
    /// `kernel.perf_event_paranoid`: up to 1 lets everyone profile with the kernel's part, 2 without it.
    pub perf_event_paranoid: Option<i64>,
    /// `kernel.kptr_restrict`: 0 shows the kernel's symbols.
    pub kptr_restrict: Option<i64>,
    /// `kernel.io_uring_disabled`: 0 for nobody, 1 for most, 2 for all.
    pub io_uring_disabled: Option<i64>,
    /// Whether a filter stands before this process's system calls, as in a container.
    pub filtered: Option<bool>,
}

impl Rights {
    pub(super) fn of(texts: &Texts) -> Rights {
        let status = |name: &str| texts.field("/proc/self/status", name);
        let effective = status("Uid").and_then(|ids| ids.split_ascii_whitespace().nth(1));
        Rights {
            root: effective.map(|id| id == "0"),
            perf_event_paranoid: texts.number("/proc/sys/kernel/perf_event_paranoid"),
            kptr_restrict: texts.number("/proc/sys/kernel/kptr_restrict"),
            io_uring_disabled: texts.number("/proc/sys/kernel/io_uring_disabled"),
            filtered: status("Seccomp").map(|mode| mode == "2"),
        }
    }
}
