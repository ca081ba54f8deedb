//! The live view as lines of text with styles: from a state and the size of a terminal to a buffer of cells. Pure.
//!
//! Whatever does not fit is cut or counted, the most telling kept longest: where the run is, comparisons, variants.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};
use report::{count, seconds, share};

use super::keys::{Shown, Wish};
use super::state::State;
use super::{parts, words};

/// From this height on parts have an empty line between them.
const AIRY_ROWS: usize = 18;
/// Steal below this share is not worth a line.
const STEAL_TOLD: f64 = 0.05;
/// From this width on the time is drawn as a bar, too.
const TIME_BAR_FROM: usize = 72;

pub(super) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(super) const FAINT: Style = Style::new().add_modifier(Modifier::DIM);
pub(super) const WARN: Style = Style::new().fg(Color::Yellow);
pub(super) const BAD: Style = Style::new().fg(Color::Red);

/// What is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// The run so far.
    pub state: &'a State,
    /// What the user wants to see, and to be done.
    pub shown: &'a Shown,
    /// The last lines of the services' logs, where they are shown.
    pub logs: &'a [String],
    /// Seconds since the state took in its last update.
    pub since_s: f64,
}

/// Draws a view for a terminal of so many columns and rows. The buffer has as many rows as are needed, at most one less than the
/// terminal, and leaves the last column free: what is written there wraps on some terminals.
pub fn draw(frame: Frame<'_>, columns: u16, rows: u16) -> Buffer {
    let width = usize::from(columns.saturating_sub(1)).max(1);
    let lines = lines(frame, width, usize::from(rows.saturating_sub(1)).max(1));
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let width = u16::try_from(width).unwrap_or(u16::MAX);
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    for (row, line) in (0..height).zip(&lines) {
        buffer.set_line(0, row, line, width);
    }
    buffer
}

fn lines(frame: Frame<'_>, width: usize, height: usize) -> Vec<Line<'static>> {
    let mut head = vec![title(frame.state, width), place(frame, width), doing(frame)];
    let mut foot = alerts(frame.state);
    foot.extend(extra(frame, height));
    foot.push(keys(frame.shown, width));
    let airy = height >= AIRY_ROWS;
    let gaps = if airy { 3 } else { 0 };
    let room = height.saturating_sub(head.len() + foot.len() + gaps);
    let body = parts::Body::of(frame.state, width).within(room);
    for part in [body.comparisons, body.variants] {
        if airy && !part.is_empty() {
            head.push(Line::default());
        }
        head.extend(part);
    }
    if airy {
        head.push(Line::default());
    }
    // The keys stay, whatever else has to go.
    let kept = height.saturating_sub(1).min(head.len() + foot.len() - 1);
    let last = foot.pop();
    head.extend(foot);
    head.truncate(kept);
    head.extend(last);
    head
}

fn title(state: &State, width: usize) -> Line<'static> {
    let (name, question) = (state.plan().name.clone(), state.plan().question.clone().unwrap_or_default());
    let room = width.saturating_sub(parts::columns(&name) + 2);
    Line::from(vec![
        Span::styled(name, BOLD),
        Span::raw("  "),
        Span::styled(parts::cut(&question, room), FAINT),
    ])
}

/// Which block, how long it took, how long it may still take; and the time once more as a bar, where there is room.
fn place(frame: Frame<'_>, width: usize) -> Line<'static> {
    let (elapsed_s, left_s) = frame.state.times(frame.since_s);
    let text = words::position(frame.state, frame.since_s);
    let room = width.saturating_sub(parts::columns(&text) + 2).min(30);
    if width < TIME_BAR_FROM || room < 8 || left_s <= 0.0 {
        return Line::from(parts::cut(&text, width));
    }
    let share = elapsed_s / (elapsed_s + left_s);
    let done = (share * room as f64).round() as usize;
    Line::from(vec![
        Span::raw(text),
        Span::raw("  "),
        Span::styled("━".repeat(done), Style::new().fg(Color::Cyan)),
        Span::styled("─".repeat(room - done), FAINT),
    ])
}

fn doing(frame: Frame<'_>) -> Line<'static> {
    let Frame { state, shown, since_s, .. } = frame;
    match shown.wish {
        Wish::Stop => Line::styled("stopping: services are ended, then the report is drawn", WARN),
        _ if state.paused => {
            let text =
                format!("paused for {}: nothing is measured; p goes on", seconds(since_s.floor().max(1.0)));
            Line::styled(text, WARN)
        }
        Wish::Pause => Line::styled(format!("{}; pausing when that is done", state.doing), WARN),
        Wish::None => Line::from(state.doing.clone()),
    }
}

/// What is wrong, in lines of its own; that nothing is, in one.
fn alerts(state: &State) -> Vec<Line<'static>> {
    let failures = &state.failures;
    let mut lines = Vec::new();
    if failures.failed > 0 {
        let ways = failures.most_frequent();
        let ways = ways.map_or(String::new(), |(way, times)| format!(": {way} ({})", count(times)));
        let text =
            format!("{} of {} requests failed{ways}", count(failures.failed), count(failures.requests));
        lines.push(Line::from(vec![Span::styled("errors  ", FAINT), Span::styled(text, BAD)]));
    } else if failures.requests > 0 {
        let text = format!("none in {} requests", count(failures.requests));
        lines.push(Line::styled(format!("errors  {text}"), FAINT));
    }
    if state.steal_share > STEAL_TOLD {
        let text = format!("{} of the CPU time", share(state.steal_share));
        lines.push(Line::from(vec![Span::styled("steal   ", FAINT), Span::styled(text, WARN)]));
    }
    lines
}

/// What is shown only when it is asked for: help, logs.
fn extra(frame: Frame<'_>, height: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if frame.shown.help {
        lines.extend(HELP.iter().map(|(key, text)| {
            Line::from(vec![Span::styled(format!("{key:<8}"), BOLD), Span::styled(*text, FAINT)])
        }));
    }
    if frame.shown.logs {
        lines.push(Line::styled("the services' last words, from the record's logs", FAINT));
        let room = (height / 3).max(3);
        let logs = &frame.logs[frame.logs.len().saturating_sub(room)..];
        lines.extend(logs.iter().map(|line| Line::from(format!("  {line}"))));
        if logs.is_empty() {
            lines.push(Line::styled("  nothing so far", FAINT));
        }
    }
    lines
}

/// What each key does, in lines that the narrowest terminal has room for.
const HELP: [(&str, &str); 8] = [
    ("q, s", "stop early with what there is, as Ctrl-C does: the"),
    ("", "record is closed and the report printed; once more"),
    ("", "leaves at once"),
    ("p", "pause before the next slice, and go on; meanwhile"),
    ("", "the budget does not run; a block that waits for"),
    ("", "more than 3 s with its services is measured anew"),
    ("l", "show or hide what the services said last"),
    ("?", "show or hide this"),
];

fn keys(shown: &Shown, width: usize) -> Line<'static> {
    let pause = if shown.wish == Wish::Pause { "go on" } else { "pause" };
    let stop = if width < 60 { "stop" } else { "stop with what there is" };
    let keys = [("q", stop), ("p", pause), ("l", "logs"), ("?", "help")];
    if !shown.keys {
        return Line::styled("Ctrl-C stops with what there is", FAINT);
    }
    let key = |(key, text)| [Span::styled(key, BOLD), Span::styled(format!(" {text}   "), FAINT)];
    Line::from(keys.into_iter().flat_map(key).collect::<Vec<_>>())
}
