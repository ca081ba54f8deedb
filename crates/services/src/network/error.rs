//! Why there is no link between client and services, and what to do about it.

use std::time::Duration;

/// Why a network could not be made, or entered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// Only root may make network namespaces.
    #[error("`load.network` takes root: it makes network namespaces with a link between them")]
    NotRoot,
    /// A command is not installed.
    #[error("`load.network` takes the command {0}, which is not installed")]
    NoCommand(&'static str),
    /// The kernel refused something.
    #[error("cannot make the link of `load.network`: {what}: {reason}")]
    Refused {
        /// What was tried.
        what: String,
        /// What was said.
        reason: String,
    },
    /// Packets do not arrive.
    #[error("the link of `load.network` carried nothing within {} s", patience.as_secs())]
    Dead {
        /// How long that was tried.
        patience: Duration,
    },
    /// It is faster than asked.
    #[error(
        "the link of `load.network` is not what was asked for: a round trip took {:.3} ms, at least {:.3} ms are due",
        shortest.as_secs_f64() * 1e3,
        least.as_secs_f64() * 1e3
    )]
    Short {
        /// Twice the delay.
        least: Duration,
        /// The shortest that was measured.
        shortest: Duration,
    },
}

impl NetworkError {
    pub(super) fn refused(what: impl Into<String>, reason: impl ToString) -> Self {
        Self::Refused { what: what.into(), reason: reason.to_string() }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotRoot => "run it as root, or leave `load.network` out to measure over loopback",
            Self::NoCommand(_) => "ip and tc come together: apt-get install iproute2",
            Self::Refused { .. } => {
                "it takes CAP_SYS_ADMIN and CAP_NET_ADMIN, which root lacks in many containers, and a kernel with veth, \
                 tbf and, for a delay, netem or tun"
            }
            Self::Dead { .. } | Self::Short { .. } => return None,
        })
    }
}
