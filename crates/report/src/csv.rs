//! Figures as CSV, for spreadsheets and notebooks: RFC 4180 with line feeds only. Numbers have as many digits
//! as needed to read the same value again.
//!
//! This module does not know the meaning of the figures.

use model::quantity::Unit;
use model::text::line;

/// Rows with equal numbers of fields. The first row contains the headings.
pub type CsvRows = Vec<Vec<String>>;

/// Name of a unit for a column of figures.
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

/// Formats the rows as text.
pub fn csv(figures: &CsvRows) -> String {
    let mut out = csv::Writer::from_writer(Vec::new());
    // Neither writing to memory nor rows of equal length can fail.
    figures.iter().for_each(|row| drop(out.write_record(row)));
    String::from_utf8(out.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// Formats a figure. Empty without a value.
pub(crate) fn figure(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Protects a name from being read as a formula: an apostrophe, which spreadsheets hide, is put before a
/// leading formula character. Control characters, which could affect a terminal, are replaced.
pub(crate) fn name(name: &str) -> String {
    let name = line(name);
    match name
        .trim_start_matches([' ', '\u{a0}', '\u{3000}'])
        .chars()
        .next()
    {
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
