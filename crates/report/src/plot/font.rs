//! The typeface of the plot: how wide a text is, and the outlines of its letters. DejaVu Sans, which has Latin, Greek, Cyrillic, arrows
//! and signs of mathematics; what it lacks (Chinese, Japanese, Korean, emoji) is an empty box in PNG, and in SVG whatever the reader's
//! machine has. Letters stand one after the other: none is joined or turned around.

use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// A letter that is not in the typeface is as wide as it is high: so are those of most scripts that it lacks.
const MISSING: f64 = 1.0;

/// The typeface.
#[derive(Debug)]
pub(super) struct Font {
    /// `None` never happens: the file is part of the program.
    face: Option<Face<'static>>,
}

impl Font {
    pub fn new() -> Font {
        Font { face: Face::parse(dejavu::sans::regular(), 0).ok() }
    }

    /// Width of a text.
    pub fn width(&self, text: &str, size: f64) -> f64 {
        text.chars().map(|letter| self.advance(letter)).sum::<f64>() * size
    }

    /// From the begin of a letter to that of the next, in sizes.
    pub fn advance(&self, letter: char) -> f64 {
        let advance = |(face, glyph): (&Face<'static>, GlyphId)| {
            Some(f64::from(face.glyph_hor_advance(glyph)?) / f64::from(face.units_per_em()))
        };
        self.glyph(letter).and_then(advance).unwrap_or(MISSING)
    }

    /// Tells the outline of a letter to a builder, in sizes times `units` upwards from the line; gives what units a size has, or
    /// `None` for a letter that is not there.
    pub fn outline(&self, letter: char, builder: &mut dyn OutlineBuilder) -> Option<f64> {
        let (face, glyph) = self.glyph(letter)?;
        // A blank has no outline and is no missing letter.
        let _ = face.outline_glyph(glyph, builder);
        Some(f64::from(face.units_per_em()))
    }

    /// As much of a text as has room, with a mark where something is missing.
    pub fn cut(&self, text: &str, size: f64, room: f64) -> String {
        if self.width(text, size) <= room {
            return text.to_owned();
        }
        let room = room - self.width("…", size);
        let mut used = 0.0;
        let fits = |letter: &char| {
            used += self.advance(*letter) * size;
            used <= room
        };
        text.chars().take_while(fits).collect::<String>().trim_end().to_owned() + "…"
    }

    /// A text in at most so many lines, broken between words; what does not fit the last one is cut off.
    pub fn lines(&self, text: &str, size: f64, room: f64, most: usize) -> Vec<String> {
        let mut lines: Vec<String> = vec![String::new()];
        for word in text.split_whitespace() {
            let last = lines.len() - 1;
            let longer =
                if lines[last].is_empty() { word.to_owned() } else { format!("{} {word}", lines[last]) };
            if self.width(&longer, size) <= room || lines[last].is_empty() || lines.len() == most {
                lines[last] = longer;
            } else {
                lines.push(word.to_owned());
            }
        }
        lines.into_iter().map(|line| self.cut(&line, size, room)).collect()
    }

    fn glyph(&self, letter: char) -> Option<(&Face<'static>, GlyphId)> {
        let face = self.face.as_ref()?;
        Some((face, face.glyph_index(letter)?))
    }
}
