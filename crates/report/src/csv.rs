//! Figures as CSV, for spreadsheets and notebooks: RFC 4180 with line feeds alone. Numbers are whole: as many digits as it takes to
//! read the same number again.
//!
//! Must not: know what the figures are of.

use model::quantity::Unit;

use model::text::line;

/// A field.
#[derive(Debug, Clone, PartialEq)]
pub enum Field {
    /// A name, from anybody.
    Name(String),
    /// A word of ours.
    Word(&'static str),
    /// A whole number.
    Count(u64),
    /// A figure; empty where there is none.
    Figure(Option<f64>),
}

/// Figures one below the other.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// What stands above each field.
    pub headings: Vec<String>,
    /// As many fields each.
    pub rows: Vec<Vec<Field>>,
}

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

/// Headings and rows.
pub fn csv(figures: &Figures) -> String {
    let mut out = csv::Writer::from_writer(Vec::new());
    // Into memory, and as many fields a row: neither can fail.
    let _ = out.write_record(&figures.headings);
    for row in &figures.rows {
        let _ = out.write_record(row.iter().map(written));
    }
    let bytes = out.into_inner().unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

fn written(field: &Field) -> String {
    match field {
        Field::Name(name) => harmless(name),
        Field::Word(word) => (*word).to_owned(),
        Field::Count(count) => count.to_string(),
        Field::Figure(figure) => figure.map(|figure| figure.to_string()).unwrap_or_default(),
    }
}

/// A name that no spreadsheet takes for a formula: an apostrophe before what begins like one, which they hide. On a terminal control
/// characters could do as they like.
fn harmless(name: &str) -> String {
    let name = line(name);
    match name.trim_start_matches([' ', '\u{a0}', '\u{3000}']).chars().next() {
        Some('=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠') => format!("'{name}"),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::harmless;

    #[test]
    fn what_a_spreadsheet_would_execute_begins_with_an_apostrophe() {
        for name in ["=1+1", "+1", "-1", "@sum(a)", " =cmd|' /C calc'!A0", "＝1"] {
            assert_eq!(harmless(name), format!("'{name}"));
        }
        assert_eq!(harmless("\t=1\x1b[2J"), "' =1\u{fffd}[2J");
        assert_eq!(harmless("express 5 - json"), "express 5 - json");
    }
}
