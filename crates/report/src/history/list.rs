//! Records, one a line, the newest first; columns go where the width does not hold them.

use serde_json::{Value, json};

use super::grid::{Cell, clean, cut, cut_end, lines, total, widths};
use super::words::{Summary, last_cause, minute, summary};
use super::{Listed, VERSION};
use crate::drawing::{FAINT, wrapped};
use crate::figure::seconds;
use crate::sheet::machine_line;

/// Narrowest column of names that still tells them apart.
const NAME_MIN: usize = 20;
/// Widest verdict: one with an interval fits.
const VERDICT_MAX: usize = 46;
/// Letters of a commit that are shown.
const COMMIT_LETTERS: usize = 7;

/// Records in the order in which they are shown.
#[derive(Debug)]
pub struct List<'a> {
    /// The newest first.
    pub records: &'a [Listed<'a>],
    /// Older ones that are not among them.
    pub hidden: usize,
}

/// Which columns are shown beside name, verdict and machine.
#[derive(Clone, Copy)]
struct Layout {
    when: bool,
    source: bool,
    length: bool,
    blocks: bool,
    long: bool,
}

impl List<'_> {
    /// All of it, in lines of at most `width` columns.
    pub fn text(&self, width: usize) -> String {
        if self.records.is_empty() {
            return String::new();
        }
        let dated = self.records.iter().all(|listed| has_stamp(listed.name));
        let layouts = layouts(dated);
        // One long name must not cost all others their columns.
        let most = (width * 2 / 5, VERDICT_MAX);
        let fits = |layout: &&Layout| total(&widths(&self.rows(**layout, most))) <= width;
        let layout = layouts.iter().find(fits).or(layouts.last());
        let mut out = layout.map(|layout| lines(&self.fitted(*layout, most, width))).unwrap_or_default();
        let older = format!("{} older not shown: --limit {}", self.hidden, self.hidden + self.records.len());
        if self.hidden > 0 {
            out += &format!("{FAINT}{}{FAINT:#}", wrapped(&older, "", "", width));
        }
        out + &self.unreadable(width) + &self.machines(width)
    }

    /// Names and verdicts are cut further where not even the narrowest layout fits.
    fn fitted(&self, layout: Layout, most: (usize, usize), width: usize) -> Vec<Vec<Cell>> {
        let rows = self.rows(layout, most);
        let columns = widths(&rows);
        let over = total(&columns).saturating_sub(width);
        if over == 0 {
            return rows;
        }
        let name = columns[0].saturating_sub(over).max(NAME_MIN.min(columns[0]));
        let verdict_at = if layout.when { 2 } else { 1 };
        let left = over.saturating_sub(columns[0] - name);
        self.rows(layout, (name, columns[verdict_at].saturating_sub(left).max(1)))
    }

    /// What is wrong with each that cannot be read.
    fn unreadable(&self, width: usize) -> String {
        let wrong = self.records.iter().filter_map(|listed| Some((listed.name, listed.found.err()?)));
        wrong
            .map(|(name, why)| wrapped(&clean(&format!("{name}: {}", last_cause(why))), "", "  ", width))
            .collect()
    }

    fn rows(&self, layout: Layout, (name, verdict): (usize, usize)) -> Vec<Vec<Cell>> {
        let heads = [
            (true, Cell::text("record")),
            (layout.when, Cell::text("when (UTC)")),
            (true, Cell::text("verdict")),
            (layout.blocks, Cell::figure("blocks")),
            (layout.length, Cell::figure("length")),
            (true, Cell::text("on")),
            (layout.source, Cell::text("source")),
        ];
        let chosen = |cells: [(bool, Cell); 7]| -> Vec<Cell> {
            cells.into_iter().filter(|(shown, _)| *shown).map(|(_, cell)| cell).collect()
        };
        let head = chosen(heads.map(|(shown, cell)| (shown, cell.styled(FAINT))));
        let row = |listed: &Listed<'_>| {
            let Summary { style, long, short } = summary(listed);
            let text = cut_end(if layout.long { &long } else { &short }, verdict);
            let dash = || "–".to_owned();
            let found = listed.found.ok();
            let length = found.and_then(|found| Some(seconds(found.ended.as_ref()?.seconds)));
            chosen([
                (true, Cell::text(cut(listed.name, name))),
                (layout.when, Cell::text(minute(listed.created))),
                (true, Cell::text(text).styled(style)),
                (layout.blocks, Cell::figure(found.map_or_else(dash, |found| found.blocks.to_string()))),
                (layout.length, Cell::figure(length.unwrap_or_else(dash))),
                (true, Cell::text(listed.machine.clone().unwrap_or_else(dash))),
                (layout.source, Cell::text(source(listed).unwrap_or_else(dash))),
            ])
        };
        std::iter::once(head).chain(self.records.iter().map(row)).collect()
    }

    /// What the letters stand for.
    fn machines(&self, width: usize) -> String {
        let mut known: Vec<(&str, String)> = Vec::new();
        for listed in self.records {
            let (Some(mark), Ok(found)) = (&listed.machine, listed.found) else { continue };
            if !known.iter().any(|(other, _)| other == mark) {
                known.push((mark, machine_line(&found.environment)));
            }
        }
        known.sort_by_key(|(mark, _)| (mark.len(), *mark));
        let line = |(mark, text): &(&str, String)| {
            let text = clean(text);
            wrapped(&format!("on {mark}: {text}"), "", "  ", width)
        };
        let lines: String = known.iter().map(line).collect();
        format!("{FAINT}{lines}{FAINT:#}")
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let one = |listed: &Listed<'_>| {
            let found = listed.found.ok();
            json!({
                "record": listed.name,
                "created": listed.created,
                "in_words": summary(listed).long,
                "running": listed.running,
                "machine": listed.machine,
                "unreadable": listed.found.err(),
                "essentials": found,
            })
        };
        json!({
            "history_version": VERSION,
            "records": self.records.iter().map(one).collect::<Vec<_>>(),
            "older_not_shown": self.hidden,
        })
    }
}

/// From the widest to the narrowest. The time is in most names already, and then goes first.
fn layouts(dated: bool) -> Vec<Layout> {
    let all = Layout { when: true, source: true, length: true, blocks: true, long: true };
    let mut layouts = vec![all];
    let mut next = |change: fn(&mut Layout)| {
        let mut layout = layouts[layouts.len() - 1];
        change(&mut layout);
        layouts.push(layout);
    };
    if dated {
        next(|layout| layout.when = false);
    }
    next(|layout| layout.source = false);
    next(|layout| layout.length = false);
    next(|layout| layout.blocks = false);
    next(|layout| layout.long = false);
    if !dated {
        next(|layout| layout.when = false);
    }
    layouts
}

/// Whether a name ends in the time at which it was made: `-20261121-145057`, maybe with a number behind it.
fn has_stamp(name: &str) -> bool {
    let digits =
        |part: &str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = name.rsplitn(4, '-').collect();
    match parts.as_slice() {
        [time, date, _, ..] if digits(date, 8) && digits(time, 6) => true,
        [_, time, date, _] => digits(date, 8) && digits(time, 6),
        _ => false,
    }
}

/// The services' commit, or the version of Proofload where there is none.
fn source(listed: &Listed<'_>) -> Option<String> {
    let found = listed.found.ok()?;
    let commit = found.environment.commit.as_ref().map(|commit| {
        let dirty = if commit.ends_with('+') { "+" } else { "" };
        commit.trim_end_matches('+').chars().take(COMMIT_LETTERS).collect::<String>() + dirty
    });
    Some(commit.unwrap_or_else(|| format!("v{}", found.proofload)))
}
