//! Figures as people read them in evidence and tables: as many digits as they deserve, and a unit.

/// A count with thousands set apart: `134,054`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A figure with up to four significant digits, thousands set apart: `12.42`, `1,416`, `47,760`.
pub fn digits(value: f64) -> String {
    let decimals = match value {
        v if v <= 0.0 || v >= 999.5 => 0,
        v if v >= 99.95 => 1,
        v if v >= 0.0995 => 2,
        _ => 3,
    };
    if decimals > 0 { format!("{value:.decimals$}") } else { count(value.round() as u64) }
}

/// Microseconds, in the unit that reads best.
pub fn micros(us: f64) -> String {
    match us {
        us if us < 1000.0 => format!("{us:.0} µs"),
        us if us < 1e6 => format!("{} ms", three(us / 1e3)),
        us => format!("{} s", three(us / 1e6)),
    }
}

/// Bytes in decimal units.
pub fn bytes(bytes: f64) -> String {
    match bytes {
        b if b < 1e3 => format!("{b:.0} B"),
        b if b < 1e6 => format!("{} kB", three(b / 1e3)),
        b if b < 1e9 => format!("{} MB", three(b / 1e6)),
        b => format!("{} GB", three(b / 1e9)),
    }
}

/// Three significant digits.
fn three(value: f64) -> String {
    let decimals = match value {
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    if decimals > 0 { format!("{value:.decimals$}") } else { count(value.round() as u64) }
}

/// A share as per cent.
pub fn share(share: f64) -> String {
    match share * 100.0 {
        p if p <= 0.0 => "0 %".into(),
        p if p < 0.01 => "< 0.01 %".into(),
        p if p < 1.0 => format!("{p:.2} %"),
        p if p < 9.95 && (p - p.round()).abs() > 1e-6 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// A ratio as a change: `+4 %`, `−12 %`, `×1.68`.
pub fn change(ratio: f64) -> String {
    if !(0.67..=1.5).contains(&ratio) {
        return factor(ratio);
    }
    let percent = (ratio - 1.0) * 100.0;
    let decimals = usize::from(percent.abs() < 9.95);
    let sign = if percent < 0.0 { '−' } else { '+' };
    format!("{sign}{:.decimals$} %", percent.abs())
}

/// A ratio as a factor.
pub fn factor(ratio: f64) -> String {
    match ratio {
        r if r < 0.1 => format!("×{r:.3}"),
        r if r < 10.0 => format!("×{r:.2}"),
        r if r < 1000.0 => format!("×{r:.1}"),
        r => format!("×{}", count(r.min(1e15).round() as u64)),
    }
}

/// Seconds: `0.5 s`, `45 s`.
pub fn seconds(seconds: f64) -> String {
    if (seconds - seconds.round()).abs() < 0.05 && seconds >= 1.0 {
        format!("{seconds:.0} s")
    } else {
        format!("{} s", three(seconds))
    }
}

/// A noun with its number.
pub fn many(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_show_the_digits_they_deserve() {
        assert_eq!(
            [digits(12.42), digits(666.55), digits(47_759.3)],
            ["12.42", "666.5", "47,759"].map(String::from)
        );
        assert_eq!(
            [micros(812.0), micros(1_610_000.0), micros(242_073.0)],
            ["812 µs", "1.61 s", "242 ms"].map(String::from)
        );
        assert_eq!(
            [change(1.04), change(0.88), change(1.683)],
            ["+4.0 %", "−12 %", "×1.68"].map(String::from)
        );
        assert_eq!([share(1.0), share(0.0031), share(0.971)], ["100 %", "0.31 %", "97 %"].map(String::from));
        assert_eq!(
            [seconds(45.1), seconds(0.52), many(1, "run"), many(1234, "run")],
            ["45.1 s", "0.52 s", "1 run", "1,234 runs"].map(String::from)
        );
    }
}
