//! How values and columns are shown in messages: short, on one line, and with the name that was probably meant.
//!
//! Text for people. It must not decide what is wrong.

/// Longer texts are cut in messages.
const SHOWN_CHARS_MAX: usize = 40;
/// As many columns are named where none is near.
const LISTED_MAX: usize = 10;

/// In back quotes, cut, with control characters escaped: they would break the line or the terminal.
pub(crate) fn shown(text: &str) -> String {
    let escaped = |c: char| if c.is_control() { c.escape_default().collect() } else { vec![c] };
    let mut shown: String = text.chars().take(SHOWN_CHARS_MAX).flat_map(escaped).collect();
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// The same of bytes that are no text; what is not ASCII is shown as `\xNN`.
pub(crate) fn shown_bytes(bytes: &[u8]) -> String {
    let (start, cut) = match bytes.get(..SHOWN_CHARS_MAX) {
        Some(start) if start.len() < bytes.len() => (start, "…"),
        _ => (bytes, ""),
    };
    format!("`{}{cut}`", start.escape_ascii())
}

/// A hint for a word that is no column: the nearest one, or else their names.
///
/// About a third of the letters may be wrong, as in the experiment file; capitals do not count.
pub(crate) fn did_you_mean(word: &str, columns: &[String]) -> String {
    let folded = word.to_lowercase();
    let slips = |column: &String| strsim::damerau_levenshtein(&folded, &column.to_lowercase());
    let allowed = |column: &String| word.chars().count().max(column.chars().count()).div_ceil(3);
    let near = columns.iter().map(|column| (slips(column), column));
    match near.filter(|(slips, column)| *slips <= allowed(column)).min_by_key(|(slips, _)| *slips) {
        Some((_, column)) => format!("did you mean {}?", shown(column)),
        None => format!("columns: {}", listed(columns)),
    }
}

/// Names separated by commas, the first of them where they are many.
pub(crate) fn listed(columns: &[String]) -> String {
    let mut names: Vec<String> = columns.iter().take(LISTED_MAX).map(|column| shown(column)).collect();
    if columns.len() > LISTED_MAX {
        names.push(format!("and {} more", columns.len() - LISTED_MAX));
    }
    names.join(", ")
}
