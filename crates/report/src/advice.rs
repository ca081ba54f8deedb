//! What a tuning came to: what to set, what it is worth, and what was tried besides. As a document, and as JSON.

use analysis::Outcome;
use analysis::tune::{Confirmation, Keep, Known, State, Tuning};
use model::Metric;
use model::document::{
    Answer, Block, Cell, Column, Document, Fit, Line, Row as TableRow, Table, Tone, Verdict,
};
use model::quantity::{Quantity, change_alone, interval, share, span};
use serde::Serialize;
use serde_json::Value;

use crate::Report;
use crate::page::Ratio;
use crate::plot::{Plot, Row as PlotRow};

/// Version of the JSON form; fields may be added within a version, never renamed or removed.
const VERSION: u32 = 1;

/// What became of a setting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Worth {
    /// To be set.
    Set,
    /// It helps, and is not part of the best choice, or a limit forbids it.
    HeldBack,
    /// It makes no difference that matters.
    Same,
    /// It makes things worse.
    Worse,
    /// Nobody knows yet.
    Undecided,
    /// It did not start, answered otherwise, or fell over.
    Failed,
    /// It was not tried.
    #[default]
    Skipped,
}

/// A setting, and what was found of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Tried {
    /// The setting.
    pub name: String,
    /// The level that was chosen, or screened, as people set it.
    pub level: String,
    /// What became of it.
    pub verdict: Worth,
    /// Its effect on what is judged; all effects together hold with 95 % confidence.
    pub effect: Option<Known>,
    /// Its effect on peak memory, likewise.
    pub memory: Option<Known>,
    /// Why it failed, was held back, or was not tried.
    pub why: Option<String>,
    /// About how much longer a screening takes that decides it, in seconds.
    pub more_s: Option<f64>,
    /// What it may cost besides what was measured.
    pub cost: String,
    /// Where the advice comes from.
    pub source: String,
}

/// What all that is to be set comes to, against the service as it is, on fresh runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Confirmed {
    /// On what is judged: ratio with its interval of 95 %.
    pub effect: Option<Known>,
    /// On peak memory.
    pub memory: Option<Known>,
    /// What the screening had said.
    pub predicted: Option<f64>,
    /// Whether the interval lies on the good side of 1: only then is anything advised.
    pub holds: bool,
    /// Limits that the choice breaks, or leaves open.
    pub limits: Vec<LimitSeen>,
    /// Why there is no effect.
    pub void: Option<String>,
}

/// A limit, as the confirmation saw it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitSeen {
    /// As it was written.
    pub limit: String,
    /// `pass`, `fail` or `open`.
    pub state: LimitState,
    /// What it bounds, against the service as it is.
    pub seen: Option<Known>,
}

/// How a limit stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitState {
    /// The whole interval keeps it.
    Pass,
    /// The whole interval breaks it.
    Fail,
    /// Neither, or there is no figure.
    Open,
}

/// What came of a tuning.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// Version of this form.
    pub advice_version: u32,
    /// The service.
    pub service: String,
    /// What is judged.
    pub metric: Metric,
    /// Whether throughput was judged per core-second.
    pub per_core: bool,
    /// The smallest difference that matters, as a fraction.
    pub margin: f64,
    /// Every setting, in the order of the catalogue.
    pub settings: Vec<Tried>,
    /// `None` where there was nothing to confirm.
    pub confirmed: Option<Confirmed>,
    /// The least effect that the screening finds in 8 of 10 runs, as a fraction.
    pub findable: Option<f64>,
    /// Why it ended early.
    pub ended: Option<String>,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// The folder with the records of all steps.
    pub folder: String,
    /// The experiment file that compares the choice with the service as it is.
    pub experiment: Option<String>,
    /// What to know of how it was measured.
    pub notes: Vec<String>,
    /// What a profile proposes to change in the service's code, which was not tried.
    pub proposals: Vec<String>,
}

impl Advice {
    /// What a tuning came to; the rest is for the caller to fill in. `skipped` was not tried, with the reason.
    pub fn of(tuning: &Tuning, skipped: &[(String, String)]) -> Advice {
        let spec = tuning.spec();
        let confirmed = tuning.confirmed().map(|confirmation| confirmed(tuning, confirmation.as_ref()));
        let advised = confirmed.as_ref().is_some_and(|confirmed| confirmed.holds);
        let tried = (0..spec.settings.len()).map(|of| tried(tuning, of, advised));
        let skipped = skipped.iter().map(|(name, why)| Tried {
            name: name.clone(),
            why: Some(why.clone()),
            ..Tried::default()
        });
        Advice {
            advice_version: VERSION,
            service: String::new(),
            metric: spec.metric,
            per_core: tuning.per_core(),
            margin: spec.margin,
            settings: tried.chain(skipped).collect(),
            confirmed,
            findable: tuning.findable(),
            ended: None,
            seconds: 0.0,
            folder: String::new(),
            experiment: None,
            notes: Vec::new(),
            proposals: Vec::new(),
        }
    }

    /// Those of which this became.
    pub fn of_worth(&self, verdict: Worth) -> impl Iterator<Item = &Tried> {
        self.settings.iter().filter(move |tried| tried.verdict == verdict)
    }
}

impl Tried {
    /// In a line with others of which the same became.
    fn in_short(&self) -> String {
        let effect = self.effect.as_ref().filter(|_| self.verdict != Worth::Same).map(told);
        let effect = effect.map(|(value, between)| format!(" {value} ({between})")).unwrap_or_default();
        let more = self.more_s.map(|more_s| format!(", about {} more would decide it", minutes(more_s)));
        let why = self.why.as_ref().map(|why| format!(", {why}"));
        format!("{}{effect}{}{}", self.level, why.unwrap_or_default(), more.unwrap_or_default())
    }
}

fn minutes(seconds: f64) -> String {
    span((seconds / 60.0).ceil() * 60.0)
}

fn tried(tuning: &Tuning, of: usize, advised: bool) -> Tried {
    let setting = &tuning.spec().settings[of];
    let chosen = tuning.chosen()[of];
    let held = tuning.held_back(of);
    let worst = held.iter().find(|(_, sure)| *sure).or(held.first());
    let limit = worst.map(|(keep, sure)| {
        let seen = keep.figure.metric().and_then(|metric| tuning.effect(of, metric));
        let seen = seen.map(|known| format!(" ({})", told(&known).1)).unwrap_or_default();
        match sure {
            true => format!("it breaks the limit {}{seen}", keep.text),
            false => format!("whether it keeps the limit {} is open{seen}", keep.text),
        }
    });
    let breaks = worst.is_some_and(|(_, sure)| *sure);
    let (verdict, why) = match &tuning.states()[of] {
        State::Failed(why) => (Worth::Failed, Some(why.clone())),
        State::Worse => (Worth::Worse, None),
        State::Same => (Worth::Same, None),
        State::Better if chosen > 0 && advised => (Worth::Set, None),
        State::Better if chosen > 0 => (Worth::HeldBack, Some("not confirmed on fresh runs".to_owned())),
        State::Better if breaks => (Worth::HeldBack, limit),
        State::Better => (Worth::HeldBack, Some("the others do better without it".to_owned())),
        State::Open if limit.is_some() => (Worth::HeldBack, limit),
        State::Open => (Worth::Undecided, None),
    };
    Tried {
        name: setting.name.clone(),
        level: setting.level(if chosen > 0 { chosen } else { setting.screened + 1 }).to_owned(),
        verdict,
        effect: tuning.effect(of, tuning.spec().metric),
        memory: tuning.effect(of, Metric::PeakMemory),
        why,
        more_s: (verdict == Worth::Undecided).then(|| tuning.more_s(of)).flatten(),
        cost: setting.cost.clone(),
        source: setting.source.clone(),
    }
}

fn confirmed(tuning: &Tuning, seen: Option<&Confirmation>) -> Confirmed {
    let spec = tuning.spec();
    let known = |metric: Metric| Some(seen?.iter().find(|(of, _)| *of == metric)?.1);
    let effect = known(spec.metric);
    let limit = |keep: &Keep| {
        let seen = keep.figure.metric().and_then(known);
        let state = match seen.map(|of| [of.low, of.high].map(|end| keep.holds(end))) {
            Some([true, true]) => LimitState::Pass,
            Some([false, false]) => LimitState::Fail,
            _ => LimitState::Open,
        };
        LimitSeen { limit: keep.text.clone(), state, seen }
    };
    let limits: Vec<LimitSeen> = spec.keep.iter().map(limit).collect();
    Confirmed {
        effect,
        memory: known(Metric::PeakMemory),
        predicted: tuning.predicted(),
        holds: tuning.holds(),
        limits,
        void: seen.is_none().then(|| "its confirmation is invalid: see its report".to_owned()),
    }
}

fn told(known: &Known) -> (String, String) {
    interval(known.ratio, known.low, known.high)
}

impl Report for Advice {
    fn document(&self) -> Document {
        self.drawn(self.others_table(), self.lines(true))
    }

    /// A line for all that need not be set and became the same.
    fn brief(&self) -> Document {
        self.drawn(Block::Lines(self.others_lines()), self.lines(false))
    }

    fn data(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// All effects, and what the choice came to on fresh runs.
    fn plot(&self) -> Option<Plot> {
        let together = self.confirmed.as_ref().and_then(|confirmed| confirmed.effect).map(|effect| {
            let outcome = if self.of_worth(Worth::Set).next().is_some() {
                Outcome::Better
            } else {
                Outcome::Inconclusive
            };
            plotted("all that is set, on fresh runs".to_owned(), outcome, "confirmation", &effect)
        });
        let each = WORDS.iter().flat_map(|(worth, _, word, outcome)| {
            self.of_worth(*worth)
                .filter_map(move |tried| Some(plotted(tried.level.clone(), *outcome, word, &tried.effect?)))
        });
        let rows: Vec<PlotRow> = together.into_iter().chain(each).collect();
        let title = format!("What makes {} faster?", self.service);
        let foot = vec![format!(
            "each figure is averaged over the other settings on and off; {}",
            span(self.seconds)
        )];
        (!rows.is_empty()).then(|| Plot::of_effects(title, self.metric.row().title, self.margin, rows, foot))
    }
}

/// What became of a setting: in a table and in a picture.
const WORDS: [(Worth, Tone, &str, Outcome); 5] = [
    (Worth::Set, Tone::Good, "set", Outcome::Better),
    (Worth::HeldBack, Tone::Notable, "held back", Outcome::Better),
    (Worth::Same, Tone::Same, "no difference", Outcome::Equivalent),
    (Worth::Worse, Tone::Bad, "worse", Outcome::Worse),
    (Worth::Undecided, Tone::Doubtful, "undecided", Outcome::Inconclusive),
];

fn plotted(name: String, outcome: Outcome, word: &str, known: &Known) -> PlotRow {
    let (value, between) = told(known);
    let span = Ratio { estimate: known.ratio, low: known.low, high: known.high };
    PlotRow {
        name,
        outcome,
        word: word.to_uppercase(),
        span: Some(span),
        told: format!("{value}  ({between})"),
    }
}

impl Advice {
    fn drawn(&self, others: Block, lines: Vec<Line>) -> Document {
        let mut blocks = vec![Block::Answers(vec![self.answer()]), self.set_table(), others];
        let failed = self.of_worth(Worth::Failed);
        let line = |tried: &Tried| Line {
            tone: Tone::Bad,
            ..Line::new(tried.level.clone(), tried.why.clone().unwrap_or_default())
        };
        blocks.push(Block::Lines(failed.map(line).collect()));
        blocks.push(Block::Lines(lines));
        blocks.push(Block::Steps(self.steps()));
        Document::new(format!("What makes {} faster?", self.service), blocks)
    }

    fn answer(&self) -> Answer {
        let metric = self.metric.row().title;
        let answer = |subject: String, tone, word: &str, detail: String, notes| Answer {
            subject,
            verdicts: vec![Verdict { tone, word: word.to_owned(), detail }],
            notes,
        };
        if let Some(ended) = &self.ended {
            return answer(ended.clone(), Tone::Doubtful, "ended early", String::new(), Vec::new());
        }
        let Some(confirmed) = &self.confirmed else {
            let found = self
                .findable
                .map(|least| format!("effects of {} and more would be found in 8 of 10 runs", share(least)));
            let subject = "none of these settings surely makes it faster".to_owned();
            return answer(subject, Tone::Same, "nothing to set", found.unwrap_or_default(), Vec::new());
        };
        let Some(effect) = &confirmed.effect else {
            let why = confirmed.void.clone().unwrap_or_else(|| "its confirmation has no interval".to_owned());
            return answer(why, Tone::Bad, "invalid", String::new(), Vec::new());
        };
        let (value, between) = told(effect);
        let mut notes = Vec::new();
        if let Some(predicted) = confirmed.predicted.filter(|of| *of < effect.low || *of > effect.high) {
            notes.push(format!("the screening had said {}", change_alone(predicted, 0)));
        }
        for LimitSeen { limit, state, seen } in &confirmed.limits {
            let seen = seen.as_ref().map(|known| format!(" ({})", told(known).1)).unwrap_or_default();
            match state {
                LimitState::Pass => {}
                LimitState::Fail => notes.push(format!("together they break the limit {limit}{seen}")),
                LimitState::Open => notes.push(format!("whether they keep the limit {limit} is open{seen}")),
            }
        }
        let set: Vec<&str> = self.of_worth(Worth::Set).map(|set| set.level.as_str()).collect();
        let (subject, tone, word, how) = match confirmed.holds {
            true => (set.join(", "), Tone::Good, "set these", ", confirmed on fresh runs"),
            false => {
                let subject = "what seemed to help did not hold".to_owned();
                (subject, Tone::Doubtful, "set nothing", " on fresh runs")
            }
        };
        answer(subject, tone, word, format!("{metric} {value} (95 % CI {between}){how}"), notes)
    }

    fn table_of(&self, heading: &str, rows: &[(Worth, Tone, &str, Outcome)]) -> Block {
        let metric = self.metric.row().title;
        let columns = [
            Column::text("setting", Fit::Wrapped),
            Column::text("", Fit::Whole),
            Column::figure(metric),
            Column::figure("interval").spare(1),
            Column::text("", Fit::Drawing).spare(3),
            Column::figure("memory").spare(2),
        ];
        let mut table = Table::new(heading, columns);
        for (verdict, tone, word, _) in rows {
            for tried in self.of_worth(*verdict) {
                let (value, between) = tried.effect.as_ref().map(told).unzip();
                let memory = tried.memory.as_ref().map(|known| change_alone(known.ratio, 0));
                let drawn = tried.effect.map_or(Cell::Missing, |known| {
                    Cell::Interval(Quantity::ratio(known.ratio), Some((known.low, known.high)))
                });
                table.push(vec![
                    Cell::text(tried.level.clone()),
                    Cell::Word(*tone, (*word).to_owned()),
                    Cell::optional(value),
                    Cell::optional(between),
                    drawn,
                    Cell::optional(memory),
                ]);
                if let Some(why) = &tried.why {
                    table.rows.push(TableRow::Note(Tone::Faint, why.clone()));
                }
                if let Some(more_s) = tried.more_s {
                    let more = format!("about {} more would decide it", minutes(more_s));
                    table.rows.push(TableRow::Note(Tone::Faint, more));
                }
            }
        }
        Block::Table(table)
    }

    fn set_table(&self) -> Block {
        self.table_of("", &WORDS[..1])
    }

    fn others_table(&self) -> Block {
        self.table_of("tried besides", &WORDS[1..])
    }

    fn others_lines(&self) -> Vec<Line> {
        let line = |(worth, tone, word, _): &(Worth, Tone, &str, Outcome)| {
            let each: Vec<String> = self.of_worth(*worth).map(Tried::in_short).collect();
            (!each.is_empty()).then(|| Line { tone: *tone, ..Line::new(*word, each.join("; ")) })
        };
        WORDS[1..].iter().filter_map(line).collect()
    }

    /// What to know besides; with sources and method where `all` is to be said.
    fn lines(&self, all: bool) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        for tried in self.of_worth(Worth::Set).filter(|tried| !tried.cost.is_empty()) {
            let detail = if all { tried.source.clone() } else { String::new() };
            lines.push(Line { detail, ..Line::new("price", format!("{}: {}", tried.level, tried.cost)) });
        }
        if let Some(memory) = self.confirmed.as_ref().and_then(|confirmed| confirmed.memory.as_ref()) {
            let (value, between) = told(memory);
            lines.push(Line::new("memory", format!("{value} ({between}), all together")));
        }
        for LimitSeen { limit, seen, .. } in self.confirmed.iter().flat_map(|confirmed| &confirmed.limits) {
            let seen = seen.as_ref().map(told).map(|(value, between)| format!("{value} ({between})"));
            let seen = seen.unwrap_or_else(|| "not measured".to_owned());
            lines.push(Line::new("limit", format!("{limit}: {seen}")));
        }
        if let Some(least) = self.findable {
            lines.push(Line::new(
                "power",
                format!("effects of {} and more are found in 8 of 10 runs", share(least)),
            ));
        }
        let skipped: Vec<&str> = self.of_worth(Worth::Skipped).map(|tried| tried.name.as_str()).collect();
        if !skipped.is_empty() {
            lines.push(Line::new("not tried", format!("{} (--list says why)", skipped.join(", "))));
        }
        if all {
            let how = "each figure is averaged over the other settings on and off; all intervals hold together with 95 %";
            lines.push(Line::new("how", how));
        }
        lines.extend(self.proposals.iter().map(|text| Line::new("in the code", text.clone())));
        lines.extend(self.notes.iter().map(|note| Line::new("note", note.clone())));
        lines.push(Line::new("records", format!("{} ({})", self.folder, span(self.seconds))));
        lines
    }

    fn steps(&self) -> Vec<String> {
        let picture = (!self.folder.is_empty()).then(|| format!("as a picture: {}/advice.html", self.folder));
        let again =
            self.experiment.as_ref().map(|file| format!("to compare both again: proofload run {file}"));
        picture.into_iter().chain(again).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(level: &str, verdict: Worth, (ratio, low, high): (f64, f64, f64)) -> Tried {
        Tried {
            level: level.to_owned(),
            verdict,
            effect: Some(Known { ratio, low, high }),
            ..Tried::default()
        }
    }

    #[test]
    fn the_summary_has_a_line_for_what_need_not_be_set() {
        let open = Tried { more_s: Some(350.0), ..tried("huge pages", Worth::Undecided, (1.02, 0.99, 1.06)) };
        let why = Some("the others do better without it".to_owned());
        let held = Tried { why, ..tried("jemalloc", Worth::HeldBack, (1.034, 1.008, 1.061)) };
        let cost = "memory for each process".to_owned();
        let set = Tried { cost, ..tried("2 processes (cluster)", Worth::Set, (1.58, 1.41, 1.77)) };
        let same =
            ["UV_THREADPOOL_SIZE=8", "POOL=4"].map(|level| tried(level, Worth::Same, (1.0, 0.98, 1.02)));
        let worse = tried("gzip in the service", Worth::Worse, (0.72, 0.62, 0.82));
        let effect = Some(Known { ratio: 1.6, low: 1.5, high: 1.7 });
        let limit = LimitSeen { limit: "p99 < +25%".to_owned(), state: LimitState::Pass, seen: effect };
        let (memory, predicted, holds, void) = (effect, None, true, None);
        let confirmed = Confirmed { effect, memory, predicted, holds, limits: vec![limit], void };
        let [first, second] = same;
        let advice = Advice {
            advice_version: VERSION,
            service: "node server.js".to_owned(),
            metric: Metric::Throughput,
            per_core: false,
            margin: 0.03,
            settings: vec![set, first, second, worse, open, held],
            confirmed: Some(confirmed),
            findable: Some(0.07),
            ended: None,
            seconds: 590.0,
            folder: "records/tune".to_owned(),
            experiment: Some("tuned.toml".to_owned()),
            notes: Vec::new(),
            proposals: vec!["Synchronous crypto: pbkdf2Sync, called by inLoop (signer.js:18).".to_owned()],
        };
        let text = crate::text::text(&advice.brief(), 100);
        insta::assert_snapshot!(anstream::adapter::strip_str(&text).to_string());
    }
}
