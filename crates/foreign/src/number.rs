//! Numbers as tools and people write them: `1,234.5`, `1.234,5`, `12.3k`, `1m2.5s`, `85.00MB`.
//!
//! Returns finite, non-negative numbers, and None for any other text (`nan`, `-`, `1e999`).

/// Longer than any number that a tool prints.
const NUMBER_CHARS_MAX: usize = 40;

/// The meaning of a single mark before exactly three digits: `1,234`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lone {
    /// The tool prints three or more decimals and no thousands separators.
    Decimal,
    /// The tool prints thousands separators, or no such number.
    Thousands,
}

/// Parses a number with a decimal point or comma, with or without thousands separators.
pub fn figure(text: &str, lone: Lone) -> Option<f64> {
    let text = text.trim();
    let allowed = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',' | '\'' | '_' | ' ');
    let plain =
        !text.is_empty() && text.chars().count() <= NUMBER_CHARS_MAX && text.chars().all(allowed);
    if !plain || !text.ends_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mark = decimal_mark(text, lone);
    let digits: String = text
        .char_indices()
        .filter_map(|(at, c)| match c {
            _ if Some(at) == mark => Some('.'),
            c if c.is_ascii_digit() => Some(c),
            _ => None,
        })
        .collect();
    digits
        .parse::<f64>()
        .ok()
        .filter(|number| number.is_finite())
}

/// Position of the decimal mark, if there is one.
fn decimal_mark(text: &str, lone: Lone) -> Option<usize> {
    let marks: Vec<(usize, char)> = text
        .char_indices()
        .filter(|(_, c)| matches!(c, '.' | ','))
        .collect();
    let (last, sign) = *marks.last()?;
    let alike = marks.iter().filter(|(_, c)| *c == sign).count();
    // A point is the decimal mark for all these tools, as is the last of two different marks.
    let is_lone =
        marks.len() == 1 && sign == ',' && text.len() - last == 4 && (1..=3).contains(&last);
    // Two identical marks are thousands separators.
    let is_thousands = alike > 1 || is_lone && lone == Lone::Thousands;
    (!is_thousands).then_some(last)
}

/// The leading number of a token and the rest: `12.5ms` is `12.5` and `ms`.
pub fn split_unit(token: &str) -> (&str, &str) {
    let end = token
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '\'')))
        .unwrap_or(token.len());
    token.split_at(end)
}

/// A duration with its units, in microseconds: `812us`, `1.50m`, `1m2.5s`.
pub fn micros(text: &str, lone: Lone) -> Option<f64> {
    let mut rest = text.trim();
    let mut total = 0.0;
    // Hours, minutes, seconds, and one to spare.
    for _ in 0..4 {
        let (number, after) = split_unit(rest);
        let end = after
            .find(|c: char| c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        total += figure(number, lone)? * unit_us(unit.trim())?;
        rest = next;
        if rest.is_empty() {
            return Some(total).filter(|us: &f64| us.is_finite());
        }
    }
    None
}

/// The same for programs that print no thousands separators.
pub fn us(text: &str) -> Option<f64> {
    micros(text, Lone::Decimal)
}

/// The same in seconds.
pub fn seconds(text: &str) -> Option<f64> {
    us(text).map(|us| us / 1e6)
}

/// A number as such a program prints it.
pub fn decimal(text: &str) -> Option<f64> {
    figure(text, Lone::Decimal)
}

/// Microseconds per unit of time.
pub fn unit_us(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1e-3,
        "us" | "µs" | "μs" | "usec" => 1.0,
        "ms" | "msec" => 1e3,
        "s" | "sec" | "secs" | "seconds" => 1e6,
        "m" | "min" => 60e6,
        "h" | "hour" => 3600e6,
        "day" | "d" => 86_400e6,
        _ => return None,
    })
}

/// A size with its unit, in bytes. `kilo` is the tool's meaning of `KB` without an `i`: 1000, as on a disk,
/// or 1024.
pub fn bytes(text: &str, kilo: f64) -> Option<f64> {
    let (number, unit) = split_unit(text.trim());
    let unit = unit.trim();
    let base = if unit.contains('i') { 1024.0 } else { kilo };
    let power = unit
        .chars()
        .next()
        .map_or(Some(0), |c| "BKMGT".find(c.to_ascii_uppercase()))?;
    let rest = unit.trim_start_matches(|c: char| "kKMGT".contains(c));
    let known = matches!(rest, "" | "i" | "B" | "iB" | "b" | "ytes" | "bytes");
    known.then_some(figure(number, Lone::Thousands)? * base.powi(power as i32))
}

/// A count, and whether it was rounded: `1,234` or `24k`.
pub fn count(text: &str) -> Option<(u64, bool)> {
    let (number, unit) = split_unit(text.trim());
    let (factor, rounded) = match unit {
        "" => (1.0, false),
        "k" | "K" => (1e3, true),
        "M" | "m" => (1e6, true),
        "G" => (1e9, true),
        _ => return None,
    };
    let value = figure(number, Lone::Thousands)? * factor;
    (value <= 1e15).then_some((value.round() as u64, rounded))
}

/// A whole number, with or without thousands separators.
pub fn whole(text: &str) -> Option<u64> {
    count(text)
        .filter(|(_, rounded)| !rounded)
        .map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_every_locale() {
        let texts = [
            "666.55",
            "666,55",
            "1,234.5",
            "1.234,5",
            "1,234,567",
            "12,345",
            "1'234.5",
        ];
        let values = [
            666.55,
            666.55,
            1234.5,
            1234.5,
            1_234_567.0,
            12_345.0,
            1234.5,
        ];
        assert_eq!(
            texts.map(|text| figure(text, Lone::Thousands)),
            values.map(Some)
        );
        assert_eq!(figure("242,073", Lone::Decimal), Some(242.073));
        let none = [
            "", "-", "nan", "-nan", "1e999", "inf", "-3", "12abc", ".", ",", "1.2.3,",
        ];
        assert_eq!(none.map(decimal), [None; 11]);
    }

    #[test]
    fn units_of_time_and_size_are_told_apart() {
        let times = ["812.00us", "1.50m", "2,5s", "1m2.5s", "0s", "3µs"].map(us);
        assert_eq!(times, [812.0, 90e6, 2.5e6, 62.5e6, 0.0, 3.0].map(Some));
        assert_eq!(
            ["12", "1e999s", "s", "1x", "1s1s1s1s1s", ""].map(us),
            [None; 6]
        );
        assert_eq!(bytes("1.50KB", 1024.0), Some(1536.0));
        assert_eq!(bytes("1.5 kB", 1000.0), Some(1500.0));
        assert_eq!(bytes("1.50 KiB", 1000.0), Some(1536.0));
        assert_eq!(bytes("12", 1000.0), Some(12.0));
        assert_eq!([bytes("1 parsec", 1024.0), bytes("", 1024.0)], [None, None]);
        let counts = ["24k", "1,175", "9e9"].map(count);
        assert_eq!(counts, [Some((24_000, true)), Some((1175, false)), None]);
    }
}
