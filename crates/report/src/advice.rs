//! Result of a tuning: settings to apply, their confirmed effect, and all other settings that were tried. As
//! a document, and as JSON.

use analysis::tune::{Confirmation, EffectEstimate, Keep, LineToWrite, SettingState, Tuning};
use analysis::{Outcome, Ruling};
use model::document::{
    Cell, Column, ColumnFit, Document, DocumentPart, NamedText, QuestionAnswer, Table, TableRow,
    Tone,
};
use model::quantity::{Quantity, change_alone, interval, many, share, span};
use model::{Metric, exit_code};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Report;
use crate::page::Ratio;
use crate::plot::{self, Plot};

/// Verdict about a setting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Worth {
    /// To be applied.
    Set,
    /// It helps, but together with the other chosen settings it may break a limit.
    LimitOpen,
    /// It helps, but is not part of the best choice, or a limit forbids it.
    HeldBack,
    /// It makes no difference that matters.
    Same,
    /// It makes things worse.
    Worse,
    /// Not decided yet.
    Undecided,
    /// The service did not start, responded differently, or failed.
    Failed,
    /// It was not tried.
    #[default]
    Skipped,
}

impl Worth {
    /// Whether it is part of a choice that helps.
    fn is_chosen(self) -> bool {
        matches!(self, Worth::Set | Worth::LimitOpen)
    }
}

/// A setting, and its results.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TriedSetting {
    /// The setting.
    pub name: String,
    /// The chosen or screened level, in the user's notation.
    pub level: String,
    /// Verdict about the setting.
    pub verdict: Worth,
    /// Its effect on the judged metric. All effects together hold with 95 % confidence.
    pub effect: Option<EffectEstimate>,
    /// The lines that apply the level, as the user writes them.
    pub lines: Vec<LineToWrite>,
    /// Its effect on peak memory, with the same confidence.
    pub memory: Option<EffectEstimate>,
    /// Its effect on the limited response time, at a rate. `None` if none is limited, or it was not measured.
    pub latency: Option<EffectEstimate>,
    /// Why it failed, was held back, or was not tried. Also the level that the figures belong to.
    pub why: Option<String>,
    /// Levels that were not tried, because the representative level did not help.
    pub untried_levels: Vec<String>,
    /// Approximate additional screening time until a decision, in seconds.
    pub more_s: Option<f64>,
    /// Possible costs that were not measured.
    pub cost: String,
    /// Source of the advice.
    pub source: String,
}

/// Confirmed effect of all chosen settings against the unchanged service, on fresh runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Confirmed {
    /// Effect on the judged metric: ratio with its 95 % interval.
    pub effect: Option<EffectEstimate>,
    /// Effect on peak memory.
    pub memory: Option<EffectEstimate>,
    /// Effect on the limited response time, at a rate.
    pub latency: Option<EffectEstimate>,
    /// Prediction from the screening.
    pub predicted: Option<f64>,
    /// Whether the interval is on the good side of 1, and no limit is certainly broken. Only then is anything
    /// advised.
    pub holds: bool,
    /// Limits that the choice breaks, or leaves open.
    pub limits: Vec<LimitSeen>,
    /// Reason if there is no effect.
    pub invalid: Option<String>,
}

/// Result of a limit in the confirmation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitSeen {
    /// The limit as it was written.
    pub limit: String,
    /// Whether its whole interval keeps the limit. Inconclusive also without a figure.
    pub outcome: Ruling,
    /// The bounded figure, relative to the unchanged service.
    pub measured: Option<EffectEstimate>,
}

/// Result of a tuning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Advice {
    /// The service.
    pub service: String,
    /// Name of the experiment.
    pub experiment_name: String,
    /// When the tuning began, RFC 3339 in UTC.
    pub created: String,
    /// The command that made it, without secrets.
    pub command: String,
    /// The response time that a limit of `--keep` bounds, if any.
    pub latency: Option<Metric>,
    /// The judged metric.
    pub metric: Metric,
    /// Whether throughput was judged per core-second.
    pub per_core: bool,
    /// The smallest difference that matters, as a fraction.
    pub margin: f64,
    /// Every setting, in the order of the catalogue.
    pub settings: Vec<TriedSetting>,
    /// `None` if there was nothing to confirm.
    pub confirmed: Option<Confirmed>,
    /// The smallest effect that the screening finds in 8 of 10 runs, as a fraction.
    pub findable: Option<f64>,
    /// Reason for an early end.
    pub ended: Option<String>,
    /// Duration in seconds.
    pub seconds: f64,
    /// The folder with the records of all steps.
    pub folder: String,
    /// The experiment file that compares the choice with the unchanged service.
    pub experiment: Option<String>,
    /// Notes on the measurement.
    pub notes: Vec<String>,
    /// Number of failed blocks, and the reason of the last failure.
    pub lost: Option<String>,
    /// Changes to the service's code that a profile suggests and that were not tried.
    pub proposals: Vec<String>,
}

impl Advice {
    /// Creates the result of a tuning of a service with this command. The caller fills in the remaining fields.
    /// `skipped` are settings that were not tried, with the reasons.
    pub fn of(tuning: &Tuning, command: &[String], skipped: &[(String, String)]) -> Advice {
        let spec = &tuning.spec;
        let confirmed = tuning
            .confirmed
            .as_ref()
            .map(|confirmation| confirmed(tuning, confirmation.as_ref()));
        let advised = confirmed
            .as_ref()
            .map_or(Err("not confirmed on fresh runs"), Confirmed::advised);
        let tried = (0..spec.settings.len()).map(|of| tried(tuning, command, of, advised));
        let skipped = skipped.iter().map(|(name, why)| TriedSetting {
            name: name.clone(),
            why: Some(why.clone()),
            ..TriedSetting::default()
        });
        Advice {
            service: String::new(),
            experiment_name: String::new(),
            created: String::new(),
            command: String::new(),
            latency: limited_latency(tuning),
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
            lost: tuning.lost.last().map(|why| {
                format!(
                    "{} failed, without figures: {why}",
                    many(tuning.lost.len() as u64, "block")
                )
            }),
            proposals: Vec::new(),
        }
    }

    /// The settings that help, confirmed on fresh runs: to be applied, or with a limit open.
    fn chosen(&self) -> impl Iterator<Item = &TriedSetting> {
        self.settings
            .iter()
            .filter(|tried| tried.verdict.is_chosen())
    }

    /// Whether nothing may be concluded: the confirmation, or all of the screening.
    fn is_invalid(&self) -> bool {
        match &self.confirmed {
            Some(confirmed) => confirmed.effect.is_none(),
            None => self.findable.is_none() && self.lost.is_some(),
        }
    }

    /// The exit code of every command that prints it.
    pub fn exit_code(&self) -> u8 {
        if self.ended.is_some() {
            exit_code::INTERRUPTED
        } else if self.is_invalid() {
            exit_code::VOID
        } else {
            0
        }
    }

    /// Result in a few words, for lists.
    pub fn in_short(&self) -> (Tone, String) {
        let answer = self.answer();
        let verdict = &answer.verdicts[0];
        let effect = self
            .confirmed
            .as_ref()
            .and_then(|confirmed| confirmed.effect);
        let effect = effect
            .as_ref()
            .map(|known| format!(" {} {}", told(known).0, self.metric.name()));
        (
            verdict.tone,
            format!("{}{}", verdict.word, effect.unwrap_or_default()),
        )
    }

    /// Settings with this verdict.
    pub fn of_worth(&self, verdict: Worth) -> impl Iterator<Item = &TriedSetting> {
        self.settings
            .iter()
            .filter(move |tried| tried.verdict == verdict)
    }
}

impl Confirmed {
    /// Verdict about the choice, or why it is not advised.
    fn advised(&self) -> Result<Worth, &'static str> {
        match self.limits.iter().map(|limit| limit.outcome).max() {
            _ if self.invalid.is_some() => Err("the confirmation is invalid"),
            Some(Ruling::Fail) => Err("what helps breaks a limit"),
            _ if !self.holds => Err("not confirmed on fresh runs"),
            Some(Ruling::Inconclusive) => Ok(Worth::LimitOpen),
            Some(Ruling::Pass) | None => Ok(Worth::Set),
        }
    }
}

impl TriedSetting {
    /// Short form for a line with other settings of the same verdict.
    fn in_short(&self) -> String {
        let mut told = self.level.clone();
        if let Some((value, between)) = self
            .effect
            .as_ref()
            .filter(|_| self.verdict != Worth::Same)
            .map(self::told)
        {
            told += &format!(" {value} ({between})");
        }
        told.extend(self.remarks().map(|remark| format!(", {remark}")));
        told
    }

    /// The reason, and the time until a decision.
    fn remarks(&self) -> impl Iterator<Item = String> {
        let more = self
            .more_s
            .map(|more_s| format!("about {} more would decide it", minutes(more_s)));
        self.why.clone().into_iter().chain(more)
    }
}

fn minutes(seconds: f64) -> String {
    span((seconds / 60.0).ceil() * 60.0)
}

/// The first response time that a limit bounds.
fn limited_latency(tuning: &Tuning) -> Option<Metric> {
    let keep = tuning.spec.keep.iter().find(|keep| keep.is_latency());
    keep?.figure.metric()
}

/// Results of a setting. `advised` is the verdict about the choice.
fn tried(
    tuning: &Tuning,
    command: &[String],
    of: usize,
    advised: Result<Worth, &str>,
) -> TriedSetting {
    let spec = &tuning.spec;
    let setting = &spec.settings[of];
    let (chosen, screened) = (tuning.chosen[of], setting.screened + 1);
    let raced = tuning.won[of];
    let level = if chosen > 0 {
        chosen
    } else {
        raced.unwrap_or(screened)
    };
    let screened_only = (level != screened).then(|| {
        format!(
            "its effect and memory are those of {}, which was screened",
            setting.level(screened)
        )
    });
    let effect = tuning.effect(of, spec.metric);
    let helps = effect.is_some_and(|known| known.is_better(spec.metric));
    let held = tuning.held_back(of);
    let worst = held.iter().max_by_key(|(_, ruling)| *ruling);
    let breaks = worst.is_some_and(|(_, ruling)| *ruling == Ruling::Fail);
    let limit = worst.map(|(keep, _)| {
        let seen = keep
            .figure
            .metric()
            .and_then(|metric| tuning.effect(of, metric));
        let seen = seen
            .map(|known| format!(" ({})", told(&known).1))
            .unwrap_or_default();
        match breaks {
            true => format!("it breaks the limit {}{seen}", keep.text),
            false => format!("whether it keeps the limit {} is open{seen}", keep.text),
        }
    });
    let (verdict, why) = match &tuning.states[of] {
        SettingState::Failed(why) => (Worth::Failed, Some(why.clone())),
        SettingState::Worse => (Worth::Worse, None),
        SettingState::Same => (Worth::Same, None),
        SettingState::Better if chosen > 0 => match advised {
            Ok(worth) => (worth, screened_only),
            Err(why) => (Worth::HeldBack, Some(why.to_owned())),
        },
        SettingState::Better if breaks => {
            let why: Vec<String> = limit.into_iter().chain(screened_only).collect();
            (Worth::HeldBack, Some(why.join("; ")))
        }
        SettingState::Better if spec.keep.is_empty() => (
            Worth::HeldBack,
            Some("the best combination is without it".to_owned()),
        ),
        SettingState::Better => {
            let why = "the best combination is without it, or keeps the limits only so";
            (Worth::HeldBack, Some(why.to_owned()))
        }
        SettingState::Open if limit.is_some() && (breaks || helps) => (Worth::HeldBack, limit),
        SettingState::Open => (Worth::Undecided, None),
    };
    TriedSetting {
        name: setting.name.clone(),
        level: setting.level(level).to_owned(),
        verdict,
        effect,
        lines: LineToWrite::all(&setting.levels[level - 1], command),
        memory: tuning.effect(of, Metric::PeakMemory),
        latency: limited_latency(tuning).and_then(|metric| tuning.effect(of, metric)),
        why,
        untried_levels: (1..=setting.levels.len())
            .filter(|other| *other != screened && chosen == 0 && raced.is_none())
            .map(|other| setting.level(other).to_owned())
            .collect(),
        more_s: (verdict == Worth::Undecided)
            .then(|| tuning.more_s(of))
            .flatten(),
        cost: setting.cost.clone(),
        source: setting.source.clone(),
    }
}

fn confirmed(tuning: &Tuning, seen: Option<&Confirmation>) -> Confirmed {
    let spec = &tuning.spec;
    let known = |metric: Metric| Some(seen?.iter().find(|(of, _)| *of == metric)?.1);
    let limit = |keep: &Keep| {
        let measured = keep.figure.metric().and_then(known);
        let outcome = measured.map_or(Ruling::Inconclusive, |known| keep.ruling(&known));
        LimitSeen {
            limit: keep.text.clone(),
            outcome,
            measured,
        }
    };
    Confirmed {
        effect: known(spec.metric),
        memory: known(Metric::PeakMemory),
        latency: limited_latency(tuning).and_then(known),
        predicted: tuning.predicted(),
        holds: tuning.holds(),
        limits: spec.keep.iter().map(limit).collect(),
        invalid: seen
            .is_none()
            .then(|| "its confirmation is invalid: see its report".to_owned()),
    }
}

fn told(known: &EffectEstimate) -> (String, String) {
    interval(known.ratio, known.low, known.high)
}

impl Report for Advice {
    fn document(&self) -> Document {
        let tables = [
            self.table_of("", true),
            self.table_of("tried besides", false),
        ];
        self.drawn(tables.into(), self.lines(true))
    }

    /// One line for each verdict of the settings that are not chosen.
    fn brief(&self) -> Document {
        // Figures of a tuning that failed are on the page.
        if self.is_invalid() {
            let log = (!self.folder.is_empty())
                .then(|| format!("the output of the service is below {}", self.folder));
            return self.drawn(
                Vec::new(),
                log.map(|log| NamedText::new("logs", log))
                    .into_iter()
                    .collect(),
            );
        }
        let others = DocumentPart::Lines(self.others_lines());
        self.drawn(vec![self.undecided(), others], self.lines(false))
    }

    fn data(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// All effects, and the confirmed effect of the choice.
    fn plot(&self) -> Option<Plot> {
        let is_chosen = self.chosen().next().is_some();
        let outcome = if is_chosen {
            Outcome::Better
        } else {
            Outcome::Inconclusive
        };
        let together = self
            .confirmed
            .as_ref()
            .and_then(|confirmed| confirmed.effect);
        let together = together.map(|effect| {
            plotted(
                "all that is chosen, on fresh runs",
                outcome,
                "confirmation",
                &effect,
            )
        });
        let each = WORDS.iter().flat_map(|(worth, _, word, outcome)| {
            let tried = self.of_worth(*worth);
            tried.filter_map(move |tried| {
                Some(plotted(&tried.level, *outcome, word, &tried.effect?))
            })
        });
        let rows: Vec<plot::PlotRow> = together.into_iter().chain(each).collect();
        let title = format!("What makes {} faster?", self.service);
        let foot = format!(
            "each figure is averaged over the other settings on and off; {}",
            span(self.seconds)
        );
        let (metric, margin, foot) = (Some(self.metric.row().title), self.margin, vec![foot]);
        (!rows.is_empty()).then(|| Plot {
            title,
            metric,
            rows,
            margin,
            curves: Vec::new(),
            foot,
        })
    }
}

/// Words for verdicts in tables and plots.
const WORDS: [(Worth, Tone, &str, Outcome); 6] = [
    (Worth::Set, Tone::Good, "set", Outcome::Better),
    (
        Worth::LimitOpen,
        Tone::Doubtful,
        "limit open",
        Outcome::Better,
    ),
    (Worth::HeldBack, Tone::Notable, "held back", Outcome::Better),
    (
        Worth::Same,
        Tone::Same,
        "no difference",
        Outcome::Equivalent,
    ),
    (Worth::Worse, Tone::Bad, "worse", Outcome::Worse),
    (
        Worth::Undecided,
        Tone::Doubtful,
        "undecided",
        Outcome::Inconclusive,
    ),
];

fn interval_cell(effect: Option<EffectEstimate>) -> Cell {
    effect.map_or(Cell::Missing, |known| {
        Cell::Interval(Quantity::ratio(known.ratio), Some((known.low, known.high)))
    })
}

fn plotted(name: &str, outcome: Outcome, word: &str, known: &EffectEstimate) -> plot::PlotRow {
    let (value, between) = told(known);
    plot::PlotRow {
        name: name.to_owned(),
        outcome,
        word: word.to_uppercase(),
        span: Some(Ratio {
            estimate: known.ratio,
            low: known.low,
            high: known.high,
        }),
        told: format!("{value}  ({between})"),
    }
}

impl Advice {
    fn drawn(&self, others: Vec<DocumentPart>, lines: Vec<NamedText>) -> Document {
        let failed = self.of_worth(Worth::Failed).map(|tried| NamedText {
            tone: Tone::Bad,
            ..NamedText::new(tried.level.clone(), tried.why.clone().unwrap_or_default())
        });
        let answer = [
            DocumentPart::Answers(vec![self.answer()]),
            DocumentPart::Lines(self.to_write()),
        ];
        let rest = [
            DocumentPart::Lines(failed.collect()),
            DocumentPart::Lines(lines),
            DocumentPart::Steps(self.steps()),
        ];
        let blocks = answer.into_iter().chain(others).chain(rest);
        Document::new(format!("What makes {} faster?", self.service), blocks)
    }

    /// The change for each chosen setting, with its gain and its costs.
    fn to_write(&self) -> Vec<NamedText> {
        let each = |tried: &TriedSetting| {
            let figure = |name: &str, known: Option<EffectEstimate>| {
                known.map(|known| format!("{name} {}", change_alone(known.ratio, 0)))
            };
            let gain = tried.effect.as_ref().map(|known| {
                let (value, between) = told(known);
                format!("{} {value} ({between})", self.metric.row().title)
            });
            let latency = self
                .latency
                .map(|metric| figure(metric.name(), tried.latency));
            let parts = [gain, figure("memory", tried.memory), latency.flatten()];
            let parts: Vec<String> = parts.into_iter().flatten().collect();
            let head = NamedText {
                tone: Tone::Good,
                ..NamedText::new("change", format!("{}: {}", tried.level, parts.join(", ")))
            };
            let lines = tried.lines.iter().map(|line| NamedText {
                command: Some(line.text.clone()),
                ..NamedText::new(line.place.clone(), "")
            });
            let cost =
                (!tried.cost.is_empty()).then(|| NamedText::new("price", tried.cost.clone()));
            [head]
                .into_iter()
                .chain(lines)
                .chain(cost)
                .collect::<Vec<_>>()
        };
        self.chosen().flat_map(each).collect()
    }

    /// Settings without a verdict, and the time that each needs.
    fn undecided(&self) -> DocumentPart {
        let columns = [
            Column::text("undecided", ColumnFit::CutEnd),
            Column::figure("so far"),
            Column::figure("interval"),
            Column::text("", ColumnFit::Drawing).spare(3),
            Column::figure("needs"),
        ];
        let mut table = Table::new("", columns);
        for tried in self.of_worth(Worth::Undecided) {
            let (value, between) = tried.effect.as_ref().map(told).unzip();
            table.push(vec![
                Cell::text(tried.level.clone()),
                Cell::optional(value),
                Cell::optional(between),
                interval_cell(tried.effect),
                Cell::optional(
                    tried
                        .more_s
                        .map(|more_s| format!("{} more", minutes(more_s))),
                ),
            ]);
        }
        DocumentPart::Table(table)
    }

    fn answer(&self) -> QuestionAnswer {
        if let Some(ended) = &self.ended {
            return QuestionAnswer::new(ended, Tone::Doubtful, "ended early", "");
        }
        let Some(confirmed) = &self.confirmed else {
            if let Some(lost) = self.lost.as_ref().filter(|_| self.is_invalid()) {
                return QuestionAnswer::new(lost, Tone::Bad, "invalid", "");
            }
            let found = |least| {
                format!(
                    "effects of {} and more would be found in 8 of 10 runs",
                    share(least)
                )
            };
            let found = self.findable.map(found).unwrap_or_default();
            let undecided = self.of_worth(Worth::Undecided).count();
            if undecided > 0 {
                let of = many(self.tried_count(), "setting");
                let subject = format!("{undecided} of {of} may help or not: more time would tell");
                return QuestionAnswer::new(subject, Tone::Doubtful, "undecided", found);
            }
            let subject = "none of these settings makes it faster: leave it as it is";
            return QuestionAnswer::new(subject, Tone::Same, "nothing to set", found);
        };
        let Some(effect) = &confirmed.effect else {
            let why = confirmed
                .invalid
                .as_deref()
                .unwrap_or("its confirmation has no interval");
            return QuestionAnswer::new(why, Tone::Bad, "invalid", "");
        };
        let (value, between) = told(effect);
        let mut notes = Vec::new();
        if let Some(predicted) = confirmed
            .predicted
            .filter(|of| *of < effect.low || *of > effect.high)
        {
            notes.push(format!(
                "the screening had said {}",
                change_alone(predicted, 0)
            ));
        }
        for LimitSeen {
            limit,
            outcome,
            measured,
        } in &confirmed.limits
        {
            let seen = measured
                .as_ref()
                .map(|known| format!(" ({})", told(known).1));
            match (outcome, seen) {
                (Ruling::Pass, _) => {}
                (Ruling::Fail, seen) => {
                    notes.push(format!("together they break the limit {limit}{}", seen.unwrap_or_default()));
                }
                (Ruling::Inconclusive, Some(seen)) => notes.push(format!(
                    "whether they keep the limit {limit} is open{seen}; a longer --budget may decide it"
                )),
                (Ruling::Inconclusive, None) => {
                    notes.push(format!("whether they keep the limit {limit} was not measured"));
                }
            }
        }
        let seen = format!("{} {value} (95 % CI {between})", self.metric.row().title);
        let chosen: Vec<&str> = self.chosen().map(|chosen| chosen.level.as_str()).collect();
        let detail = format!("{seen}, confirmed on fresh runs");
        let answer = match confirmed.advised() {
            Ok(Worth::Set) => {
                QuestionAnswer::new(chosen.join(", "), Tone::Good, "set these", detail)
            }
            Ok(_) => QuestionAnswer::new(chosen.join(", "), Tone::Doubtful, "limit open", detail),
            Err(why) if effect.is_better(self.metric) => {
                QuestionAnswer::new(why, Tone::Doubtful, "set nothing", detail)
            }
            Err(_) => {
                let detail = format!("{seen} on fresh runs");
                QuestionAnswer::new(
                    "what seemed to help did not hold",
                    Tone::Doubtful,
                    "set nothing",
                    detail,
                )
            }
        };
        QuestionAnswer { notes, ..answer }
    }

    fn table_of(&self, heading: &str, chosen: bool) -> DocumentPart {
        let metric = self.metric.row().title;
        let columns = [
            Column::text("setting", ColumnFit::Wrapped),
            Column::text("", ColumnFit::Whole),
            Column::figure(metric),
            Column::figure("interval").spare(1),
            Column::text("", ColumnFit::Drawing).spare(3),
            Column::figure("memory").spare(2),
        ];
        let mut table = Table::new(heading, columns);
        let latency = self
            .latency
            .map(|metric| Column::figure(metric.name()).spare(2));
        table.columns.extend(latency);
        for (verdict, tone, word, _) in WORDS
            .iter()
            .filter(|(worth, ..)| worth.is_chosen() == chosen)
        {
            for tried in self.of_worth(*verdict) {
                let (value, between) = tried.effect.as_ref().map(told).unzip();
                let memory = tried
                    .memory
                    .as_ref()
                    .map(|known| change_alone(known.ratio, 0));
                let latency = tried.latency.map(|known| change_alone(known.ratio, 0));
                table.push(vec![
                    Cell::text(tried.level.clone()),
                    Cell::Word(*tone, (*word).to_owned()),
                    Cell::optional(value),
                    Cell::optional(between),
                    interval_cell(tried.effect),
                    Cell::optional(memory),
                ]);
                if let (Some(_), Some(TableRow::Cells(cells))) =
                    (self.latency, table.rows.last_mut())
                {
                    cells.push(Cell::optional(latency));
                }
                table.rows.extend(
                    tried
                        .remarks()
                        .map(|remark| TableRow::Note(Tone::Faint, remark)),
                );
            }
        }
        DocumentPart::Table(table)
    }

    fn others_lines(&self) -> Vec<NamedText> {
        let line = |(worth, tone, word, _): &(Worth, Tone, &str, Outcome)| {
            let each: Vec<String> = self.of_worth(*worth).map(TriedSetting::in_short).collect();
            (!each.is_empty()).then(|| NamedText {
                tone: *tone,
                ..NamedText::new(*word, each.join("; "))
            })
        };
        WORDS
            .iter()
            .filter(|(worth, ..)| !worth.is_chosen() && *worth != Worth::Undecided)
            .filter_map(line)
            .collect()
    }

    /// Number of settings that were tried.
    fn tried_count(&self) -> u64 {
        let tried = self.settings.iter();
        tried
            .filter(|tried| tried.verdict != Worth::Skipped)
            .count() as u64
    }

    /// Notes. With `all` they include sources and method.
    fn lines(&self, all: bool) -> Vec<NamedText> {
        let mut lines: Vec<NamedText> = Vec::new();
        if all {
            let sources = self.chosen().filter(|tried| !tried.source.is_empty());
            lines.extend(sources.map(|tried| {
                NamedText::new("source", format!("{}: {}", tried.level, tried.source))
            }));
        }
        if let Some(memory) = self
            .confirmed
            .as_ref()
            .and_then(|confirmed| confirmed.memory.as_ref())
        {
            let (value, between) = told(memory);
            lines.push(NamedText::new(
                "memory",
                format!("{value} ({between}), all together"),
            ));
        }
        for LimitSeen {
            limit, measured, ..
        } in self
            .confirmed
            .iter()
            .flat_map(|confirmed| &confirmed.limits)
        {
            let seen = measured
                .as_ref()
                .map(told)
                .map(|(value, between)| format!("{value} ({between})"));
            let seen = seen.unwrap_or_else(|| "not measured".to_owned());
            lines.push(NamedText::new("limit", format!("{limit}: {seen}")));
        }
        if self.latency.is_none() && self.chosen().next().is_some() {
            let how = "not measured; --keep 'p99 < +10%' measures it at a rate, and limits it";
            lines.push(NamedText::new("p99", how));
        }
        // Without a chosen setting it is beside the answer.
        let is_chosen = self.chosen().next().is_some();
        let findable = self.findable.filter(|_| all || is_chosen);
        lines.extend(findable.map(share).map(|least| {
            NamedText::new(
                "power",
                format!("effects of {least} and more are found in 8 of 10 runs"),
            )
        }));
        let skipped: Vec<&str> = self
            .of_worth(Worth::Skipped)
            .map(|tried| tried.name.as_str())
            .collect();
        if !skipped.is_empty() {
            lines.push(NamedText::new(
                "not tried",
                format!("{} (--list says why)", skipped.join(", ")),
            ));
        }
        let untried = self
            .settings
            .iter()
            .filter(|tried| !tried.untried_levels.is_empty());
        let untried: Vec<&str> = untried.map(|tried| tried.name.as_str()).collect();
        if !untried.is_empty() {
            let how = "(the others are tried where that one helps)";
            lines.push(NamedText::new(
                "levels",
                format!("only one was tried of {} {how}", untried.join(", ")),
            ));
        }
        if all {
            let how = "each figure is averaged over the other settings on and off; all intervals hold together with 95 %";
            lines.push(NamedText::new("how", how));
        }
        lines.extend(
            self.proposals
                .iter()
                .map(|text| NamedText::new("in the code", text.clone())),
        );
        lines.extend(
            self.notes
                .iter()
                .chain(&self.lost)
                .map(|note| NamedText::new("note", note.clone())),
        );
        lines.push(NamedText::new(
            "records",
            format!("{} ({})", self.folder, span(self.seconds)),
        ));
        lines
    }

    /// The command with a budget that decides every undecided setting.
    fn longer(&self) -> Option<String> {
        let more_s = self
            .of_worth(Worth::Undecided)
            .filter_map(|tried| tried.more_s);
        let budget = minutes(self.seconds + more_s.reduce(f64::max)?);
        let words = plan::words(&self.command)?;
        let flag = words.iter().position(|word| word == "--budget");
        let kept = words.iter().enumerate().filter(|(at, word)| {
            !word.starts_with("--budget=") && flag.is_none_or(|flag| *at != flag && *at != flag + 1)
        });
        let kept = kept.map(|(_, word)| word.clone());
        let all = kept.chain(["--budget".to_owned(), budget]);
        Some(format!(
            "to decide what is open: {}",
            plan::command_line(all)
        ))
    }

    fn steps(&self) -> Vec<String> {
        let picture =
            (!self.folder.is_empty()).then(|| format!("as a picture: {}/advice.html", self.folder));
        let is_chosen = self.chosen().next().is_some();
        let again = self.experiment.as_ref().filter(|_| is_chosen);
        let again = again
            .map(|file| format!("to compare these settings with none again: proofload run {file}"));
        self.longer()
            .into_iter()
            .chain(picture)
            .chain(again)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use analysis::tune::{Setting, SettingLevel, TuneSpec};

    use super::*;

    fn tried(level: &str, verdict: Worth, (ratio, low, high): (f64, f64, f64)) -> TriedSetting {
        TriedSetting {
            level: level.to_owned(),
            verdict,
            effect: Some(EffectEstimate { ratio, low, high }),
            ..TriedSetting::default()
        }
    }

    #[test]
    fn the_summary_has_a_line_for_what_need_not_be_set() {
        let open = TriedSetting {
            more_s: Some(350.0),
            ..tried("huge pages", Worth::Undecided, (1.02, 0.99, 1.06))
        };
        let why = Some("the best combination is without it".to_owned());
        let held = TriedSetting {
            why,
            ..tried("jemalloc", Worth::HeldBack, (1.034, 1.008, 1.061))
        };
        let cost = "memory for each process".to_owned();
        let set = TriedSetting {
            cost,
            lines: vec![LineToWrite {
                place: "code".to_owned(),
                text: "const cluster = require('node:cluster'); for (let n = 0; n < 2; n++) cluster.fork();"
                    .to_owned(),
            }],
            memory: Some(EffectEstimate {
                ratio: 1.77,
                low: 1.7,
                high: 1.83,
            }),
            latency: Some(EffectEstimate {
                ratio: 0.9,
                low: 0.8,
                high: 1.01,
            }),
            ..tried("2 processes (cluster)", Worth::Set, (1.58, 1.41, 1.77))
        };
        let same = ["UV_THREADPOOL_SIZE=8", "POOL=4"]
            .map(|level| tried(level, Worth::Same, (1.0, 0.98, 1.02)));
        let worse = tried("gzip in the service", Worth::Worse, (0.72, 0.62, 0.82));
        let effect = Some(EffectEstimate {
            ratio: 1.6,
            low: 1.5,
            high: 1.7,
        });
        let slower = Some(EffectEstimate {
            ratio: 1.1,
            low: 1.05,
            high: 1.16,
        });
        let limit = LimitSeen {
            limit: "p99 < +25%".to_owned(),
            outcome: Ruling::Pass,
            measured: slower,
        };
        let (memory, predicted, holds, invalid) = (effect, None, true, None);
        let confirmed = Confirmed {
            effect,
            memory,
            latency: slower,
            predicted,
            holds,
            limits: vec![limit],
            invalid,
        };
        let [first, second] = same;
        let untried_levels = vec!["POOL=2".to_owned(), "POOL=8".to_owned()];
        let second = TriedSetting {
            name: "POOL".to_owned(),
            untried_levels,
            ..second
        };
        let mut advice = Advice {
            service: "node server.js".to_owned(),
            experiment_name: "server".to_owned(),
            created: "2026-11-29T20:00:00Z".to_owned(),
            command: "proofload tune 'node server.js' --budget 10m".to_owned(),
            latency: Some(Metric::P99),
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
            lost: Some("1 block failed, without figures: the service fell over".to_owned()),
            proposals: vec![
                "Synchronous crypto: pbkdf2Sync, called by inLoop (signer.js:18).".to_owned(),
            ],
        };
        insta::assert_snapshot!(plain(&advice, 80));
        assert_eq!(
            (advice.exit_code(), advice.in_short().1.as_str()),
            (0, "set these +60.0 % throughput")
        );
        let json = crate::form::with_format(advice.data());
        assert_eq!(
            serde_json::from_value::<Advice>(json).expect("it is read again"),
            advice
        );
        // A choice that may break a limit is not advised.
        let confirmed = advice.confirmed.as_mut().expect("it was confirmed");
        confirmed.limits[0].outcome = Ruling::Inconclusive;
        confirmed.limits[0].measured = Some(EffectEstimate {
            ratio: 1.1,
            low: 0.9,
            high: 1.4,
        });
        advice.settings[0].verdict = confirmed.advised().expect("it helps");
        insta::assert_snapshot!("a_limit_that_is_open", plain(&advice, 100));
        advice.confirmed = None;
        advice.settings.remove(0);
        let undecided = plain(&advice, 80);
        advice
            .settings
            .retain(|tried| tried.verdict != Worth::Undecided);
        let nothing = plain(&advice, 80);
        advice.findable = None;
        assert_eq!(advice.exit_code(), exit_code::VOID);
        let screens = [undecided, nothing, plain(&advice, 80)].join("\n──\n\n");
        insta::assert_snapshot!("undecided_nothing_helps_and_invalid", screens);
    }

    fn plain(advice: &Advice, width: usize) -> String {
        anstream::adapter::strip_str(&crate::text::text(&advice.brief(), width)).to_string()
    }

    #[test]
    fn levels_count_as_untried_unless_they_were_raced() {
        let levels = ["POOL=2", "POOL=8"].map(|name| SettingLevel {
            name: name.into(),
            changes: Vec::new(),
        });
        let settings = vec![Setting {
            levels: levels.into(),
            ..Setting::default()
        }];
        let (metric, keep) = (Metric::Throughput, vec![Keep::read("p99 < +10%").unwrap()]);
        let mut tuning = Tuning::new(TuneSpec {
            settings,
            metric,
            margin: 0.03,
            keep,
            budget_s: 600.0,
            seed: 1,
        });
        tuning.states = vec![SettingState::Better];
        for (won, level, untried) in [
            (None, "POOL=2", vec!["POOL=8"]),
            (Some(2), "POOL=8", vec![]),
        ] {
            // The winner broke the limit at a rate, and is not chosen.
            tuning.won = vec![won];
            let tried = Advice::of(&tuning, &[], &[]).settings.remove(0);
            assert_eq!(
                (tried.level.as_str(), tried.verdict),
                (level, Worth::HeldBack)
            );
            assert_eq!(tried.untried_levels, untried);
        }
    }
}
