//! State machine of a tuning: decides the next step and draws conclusions from the outcomes of earlier ones.
//! Pure.
//!
//! ```text
//!   baseline ─► each setting alone ─► pairs of a screening design ─► levels of what helps ─► the choice against the baseline
//!               (does it start?)      (what does each do?)          (which is best?)        (how much better, on fresh runs?)
//!
//!   with limits on response times:        … ─► pairs of what helps, at a rate ─► the choice ─► the choice at that rate
//! ```

mod budget;
mod clash;

use model::Metric;
use stats::{MeasuredPoint, ScreenLooks};

use super::screening::{ALPHA, Race, Screening, latency_pairs};
use super::setting::Keep;
use super::step::{
    Confirmation, EffectEstimate, LevelRow, Purpose, RowFigures, StepOutcome, TooShort, TuneSpec,
    TuneStep,
};
use crate::throughput::judged_by;
use crate::{Ruling, only_if};
use clash::Clash;

/// Numbers of mirrored pairs after which the screening is looked at, in addition to its last. The last entry
/// is the maximum number of pairs.
const LOOKS: [u32; 7] = [2, 3, 4, 6, 9, 13, 19];
/// Approximate seconds for measuring the unchanged service and a single setting, before any measurement.
const BASELINE_S: f64 = 12.0;
const SMOKE_S: f64 = 3.0;
/// Rate of open-loop steps, as a share of the unchanged service's throughput.
const RATE_SHARE: f64 = 0.6;
/// Maximum number of settings for which all subsets are enumerated.
const SUBSETS_MAX: usize = 12;
/// Normal quantile of 80 % power.
const POWER_Z: f64 = 0.842;

/// Result for a setting.
#[derive(Debug, Clone, PartialEq)]
pub enum SettingState {
    /// Still being screened.
    Open,
    /// Improves the metric, and is on.
    Better,
    /// Worsens the metric, and is off.
    Worse,
    /// Makes no difference that matters, and is off.
    Same,
    /// Did not start, responded differently, or crashed.
    Failed(String),
}

/// A running tuning.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// Goal and budget.
    pub spec: TuneSpec,
    /// Result for each setting.
    pub states: Vec<SettingState>,
    /// The recommended level of each setting, 0 for none. For a setting whose levels are raced, the level
    /// that represents it.
    pub chosen: LevelRow,
    /// The winning level of each setting with a race. It represents the setting from then on.
    pub won: Vec<Option<usize>>,
    /// Result of the confirmation. `None` before it, and if there was nothing to confirm. The inner value is
    /// `None` if it is invalid.
    pub confirmed: Option<Option<Confirmation>>,
    /// Reasons why blocks have no figures.
    pub lost: Vec<String>,
    phase: TunePhase,
    spent_s: f64,
    trial_s: f64,
    /// Throughput of the unchanged service, in requests per second.
    base_per_s: Option<f64>,
    screen: Screening,
    clash: Option<Clash>,
    /// Whether there is time for races.
    races: bool,
    race: Option<Race>,
    /// Screening of the chosen settings, in open loop.
    latency: Screening,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TunePhase {
    Baseline,
    Smoke(usize),
    Screen,
    Clash,
    Race(usize),
    /// The winning level alone. Only the screened level has been checked for unchanged responses so far.
    Won(usize, usize),
    Latency,
    Confirm,
    ConfirmLatency,
    Done,
}

impl Tuning {
    /// Starts a tuning.
    pub fn new(spec: TuneSpec) -> Tuning {
        let count = spec.settings.len();
        Tuning {
            states: vec![SettingState::Open; count],
            chosen: vec![0; count],
            won: vec![None; count],
            phase: TunePhase::Baseline,
            spent_s: 0.0,
            trial_s: 0.0,
            base_per_s: None,
            screen: Screening::default(),
            clash: None,
            races: false,
            race: None,
            latency: Screening::default(),
            confirmed: None,
            lost: Vec::new(),
            spec,
        }
    }

    /// Returns the next step. `None` if the tuning is complete.
    ///
    /// # Errors
    /// If the budget is too small, which is known once the first steps have shown how long a trial takes.
    pub fn next_step(&mut self) -> Result<Option<TuneStep>, TooShort> {
        let count = self.spec.settings.len();
        loop {
            match self.phase {
                TunePhase::Baseline => {
                    return Ok(Some(self.step(Purpose::Baseline, vec![vec![0; count]], 1)));
                }
                TunePhase::Smoke(of) if of < count => {
                    let row = self.alone(of, self.screened_level(of));
                    return Ok(Some(self.step(Purpose::Smoke(of), vec![row], 1)));
                }
                TunePhase::Smoke(_) => {
                    self.phase = if self.open().is_empty() {
                        TunePhase::Done
                    } else {
                        TunePhase::Screen
                    };
                    self.plan_pairs()?;
                }
                TunePhase::Screen => match self.half() {
                    Some(step) => return Ok(Some(step)),
                    None => self.end_screen(),
                },
                TunePhase::Clash => match self.clash_step() {
                    Some(step) => return Ok(Some(step)),
                    None => self.phase = TunePhase::Screen,
                },
                TunePhase::Race(of) => match self.race_step(of) {
                    Some(step) => return Ok(Some(step)),
                    None => self.end_race(of),
                },
                TunePhase::Won(of, level) => {
                    return Ok(Some(self.step(
                        Purpose::Smoke(of),
                        vec![self.alone(of, level)],
                        1,
                    )));
                }
                TunePhase::Latency => match self.latency_half() {
                    Some(step) => return Ok(Some(step)),
                    None => self.end_latency(),
                },
                TunePhase::Confirm | TunePhase::ConfirmLatency => {
                    let at_rate = self.phase == TunePhase::ConfirmLatency;
                    let purpose = if at_rate {
                        Purpose::ConfirmLatency
                    } else {
                        Purpose::Confirm
                    };
                    let rows = vec![vec![0; count], self.chosen.clone()];
                    return Ok(Some(self.step(purpose, rows, self.confirm_blocks())));
                }
                TunePhase::Done => return Ok(None),
            }
        }
    }

    /// Processes the outcome of the step from [`Tuning::next_step`]. `spent_s` is the time since the tuning
    /// began, in seconds.
    pub fn take(&mut self, outcome: StepOutcome, spent_s: f64) {
        self.spent_s = spent_s;
        match (self.phase, outcome) {
            (TunePhase::Baseline, StepOutcome::Measured(figures, _)) => {
                let own = figures.first().and_then(Option::as_ref);
                self.base_per_s = own.and_then(|figures| figures.value(Metric::Throughput));
                self.phase = TunePhase::Smoke(0);
            }
            (TunePhase::Smoke(of), outcome) => {
                match outcome {
                    StepOutcome::Measured(_, block_s) => self.learn(block_s, 1),
                    StepOutcome::Failed(why) | StepOutcome::NotStarted(_, why) => {
                        self.states[of] = SettingState::Failed(why)
                    }
                    StepOutcome::Confirmed(..) => {}
                }
                self.phase = TunePhase::Smoke(of + 1);
            }
            (TunePhase::Screen, StepOutcome::NotStarted(at, why)) => {
                let rows = self.screen.wanted.last();
                match rows.and_then(|rows| rows.get(at)).cloned() {
                    Some(row) => self.begin_clash(&row),
                    None => self.take_half(StepOutcome::Failed(why)),
                }
            }
            (TunePhase::Clash, outcome) => self.take_clash(outcome),
            (TunePhase::Screen | TunePhase::Latency, outcome) => self.take_half(outcome),
            (TunePhase::Race(_), StepOutcome::Measured(figures, _)) => {
                // As in the screening, if the cores of all levels were busy too.
                let per_core =
                    self.per_core() && figures.iter().flatten().all(|figures| figures.per_core);
                let mut figures = figures.into_iter();
                let base = if self.has_limits() {
                    figures.next().flatten()
                } else {
                    None
                };
                let came = |own: Option<RowFigures>| {
                    let own = own.as_ref();
                    let excess = own
                        .zip(base.as_ref())
                        .and_then(|(own, base)| self.excess(own, base));
                    (self.better(own, per_core), excess)
                };
                let came: Vec<_> = figures.map(came).collect();
                if let Some(race) = &mut self.race {
                    race.take(came);
                }
            }
            (TunePhase::Race(of), outcome) => {
                self.lost.extend(outcome.failed());
                self.end_race(of);
            }
            (TunePhase::Won(of, level), outcome) => {
                match outcome.failed() {
                    None => (self.chosen[of], self.won[of]) = (level, Some(level)),
                    Some(why) => self.lost.push(why),
                }
                self.phase = self.next_race(of + 1);
            }
            (TunePhase::Confirm, outcome) => {
                self.confirmed = Some(outcome.seen());
                let at_rate = self.keeps_latency() && self.holds();
                self.phase = if at_rate {
                    TunePhase::ConfirmLatency
                } else {
                    TunePhase::Done
                };
            }
            (TunePhase::ConfirmLatency, outcome) => {
                // Without response times it is unknown whether the choice keeps its limits.
                let seen = outcome.seen().into_iter().flatten();
                let seen: Confirmation = seen
                    .filter(|(metric, _)| metric.quantile().is_some())
                    .collect();
                let both = self.confirmed.take().flatten().filter(|_| !seen.is_empty());
                self.confirmed = Some(both.map(|figures| [figures, seen].concat()));
                self.phase = TunePhase::Done;
            }
            // Without the baseline no effect can be found.
            (TunePhase::Baseline | TunePhase::Done, _) => self.phase = TunePhase::Done,
        }
    }

    /// Effect of a setting on a metric. `None` if it was not screened, or there is no interval yet.
    pub fn effect(&self, of: usize, metric: Metric) -> Option<EffectEstimate> {
        let (effect, critical_t) = self.screen_of(metric).effect(of, metric)?;
        let (log, half) = (effect.value, critical_t * effect.standard_error);
        Some(EffectEstimate {
            ratio: log.exp(),
            low: (log - half).exp(),
            high: (log + half).exp(),
        })
    }

    /// The smallest effect that the screening finds in 8 of 10 runs, as a fraction. `None` if nothing was
    /// screened.
    pub fn findable(&self) -> Option<f64> {
        // A setting decided early has only the precision of its last look.
        let last = self.screen.pairs_of.values().max()?;
        let lasting = self
            .screen
            .pairs_of
            .iter()
            .filter(|(_, pairs)| *pairs == last);
        let effects = lasting.filter_map(|(of, _)| self.screen.effect(*of, self.spec.metric));
        let found = |(effect, critical_t): (MeasuredPoint, f64)| {
            (critical_t + POWER_Z) * effect.standard_error
        };
        Some(effects.map(found).reduce(f64::max)?.exp_m1())
    }

    /// Effect of all chosen settings together as predicted by the screening, as a ratio.
    pub fn predicted(&self) -> Option<f64> {
        let chosen = self.on();
        (!chosen.is_empty()).then(|| self.model(&chosen, self.spec.metric)(&chosen).exp())
    }

    /// Whether throughput was judged per core-second.
    pub fn per_core(&self) -> bool {
        self.screen.per_core == Some(true)
    }

    /// The limits that a setting alone breaks or may break: all limits without a pass.
    pub fn held_back(&self, of: usize) -> Vec<(&Keep, Ruling)> {
        let ruling = |keep: &Keep| Some(keep.ruling(&self.effect(of, keep.figure.metric()?)?));
        let judged = self
            .spec
            .keep
            .iter()
            .filter_map(|keep| Some((keep, ruling(keep)?)));
        judged
            .filter(|(_, ruling)| *ruling != Ruling::Pass)
            .collect()
    }

    fn step(&self, purpose: Purpose, rows: Vec<LevelRow>, blocks: u32) -> TuneStep {
        let trials = rows.len() as f64 * f64::from(blocks);
        let unknown_s = if purpose == Purpose::Baseline {
            BASELINE_S
        } else {
            SMOKE_S
        };
        let seconds = if self.trial_s > 0.0 {
            trials * self.trial_s
        } else {
            unknown_s
        };
        let at_rate = purpose.is_at_a_rate();
        let rate_per_s = self
            .base_per_s
            .filter(|_| at_rate)
            .map(|per_s| RATE_SHARE * per_s);
        let mut step = TuneStep {
            purpose,
            rows,
            blocks,
            seconds,
            most_s: 0.0,
            rate_per_s,
        };
        step.most_s = self.most_s(&step);
        step
    }

    fn alone(&self, of: usize, level: usize) -> LevelRow {
        (0..self.chosen.len())
            .map(|at| if at == of { level } else { 0 })
            .collect()
    }

    /// The level by which a setting is screened.
    fn screened_level(&self, of: usize) -> usize {
        self.spec.settings[of].screened + 1
    }

    fn in_state(&self, state: SettingState) -> Vec<usize> {
        (0..self.states.len())
            .filter(|of| self.states[*of] == state)
            .collect()
    }

    fn open(&self) -> Vec<usize> {
        self.in_state(SettingState::Open)
    }

    /// Whether there is a limit on response times, and a rate at which they can be measured.
    fn keeps_latency(&self) -> bool {
        self.base_per_s.is_some() && self.spec.keep.iter().any(Keep::is_latency)
    }

    /// Limits on a service at its own limit, in closed loop.
    fn limits(&self) -> impl Iterator<Item = &Keep> {
        self.spec.keep.iter().filter(|keep| !keep.is_latency())
    }

    fn has_limits(&self) -> bool {
        self.limits().next().is_some()
    }

    /// Whether the confirmed choice is certainly better, and certainly breaks no limit. Otherwise nothing is
    /// recommended.
    pub fn holds(&self) -> bool {
        let seen = || self.confirmed.iter().flatten().flatten();
        let breaks = |keep: &Keep| {
            let of = seen().find(|(metric, _)| keep.figure.metric() == Some(*metric));
            of.is_some_and(|(_, known)| keep.ruling(known) == Ruling::Fail)
        };
        seen().any(|(metric, known)| *metric == self.spec.metric && known.is_better(*metric))
            && !self.spec.keep.iter().any(breaks)
    }

    /// The next half of a pair. `None` if the screening is over.
    fn half(&mut self) -> Option<TuneStep> {
        if self.screen.wanted.is_empty() {
            let open = self.open();
            only_if(!open.is_empty() && self.screen.pairs < self.screen.pairs_max)?;
            if self.screen.pairs >= LOOKS[0] && !self.has_room_for_pair(&open) {
                self.look();
                return None;
            }
            let number = u64::from(self.screen.pairs);
            self.screen.wanted = self.halves(&open, number, &|of| self.screened_level(of))?;
        }
        let rows = self.screen.wanted.last()?;
        let purpose = Purpose::Screen {
            pair: self.screen.pairs + 1,
            of: self.screen.pairs_max,
        };
        Some(self.step(purpose, rows.clone(), 1))
    }

    /// The halves of a pair in which these settings vary, with `level` as their level when on.
    fn halves(
        &self,
        among: &[usize],
        number: u64,
        level: &dyn Fn(usize) -> usize,
    ) -> Option<Vec<Vec<LevelRow>>> {
        let mut halves = Vec::new();
        for rows in stats::designs(among.len(), self.spec.seed.wrapping_add(number))? {
            for mirrored in [true, false] {
                let row = |signs: &Vec<bool>| {
                    let mut row = self.chosen.clone();
                    for (of, on) in among.iter().zip(signs) {
                        row[*of] = if *on != mirrored { level(*of) } else { 0 };
                    }
                    row
                };
                halves.push(rows.iter().map(row).collect());
            }
        }
        Some(halves)
    }

    /// Adds half of a pair, and the pair once it is complete. Then looks at the results if a look is due.
    fn take_half(&mut self, outcome: StepOutcome) {
        let in_latency = self.phase == TunePhase::Latency;
        let screen = if in_latency {
            &mut self.latency
        } else {
            &mut self.screen
        };
        let Some(rows) = screen.wanted.pop() else {
            return;
        };
        let (figures, block_s) = match outcome {
            StepOutcome::Measured(figures, block_s) => (figures, Some(block_s)),
            // Rows without figures are left out.
            outcome => {
                self.lost.extend(outcome.failed());
                (vec![None; rows.len()], None)
            }
        };
        let trials = rows.len();
        screen.halves.push((rows, figures));
        let is_whole = screen.wanted.is_empty();
        if let Some(block_s) = block_s {
            self.learn(block_s, trials);
        }
        if is_whole && in_latency {
            self.latency.end_pair(&self.on());
        } else if is_whole {
            self.screen.end_pair(&self.open());
            if LOOKS.contains(&self.screen.pairs) || self.screen.pairs == self.screen.pairs_max {
                self.look();
            }
        }
    }

    /// Decides settings with clear results, so that later pairs measure only the others.
    fn look(&mut self) {
        let margin = 1.0 + self.spec.margin;
        for of in self.open() {
            let Some(EffectEstimate { low, high, .. }) = self.gain(of) else {
                continue;
            };
            if low > 1.0 && self.held_back(of).is_empty() {
                self.states[of] = SettingState::Better;
                self.chosen[of] = self.screened_level(of);
            } else if high < 1.0 {
                self.states[of] = SettingState::Worse;
            } else if low > 1.0 / margin && high < margin {
                self.states[of] = SettingState::Same;
            }
        }
    }

    /// Effect on the metric, inverted if needed so that above 1 is better.
    fn gain(&self, of: usize) -> Option<EffectEstimate> {
        let known = self.effect(of, self.spec.metric)?;
        Some(match self.spec.metric.wants_more() {
            true => known,
            false => EffectEstimate {
                ratio: 1.0 / known.ratio,
                low: 1.0 / known.high,
                high: 1.0 / known.low,
            },
        })
    }

    /// The screening with a metric's figures.
    fn screen_of(&self, metric: Metric) -> &Screening {
        if metric.quantile().is_some() {
            &self.latency
        } else {
            &self.screen
        }
    }

    /// Predicted effect of a subset of these settings on a metric against none, as a logarithm: main effects
    /// and certain interactions of two.
    fn model(&self, among: &[usize], metric: Metric) -> impl Fn(&[usize]) -> f64 + use<> {
        let screened = self.screen_of(metric).screened(metric);
        let effects = screened
            .map(|screened| screened.effects)
            .unwrap_or_default();
        let pairs = self.screen.interactions(among, metric).unwrap_or_default();
        move |on| {
            let sign = |of: &usize| if on.contains(of) { 1.0 } else { -1.0 };
            let both = pairs
                .iter()
                .map(|([one, other], log)| log * (sign(one) * sign(other) - 1.0));
            let alone = |of: &usize| {
                effects
                    .get(*of)
                    .copied()
                    .flatten()
                    .map_or(0.0, |effect| effect.value)
            };
            on.iter().map(alone).sum::<f64>() + both.sum::<f64>()
        }
    }

    /// Chooses among the settings that help, and continues with their levels.
    fn end_screen(&mut self) {
        let better = self.in_state(SettingState::Better);
        let chosen = self.best_subset(&better);
        for of in better {
            self.chosen[of] = if chosen.contains(&of) {
                self.screened_level(of)
            } else {
                0
            };
        }
        self.phase = if chosen.is_empty() {
            TunePhase::Done
        } else {
            self.next_race(0)
        };
    }

    /// The subset with the best prediction among those that keep all limits by the screening. Of equal ones
    /// the smallest.
    fn best_subset(&self, better: &[usize]) -> Vec<usize> {
        if better.len() > SUBSETS_MAX {
            return better.to_vec();
        }
        let sign = if self.spec.metric.wants_more() {
            1.0
        } else {
            -1.0
        };
        let limits = self
            .limits()
            .filter_map(|keep| Some((keep, self.model(better, keep.figure.metric()?))));
        let limits: Vec<_> = limits.collect();
        let keeps = |on: &[usize]| {
            limits
                .iter()
                .all(|(keep, model)| keep.holds(model(on).exp()))
        };
        let model = self.model(better, self.spec.metric);
        let subset = |bits: u32| -> Vec<usize> {
            better
                .iter()
                .enumerate()
                .filter(|(at, _)| bits >> at & 1 == 1)
                .map(|(_, of)| *of)
                .collect()
        };
        let mut best: (f64, Vec<usize>) = (0.0, Vec::new());
        for on in (1..1_u32 << better.len())
            .map(subset)
            .filter(|on| keeps(on))
        {
            let log = sign * model(&on);
            if log > best.0 {
                best = (log, on);
            }
        }
        best.1
    }

    /// Settings that are on.
    fn on(&self) -> Vec<usize> {
        (0..self.chosen.len())
            .filter(|of| self.chosen[*of] > 0)
            .collect()
    }

    /// The next half of a pair in open loop. `None` with fewer than two settings, without time, or after
    /// enough pairs.
    fn latency_half(&mut self) -> Option<TuneStep> {
        if self.latency.wanted.is_empty() {
            let chosen = self.on();
            let wanted = self.latency.pairs < latency_pairs(chosen.len()) && self.keeps_latency();
            let pair_s = self.pair_s(chosen.len());
            only_if(chosen.len() > 1 && wanted && self.left_s() >= pair_s + self.confirm_s())?;
            let number = u64::from(self.screen.pairs_max + self.latency.pairs);
            self.latency.wanted = self.halves(&chosen, number, &|of| self.chosen[of])?;
        }
        let rows = self.latency.wanted.last()?.clone();
        Some(self.step(
            Purpose::Latency {
                pair: self.latency.pairs + 1,
            },
            rows,
            1,
        ))
    }

    /// Drops settings that certainly break a limit on response times.
    fn end_latency(&mut self) {
        let chosen = self.on();
        if self.latency.pairs > 0 {
            self.latency.looks = ScreenLooks::new(&[self.latency.pairs], chosen.len(), ALPHA);
        }
        for of in chosen {
            if self
                .held_back(of)
                .iter()
                .any(|(_, ruling)| *ruling == Ruling::Fail)
            {
                self.chosen[of] = 0;
            }
        }
        self.phase = if self.on().is_empty() {
            TunePhase::Done
        } else {
            TunePhase::Confirm
        };
    }

    /// The next chosen setting from `from` on with several levels, if there is time for its race. Otherwise
    /// the phase after the races.
    fn next_race(&self, from: usize) -> TunePhase {
        let wants = |of: &usize| self.chosen[*of] > 0 && self.spec.settings[*of].levels.len() > 1;
        let fits = |of: &usize| {
            let race_s = self.race_s(self.spec.settings[*of].levels.len());
            self.left_s() >= race_s + self.confirm_s() + self.latency_s(self.on().len())
        };
        (from..self.chosen.len())
            .filter(wants)
            .find(fits)
            .map_or(TunePhase::Latency, TunePhase::Race)
    }

    fn race_step(&mut self, of: usize) -> Option<TuneStep> {
        let race = self
            .race
            .get_or_insert_with(|| Race::of(self.spec.settings[of].levels.len()));
        let racing = race.racing()?.to_vec();
        let behind_s = self.confirm_s() + self.latency_s(self.on().len());
        only_if(self.left_s() >= self.race_block_s(racing.len()) + behind_s)?;
        let row = |level: usize| {
            let mut row = self.chosen.clone();
            row[of] = level + 1;
            row
        };
        let base = self.has_limits().then(|| vec![0; self.chosen.len()]);
        let rows = base
            .into_iter()
            .chain(racing.into_iter().map(row))
            .collect();
        Some(self.step(Purpose::Race(of), rows, 1))
    }

    /// Maximum excess of a row over any limit, as a logarithm: below 0 if it keeps all limits. `None` without
    /// data.
    fn excess(&self, own: &RowFigures, base: &RowFigures) -> Option<f64> {
        let excess = |keep: &Keep| {
            let metric = keep.figure.metric()?;
            let log = (own.value(metric)? / base.value(metric)? / keep.ratio).ln();
            Some(if keep.figure.wants_more() { -log } else { log })
        };
        self.limits().filter_map(excess).reduce(f64::max)
    }

    /// Logarithm of a figure, with the sign chosen so that more is better.
    fn better(&self, figures: Option<&RowFigures>, per_core: bool) -> Option<f64> {
        let (source, sign) = judged_by(self.spec.metric, per_core);
        let log = sign * figures?.value(source)?.ln();
        Some(if self.spec.metric.wants_more() {
            log
        } else {
            -log
        })
    }

    /// Takes the cheapest level that is about as good as the best of those that keep the limits.
    fn end_race(&mut self, of: usize) {
        let won = self
            .race
            .take()
            .and_then(|race| race.cheapest())
            .map(|level| level + 1);
        self.won[of] = won.is_some().then(|| self.screened_level(of));
        let other = won.filter(|level| *level != self.screened_level(of));
        self.phase =
            other.map_or_else(|| self.next_race(of + 1), |level| TunePhase::Won(of, level));
    }
}
