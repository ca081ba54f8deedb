//! The terminal of the live view: its modes, and the self-updating lines at its end.
//!
//! Modes: keys are read one by one without echo, and the cursor is hidden. The modes are restored however the
//! program ends. A terminal that belongs to another job is neither read nor changed. Ctrl-C and Ctrl-Z remain
//! signals.
//!
//! Lines: computes the bytes that turn the current lines into new ones, with permanent messages above. All
//! movement is relative to the cursor, which is always at the end of the last line. ratatui's inline viewport
//! queries the terminal for the cursor position, and crossterm does so on stdout, which carries our data. The
//! viewport also has a fixed height, and leaves remains if a window gets narrower (ratatui issues 2086,
//! 2640).

use std::fmt::Write;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};
use std::{io, panic};

use anstyle::Style;
use rustix::io::write;
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcgetwinsize,
    tcsetattr,
};
use unicode_width::UnicodeWidthStr;

use super::drawing::StyledLine;

/// The original modes, once they were changed.
static FOUND: OnceLock<Termios> = OnceLock::new();
/// Whether keys are read one by one, and whether the cursor is hidden.
static KEYS: AtomicBool = AtomicBool::new(false);
static HIDDEN: AtomicBool = AtomicBool::new(false);

const HIDE: &[u8] = b"\x1b[?25l";
const SHOW: &[u8] = b"\x1b[?25h";

/// Whether this program may draw on the terminal of stderr: a shell assigns it to one job at a time.
pub fn is_ours() -> bool {
    is_in_front(io::stderr())
}

/// Whether no other job has this terminal. A terminal without job control is available to all.
fn is_in_front(terminal: impl AsFd) -> bool {
    tcgetpgrp(terminal).map_or(true, |group| group == getpgrp())
}

/// Restores the terminal before a panic message.
pub fn leave_on_panic() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            leave();
            before(panic);
        }));
    });
}

/// Columns and rows of the terminal on stderr. `None` if it has none.
pub fn size() -> Option<(u16, u16)> {
    let size = tcgetwinsize(io::stderr()).ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some((size.ws_col, size.ws_row))
}

/// Whether the modes are set for the view.
pub fn is_taken() -> bool {
    HIDDEN.load(Ordering::SeqCst)
}

/// Sets the modes for the view, with `keys` if stdin is to be read. Only for a terminal of this job.
pub fn take(keys: bool) {
    HIDDEN.store(true, Ordering::SeqCst);
    let _ = write(io::stderr(), HIDE);
    if !keys || !is_in_front(io::stdin()) {
        return;
    }
    let Ok(found) = tcgetattr(io::stdin()) else {
        return;
    };
    let found = FOUND.get_or_init(|| found);
    let mut modes = found.clone();
    modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    KEYS.store(true, Ordering::SeqCst);
    let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
}

/// Restores the modes. May be called from a signal handler: it only uses atomics and system calls, no
/// allocations and no locks.
pub fn give_back() {
    if HIDDEN.swap(false, Ordering::SeqCst) {
        let _ = write(io::stderr(), SHOW);
    }
    // In the background this would stop the program instead.
    let keys = KEYS.swap(false, Ordering::SeqCst) && is_in_front(io::stdin());
    if let Some(found) = FOUND.get().filter(|_| keys) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, found);
    }
}

/// Restores the modes and keeps the view: later output begins on a new line. May be called from a signal
/// handler.
pub fn leave() {
    if is_taken() {
        let _ = write(io::stderr(), b"\r\n");
    }
    give_back();
}

/// Clears from the cursor to the end of the line, and of the screen.
const TO_END_OF_LINE: &str = "\x1b[K";
const TO_END_OF_SCREEN: &str = "\x1b[J";
/// A terminal that supports these sequences shows the update between them at once.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";

/// A line on the screen.
#[derive(PartialEq, Eq)]
struct Painted {
    text: String,
    columns: usize,
}

/// The self-updating lines at the end of a terminal.
pub struct Surface {
    lines: Vec<Painted>,
    /// Width of the terminal when they were painted.
    columns: u16,
    styled: bool,
}

impl Surface {
    /// An empty surface, with or without styles.
    pub fn new(styled: bool) -> Surface {
        Surface {
            lines: Vec::new(),
            columns: 0,
            styled,
        }
    }

    /// The bytes that print a message above, and then the lines. Empty if nothing changes.
    pub fn paint(&mut self, said: &[String], lines: &[StyledLine], columns: u16) -> String {
        let lines: Vec<Painted> = lines
            .iter()
            .map(|line| painted(line, self.styled))
            .collect();
        let mut out = String::new();
        if !said.is_empty() || columns != self.columns {
            out += &self.erase(columns);
            for text in said {
                let plain = || anstream::adapter::strip_str(text).to_string();
                let text = if self.styled { text.clone() } else { plain() };
                out += &text.replace('\n', "\r\n");
                out += "\r\n";
            }
        }
        if self.lines.is_empty() {
            let texts: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
            out += &texts.join("\r\n");
        } else if lines != self.lines {
            out += &self.renewed(&lines);
        }
        (self.lines, self.columns) = (lines, columns);
        if out.is_empty() {
            out
        } else {
            format!("{BEGIN}{out}{END}")
        }
    }

    /// The bytes that remove everything, on a terminal with its current width: in a narrower terminal lines
    /// have wrapped.
    pub fn erase(&mut self, columns: u16) -> String {
        let columns = usize::from(columns).max(1);
        let rows: usize = self
            .lines
            .iter()
            .map(|line| line.columns.div_ceil(columns).max(1))
            .sum();
        self.lines.clear();
        if rows == 0 {
            String::new()
        } else {
            format!("{}{TO_END_OF_SCREEN}", up(rows))
        }
    }

    /// Leaves the lines on the screen, because other output follows them.
    pub fn forget(&mut self) {
        self.lines.clear();
    }

    /// The bytes that overwrite the existing lines. Nothing is cleared before, to avoid flicker.
    fn renewed(&self, lines: &[Painted]) -> String {
        let texts: Vec<String> = lines
            .iter()
            .map(|line| format!("{}{TO_END_OF_LINE}", line.text))
            .collect();
        let rest = if lines.len() < self.lines.len() {
            TO_END_OF_SCREEN
        } else {
            ""
        };
        format!("{}{}{rest}", up(self.lines.len()), texts.join("\r\n"))
    }
}

/// Moves the cursor from the last row to the start of the first of `rows`.
fn up(rows: usize) -> String {
    if rows > 1 {
        format!("\r\x1b[{}A", rows - 1)
    } else {
        "\r".to_owned()
    }
}

fn painted(line: &StyledLine, styled: bool) -> Painted {
    let (mut text, mut now) = (String::new(), Style::new());
    for (part, style) in line {
        let style = if styled { *style } else { Style::new() };
        if style != now {
            // Writing to a string cannot fail.
            let _ = write!(text, "{now:#}{style}");
            now = style;
        }
        text += part;
    }
    let _ = write!(text, "{now:#}");
    Painted {
        text,
        columns: line.iter().map(|(part, _)| part.width()).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(lines: &[&str]) -> Vec<StyledLine> {
        lines
            .iter()
            .map(|line| vec![(line.to_string(), Style::new())])
            .collect()
    }

    fn shown(text: &str) -> String {
        text.trim_start_matches(BEGIN)
            .trim_end_matches(END)
            .replace('\x1b', "^")
            .replace("\r\n", "|")
    }

    #[test]
    fn what_is_there_is_written_over_and_nothing_is_cleared_before() {
        let mut surface = Surface::new(false);
        assert_eq!(
            shown(&surface.paint(&[], &lines(&["one", "two", "three"]), 80)),
            "one|two|three"
        );
        assert_eq!(surface.paint(&[], &lines(&["one", "two", "three"]), 80), "");
        assert_eq!(
            shown(&surface.paint(&[], &lines(&["one", "2", "three"]), 80)),
            "\r^[2Aone^[K|2^[K|three^[K"
        );
        assert_eq!(
            shown(&surface.paint(&[], &lines(&["one"]), 80)),
            "\r^[2Aone^[K^[J"
        );
        assert_eq!(
            shown(&surface.paint(&[], &lines(&["one", "two"]), 80)),
            "\rone^[K|two^[K"
        );
    }

    #[test]
    fn what_is_said_stays_above_and_a_narrower_window_is_cleaned_of_wrapped_lines() {
        let mut surface = Surface::new(false);
        surface.paint(&[], &lines(&["0123456789", "x"]), 80);
        assert_eq!(
            shown(&surface.paint(&["said".into()], &lines(&["x"]), 80)),
            "\r^[1A^[Jsaid|x"
        );
        surface.paint(&[], &lines(&["0123456789", "x"]), 80);
        // Ten columns are three rows of four, and one for the x.
        assert_eq!(shown(&surface.paint(&[], &lines(&["y"]), 4)), "\r^[3A^[Jy");
        assert_eq!(
            (shown(&surface.erase(4)), surface.erase(4)),
            ("\r^[J".to_owned(), String::new())
        );
    }

    #[test]
    fn wide_characters_take_their_columns_and_styles_are_left_out_where_there_are_to_be_none() {
        let red = anstyle::AnsiColor::Red.on_default();
        let lines = [vec![
            ("表 ".to_owned(), Style::new()),
            ("x".to_owned(), red),
        ]];
        let mut surface = Surface::new(true);
        assert_eq!(shown(&surface.paint(&[], &lines, 80)), "表 ^[31mx^[0m");
        assert_eq!(surface.lines[0].columns, 4);
        let mut surface = Surface::new(false);
        assert_eq!(shown(&surface.paint(&[], &lines, 80)), "表 x");
    }
}
