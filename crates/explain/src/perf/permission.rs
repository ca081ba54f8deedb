//! Whether the kernel lets us sample, and what to set where it does not. The judgement is pure, over texts of `/proc`.

use std::fs;
use std::io;

use crate::perf::error::PerfError;
use crate::perf::event::{Event, Mode, Whom};
use crate::perf::process::field;

/// Whether processes of this user may be sampled at all. It tries on the calling thread, which samples nothing.
///
/// # Errors
/// [`PerfError::Forbidden`] with what forbids it and what to set, or [`PerfError::Missing`].
pub fn allowed() -> Result<(), PerfError> {
    granted(1_000_000).map(|_| ())
}

/// The most that the kernel gives us: with its own work if we may see that, and without processes that start later if it can tell them
/// from threads.
pub(crate) fn granted(period_ns: u64) -> Result<Mode, PerfError> {
    let mut mode = Mode { period_ns, kernel: true, threads_only: true };
    loop {
        let Err(error) = Event::open(Whom::Own, mode) else { return Ok(mode) };
        match error.raw_os_error() {
            // Linux before 5.13 does not know this wish.
            Some(libc::EINVAL) if mode.threads_only => mode.threads_only = false,
            Some(libc::EACCES | libc::EPERM) if mode.kernel => mode.kernel = false,
            _ => return Err(refusal(error, &Rights::read())),
        }
    }
}

/// What bears on whether perf events may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rights {
    /// `kernel.perf_event_paranoid`; `None` where there is no such file, which means no perf events.
    paranoid: Option<i32>,
    /// CAP_PERFMON or CAP_SYS_ADMIN, which is of no use outside of the first user namespace.
    capable: bool,
    /// Whether a filter of system calls is at work.
    filtered: bool,
}

const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;

impl Rights {
    /// Those of this process.
    pub(crate) fn read() -> Rights {
        let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok();
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        Rights::parse(paranoid.as_deref(), &status)
    }

    fn parse(paranoid: Option<&str>, status: &str) -> Rights {
        let capabilities =
            field(status, "CapEff:").and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
        Rights {
            paranoid: paranoid.and_then(|text| text.trim().parse().ok()),
            capable: capabilities & ((1 << CAP_PERFMON) | (1 << CAP_SYS_ADMIN)) != 0,
            filtered: field(status, "Seccomp:") == Some("2"),
        }
    }

    /// Why the kernel's own work is not in a profile.
    pub(crate) fn why_no_kernel(&self) -> String {
        let level = self.paranoid.map_or_else(|| "unknown".to_owned(), |level| level.to_string());
        format!(
            "the kernel's own work is not in it: kernel.perf_event_paranoid is {level}; with 1, or with CAP_PERFMON, it is"
        )
    }
}

const SYSCTL: &str = "sudo sysctl kernel.perf_event_paranoid=2 (1 to see the kernel's own work too), \
                      or run as root, or with the capability CAP_PERFMON";
const CONTAINER: &str = "allow perf_event_open in the container's seccomp profile: docker run --cap-add PERFMON, \
                         in Kubernetes securityContext.capabilities.add PERFMON, elsewhere a profile of your own";

/// Makes the system's answer a message that helps.
pub(crate) fn refusal(error: io::Error, rights: &Rights) -> PerfError {
    let forbidden = |why: String, hint: &str| PerfError::Forbidden { why, hint: hint.to_owned() };
    match (error.raw_os_error(), rights.paranoid) {
        (Some(libc::ENOSYS), Some(_)) | (Some(libc::EPERM), _) if rights.filtered => {
            forbidden("a filter of system calls (seccomp) refuses perf_event_open".to_owned(), CONTAINER)
        }
        (Some(libc::ENOSYS | libc::ENOENT | libc::EOPNOTSUPP), _) => PerfError::Missing(error),
        // 3 and 4 are of Debian, Ubuntu and Android: no perf events without the capability.
        (Some(libc::EACCES | libc::EPERM), Some(level)) if level > 2 && !rights.capable => forbidden(
            format!("kernel.perf_event_paranoid is {level}, and this process has no CAP_PERFMON"),
            SYSCTL,
        ),
        (Some(libc::EACCES | libc::EPERM), Some(level)) if level > 2 => forbidden(
            format!(
                "kernel.perf_event_paranoid is {level}, and the capability CAP_PERFMON is of a user namespace only"
            ),
            "sudo sysctl kernel.perf_event_paranoid=2 on the host, or run outside of the container",
        ),
        (Some(libc::EACCES | libc::EPERM), level) => {
            let level = level.map_or_else(|| "cannot be read".to_owned(), |level| format!("is {level}"));
            forbidden(
                format!("perf_event_open: {error}, although kernel.perf_event_paranoid {level}"),
                "a security module (SELinux, lockdown in confidentiality mode) forbids it; run as root outside of it",
            )
        }
        _ => PerfError::System(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: &str = "CapEff:\t0000000000000000\nSeccomp:\t0\nSeccomp_filters:\t0\n";
    const ROOT: &str = "CapEff:\t000001ffffffffff\nSeccomp:\t0\n";
    const DOCKER: &str = "CapEff:\t00000000a80425fb\nSeccomp:\t2\nSeccomp_filters:\t1\n";

    fn said(errno: i32, paranoid: Option<&str>, status: &str) -> (String, String) {
        let error = refusal(io::Error::from_raw_os_error(errno), &Rights::parse(paranoid, status));
        (error.to_string(), error.hint().unwrap_or_default())
    }

    #[test]
    fn a_strict_setting_is_named_with_the_command_that_changes_it() {
        let (why, hint) = said(libc::EACCES, Some("4\n"), USER);
        assert!(why.contains("kernel.perf_event_paranoid is 4") && why.contains("no CAP_PERFMON"), "{why}");
        assert!(hint.contains("sysctl kernel.perf_event_paranoid=2"), "{hint}");
    }

    #[test]
    fn a_container_is_told_of_its_own_filter_and_not_of_the_host() {
        for errno in [libc::EPERM, libc::ENOSYS] {
            let (why, hint) = said(errno, Some("2\n"), DOCKER);
            assert!(why.contains("seccomp") && hint.contains("--cap-add PERFMON"), "{why} {hint}");
        }
    }

    #[test]
    fn root_of_a_user_namespace_learns_that_its_capability_is_worth_nothing() {
        let (why, hint) = said(libc::EACCES, Some("3"), ROOT);
        assert!(why.contains("user namespace") && hint.contains("on the host"), "{why} {hint}");
    }

    #[test]
    fn what_nothing_explains_is_told_as_it_is() {
        let (why, _) = said(libc::EACCES, Some("-1"), ROOT);
        assert!(why.contains("Permission denied") && why.contains("is -1"), "{why}");
        let (why, hint) = said(libc::ENOSYS, None, USER);
        assert!(why.contains("no perf events") && hint.contains("CONFIG_PERF_EVENTS"), "{why} {hint}");
        assert!(said(libc::EMFILE, Some("2"), USER).0.contains("cannot sample"));
    }

    #[test]
    fn a_missing_kernel_is_explained_by_the_setting() {
        assert!(Rights::parse(Some("2"), USER).why_no_kernel().contains("paranoid is 2"));
        assert!(!Rights::parse(Some("2"), USER).capable && Rights::parse(None, ROOT).capable);
    }
}
