//! A network device whose cable is a descriptor: what the kernel sends is read from it, what is written arrives.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags, open as open_file};

use super::NetworkError;

/// Makes the device `name` in the calling thread's network namespace. It is gone when the descriptor is closed.
pub(super) fn open(name: &str) -> Result<OwnedFd, NetworkError> {
    let refused = |error: io::Error| NetworkError::refused("/dev/net/tun", error);
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let tap = open_file("/dev/net/tun", flags, Mode::empty()).map_err(|error| refused(error.into()))?;
    let mut wanted = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: (libc::IFF_TAP | libc::IFF_NO_PI) as i16 },
    };
    // The last byte stays 0.
    for (to, from) in wanted.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: TUNSETIFF reads an ifreq and writes the device's name into it; this one lives until the call is over.
    let made = unsafe { libc::ioctl(tap.as_raw_fd(), libc::TUNSETIFF, &raw mut wanted) };
    if made == 0 { Ok(tap) } else { Err(refused(io::Error::last_os_error())) }
}
