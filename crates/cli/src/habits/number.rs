//! Numbers and times as other tools write them.
//!
//! Stricter than C's `sscanf` and `atoi`, which skip what they do not understand: that is refused.

/// wrk's units of a count: each 1000 times the one before it.
const COUNTS: [&str; 6] = ["", "k", "m", "g", "t", "p"];

/// A count with wrk's units, of either case: `400`, `1k`, `2M`.
pub fn metric(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let power = COUNTS.iter().position(|name| unit.eq_ignore_ascii_case(name))?;
    number.checked_mul(1000u64.checked_pow(u32::try_from(power).ok()?)?)
}

/// Seconds with wrk's units, of either case: `30`, `30s`, `2m`, `1h`.
pub fn seconds(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let scale = match unit.to_ascii_lowercase().as_str() {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    number.checked_mul(scale)
}

/// A whole number and nothing else.
pub fn whole(text: &str) -> Option<u64> {
    split(text).filter(|(_, unit)| unit.is_empty()).map(|(number, _)| number)
}

/// A time as `proofload load` reads it, in its largest whole unit.
pub fn period(seconds: u64) -> String {
    match seconds {
        s if s > 0 && s.is_multiple_of(3600) => format!("{}h", s / 3600),
        s if s > 0 && s.is_multiple_of(60) => format!("{}m", s / 60),
        s => format!("{s}s"),
    }
}

fn split(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number = text[..end].parse().ok()?;
    Some((number, &text[end..]))
}
