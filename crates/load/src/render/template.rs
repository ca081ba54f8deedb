//! A text with `{column}` placeholders: parsed once, filled for each row.
//!
//! `{name}` is a placeholder, `{{` and `}}` are braces, and a single brace is an error. Parsed as bytes,
//! because a body need not be text. The caller decides how a value is written. This module knows nothing of
//! requests.

use crate::Values;
use crate::values::{did_you_mean, shown};

/// Valid placeholder names: the columns of values, and the names captured from earlier responses.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TemplateNames<'a> {
    pub(crate) values: Option<&'a Values>,
    pub(crate) captured: &'a [String],
}

impl TemplateNames<'_> {
    /// Number of columns. Captured values have the indices from there on.
    pub(crate) fn columns(self) -> usize {
        self.values.map_or(0, |values| values.columns().len())
    }
}

/// Text and placeholders in turn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RequestTemplate {
    pieces: Vec<TemplatePiece>,
}

#[derive(Debug, PartialEq, Eq)]
enum TemplatePiece {
    Text(Vec<u8>),
    /// The index of a column or of a captured value.
    Column(usize),
}

impl RequestTemplate {
    /// Parses `text`. Without any names all of it is text, and braces have no meaning.
    ///
    /// # Errors
    /// Describes the first brace that is neither doubled nor part of a column's name.
    pub(crate) fn read(text: &[u8], names: TemplateNames<'_>) -> Result<RequestTemplate, String> {
        let mut template = RequestTemplate { pieces: Vec::new() };
        if names.values.is_none() && names.captured.is_empty() {
            template.push_text(text);
            return Ok(template);
        }
        let mut from = 0;
        while let Some(at) = brace(text, from) {
            template.push_text(&text[from..at]);
            if text.get(at + 1) == Some(&text[at]) {
                template.push_text(&text[at..=at]);
                from = at + 2;
                continue;
            }
            if text[at] == b'}' {
                return Err(format!(
                    "the }} at byte {at} closes nothing; a plain one is written }}}}"
                ));
            }
            let Some(end) = brace(text, at + 1).filter(|end| text[*end] == b'}') else {
                return Err(format!(
                    "the {{ at byte {at} is never closed; a plain one is written {{{{"
                ));
            };
            template.pieces.push(TemplatePiece::Column(column(
                &text[at + 1..end],
                at,
                names,
            )?));
            from = end + 1;
        }
        template.push_text(&text[from..]);
        Ok(template)
    }

    /// Whether it contains placeholders.
    pub(crate) fn has_columns(&self) -> bool {
        self.uses(|_| true)
    }

    /// Whether a placeholder with such an index exists.
    pub(crate) fn uses(&self, is_such: impl Fn(usize) -> bool) -> bool {
        self.pieces
            .iter()
            .any(|piece| matches!(piece, TemplatePiece::Column(column) if is_such(*column)))
    }

    /// The text at its start. Empty if it starts with a placeholder.
    pub(crate) fn start(&self) -> &[u8] {
        match self.pieces.first() {
            Some(TemplatePiece::Text(text)) => text,
            _ => &[],
        }
    }

    /// All bytes that are the same in every row.
    pub(crate) fn texts<'t>(&'t self) -> impl Iterator<Item = u8> {
        let text = |piece: &'t TemplatePiece| match piece {
            TemplatePiece::Text(text) => text.as_slice(),
            TemplatePiece::Column(_) => &[],
        };
        self.pieces.iter().flat_map(text).copied()
    }

    /// Appends the filled template to `out`. `write` appends the value of a column.
    ///
    /// # Errors
    /// Returns the first error of `write`.
    pub(crate) fn fill<E>(
        &self,
        out: &mut Vec<u8>,
        mut write: impl FnMut(usize, &mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        for piece in &self.pieces {
            match piece {
                TemplatePiece::Text(text) => out.extend_from_slice(text),
                TemplatePiece::Column(column) => write(*column, out)?,
            }
        }
        Ok(())
    }

    /// Merges adjacent texts, so that a template without placeholders has at most one piece.
    fn push_text(&mut self, text: &[u8]) {
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(TemplatePiece::Text(last)) => last.extend_from_slice(text),
            _ => self.pieces.push(TemplatePiece::Text(text.to_vec())),
        }
    }
}

fn brace(text: &[u8], from: usize) -> Option<usize> {
    text[from..]
        .iter()
        .position(|byte| matches!(byte, b'{' | b'}'))
        .map(|offset| from + offset)
}

fn column(name: &[u8], at: usize, names: TemplateNames<'_>) -> Result<usize, String> {
    let columns = names.values.map_or(&[][..], Values::columns);
    let mut all = columns.iter().chain(names.captured);
    all.position(|known| known.as_bytes() == name)
        .ok_or_else(|| {
            let name = String::from_utf8_lossy(name);
            let hint = did_you_mean(&name, &[columns, names.captured].concat());
            let what = if names.captured.is_empty() {
                "no column"
            } else {
                "no column and no captured value"
            };
            format!("there is {what} {} (at byte {at}); {hint}", shown(&name))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<String, String> {
        let values = Values::csv(b"id,first name\n7,{id}}").unwrap();
        let template = RequestTemplate::read(
            text.as_bytes(),
            TemplateNames {
                values: Some(&values),
                captured: &[],
            },
        )?;
        let mut out = Vec::new();
        template.fill(&mut out, |column, out| {
            out.extend_from_slice(values.cell(0, column).as_bytes());
            Ok::<(), String>(())
        })?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn names_are_replaced_once_and_doubled_braces_become_one() {
        for (text, expected) in [
            ("", ""),
            ("a {id} b{id}", "a 7 b7"),
            ("{first name}", "{id}}"),
            ("{{id}}", "{id}"),
            ("{{{id}}}", "{7}"),
            (r#"{{"a":{{"b":{id}}}}}"#, r#"{"a":{"b":7}}"#),
            ("é}}{{{{", "é}{{"),
        ] {
            assert_eq!(filled(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_brace_that_is_neither_is_an_error_with_its_place() {
        for (text, expected) in [
            (
                "/{idd}",
                "there is no column `idd` (at byte 1); did you mean `id`?",
            ),
            (
                "{}",
                "there is no column `` (at byte 0); columns: `id`, `first name`",
            ),
            (
                "{something}",
                "there is no column `something` (at byte 0); columns: `id`, `first name`",
            ),
            (
                "x{id",
                "the { at byte 1 is never closed; a plain one is written {{",
            ),
            (
                "{id{id}",
                "the { at byte 0 is never closed; a plain one is written {{",
            ),
            (
                "{id}}",
                "the } at byte 4 closes nothing; a plain one is written }}",
            ),
            (
                r#"{"id": {id}}"#,
                "the { at byte 0 is never closed; a plain one is written {{",
            ),
        ] {
            assert_eq!(
                filled(text).as_ref().map_err(String::as_str),
                Err(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn bytes_need_not_be_text() {
        let values = Values::csv(b"id\n7").unwrap();
        let names = TemplateNames {
            values: Some(&values),
            captured: &[],
        };
        let mixed = RequestTemplate::read(b"\xff{id}\xfe", names).unwrap();
        assert_eq!(
            mixed.pieces,
            [
                TemplatePiece::Text(vec![0xff]),
                TemplatePiece::Column(0),
                TemplatePiece::Text(vec![0xfe])
            ]
        );
        let unknown = RequestTemplate::read(b"{i\xffd}", names).unwrap_err();
        assert_eq!(
            unknown,
            "there is no column `i\u{fffd}d` (at byte 0); did you mean `id`?"
        );
    }
}
