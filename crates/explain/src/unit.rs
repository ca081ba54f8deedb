//! What the values of a tree are counted in.

/// What the values of a tree are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds of CPU time per request.
    MicrosPerRequest,
    /// Nanoseconds of CPU time, all together.
    Nanoseconds,
    /// Bytes per request.
    BytesPerRequest,
    /// Bytes, all together.
    Bytes,
}

impl Unit {
    /// Its name for programs: the end of a field's name.
    pub fn name(self) -> &'static str {
        match self {
            Unit::MicrosPerRequest => "us_per_request",
            Unit::Nanoseconds => "ns",
            Unit::BytesPerRequest => "bytes_per_request",
            Unit::Bytes => "bytes",
        }
    }

    /// What is counted, for headings.
    pub fn of_what(self) -> &'static str {
        match self {
            Unit::MicrosPerRequest => "CPU time per request",
            Unit::Nanoseconds => "CPU time",
            Unit::BytesPerRequest => "bytes kept per request",
            Unit::Bytes => "bytes kept",
        }
    }

    /// In what graphs count, and how much of it a value of one is.
    pub(crate) fn in_graphs(self) -> (&'static str, f64) {
        match self {
            Unit::MicrosPerRequest => ("µs/request", 1.0),
            Unit::Nanoseconds => ("ms", 1e-6),
            Unit::BytesPerRequest => ("B/request", 1.0),
            Unit::Bytes => ("B", 1.0),
        }
    }

    /// Whether it is time.
    pub fn is_time(self) -> bool {
        match self {
            Unit::MicrosPerRequest | Unit::Nanoseconds => true,
            Unit::BytesPerRequest | Unit::Bytes => false,
        }
    }

    /// Nanoseconds of a value of one in formats that show time: those of a thousand requests, so that a millisecond is a microsecond of one
    /// request.
    pub(crate) fn nanoseconds(self) -> f64 {
        match self {
            Unit::MicrosPerRequest => 1e6,
            // A microsecond for a byte, where a format has times alone.
            Unit::BytesPerRequest | Unit::Bytes => 1e3,
            Unit::Nanoseconds => 1.0,
        }
    }
}
