//! Figures as CSV, for spreadsheets and notebooks: RFC 4180 with line feeds alone. Numbers are whole: as many digits as it takes to
//! read the same number again.
//!
//! Must not: know what the figures are of.

use model::quantity::Unit;
use model::text::line;

/// Rows of as many fields each, the first of them what stands above each field.
pub type Figures = Vec<Vec<String>>;

/// What a column of such figures is counted in, as spreadsheets have it.
pub(crate) fn unit_name(unit: Unit) -> &'static str {
    match unit {
        Unit::PerS => "1/s",
        Unit::Us => "us",
        Unit::Bytes => "bytes",
        Unit::Share => "share",
        Unit::Ratio => "ratio",
        Unit::Count | Unit::Number => "1",
    }
}

/// The rows as text.
pub fn csv(figures: &Figures) -> String {
    let mut out = csv::Writer::from_writer(Vec::new());
    // Into memory, and as many fields a row: neither can fail.
    figures.iter().for_each(|row| drop(out.write_record(row)));
    String::from_utf8(out.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// A figure; empty where there is none.
pub(crate) fn figure(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// A name that no spreadsheet takes for a formula: an apostrophe before what begins like one, which they hide. On a terminal control
/// characters could do as they like.
pub(crate) fn name(name: &str) -> String {
    let name = line(name);
    match name.trim_start_matches([' ', '\u{a0}', '\u{3000}']).chars().next() {
        Some('=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠') => format!("'{name}"),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn what_a_spreadsheet_would_execute_begins_with_an_apostrophe() {
        for formula in ["=1+1", "+1", "-1", "@sum(a)", " =cmd|' /C calc'!A0", "＝1"] {
            assert_eq!(name(formula), format!("'{formula}"));
        }
        assert_eq!(name("\t=1\x1b[2J"), "' =1\u{fffd}[2J");
        assert_eq!(name("express 5 - json"), "express 5 - json");
    }
}
