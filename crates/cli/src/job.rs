//! From an experiment and the flags of its command to its report: flags become settings, the settings and the
//! file a plan, and the plan is run, printed and judged.

use std::time::Duration;

use plan::{FlagSetting, GateEntry, Limit, Metric, Overrides, Pacing, Plan};
use record::Repeat;

use crate::execution::{self, LabJob};
use crate::exit::{self, CliError};
use crate::experiment::{self, AgainstArgs, Experiment};
use crate::flags::{BUDGET, RunFlags, SeedFlag, explain_setting, seed_setting};
use crate::gate::{self, GateOutput, KnownLimits};
use crate::{dry_run, preflight, print, prometheus, records};

/// Minimum budget of `--quick`.
const QUICK_MIN_S: u64 = 90;
/// Seconds of `--quick` for each variant: four blocks of a slow service on a busy machine. Clear differences
/// end sooner.
const QUICK_VARIANT_S: u64 = 45;
/// Seconds for each variant in open loop, where capacity is measured first and each trial settles at its rate.
const QUICK_VARIANT_OPEN_S: u64 = 60;

/// An experiment with the flags of its command.
#[derive(Debug)]
pub struct ExperimentJob<'a> {
    pub experiment: &'a Experiment,
    pub flags: &'a RunFlags,
    /// Limits of a gate after the run. `None` without a gate.
    pub limits: Option<&'a gate::Flags>,
    pub against: &'a AgainstArgs,
    /// Limits of a capacity that is searched instead of what the file measures.
    pub slo: &'a [Limit],
}

impl ExperimentJob<'_> {
    /// Runs the experiment, prints its report, and returns the exit code.
    pub fn run(&self) -> anyhow::Result<u8> {
        let ExperimentJob {
            experiment,
            flags,
            limits,
            against,
            slo: _,
        } = self;
        flags.amount.settle();
        let form = flags.form.form();
        let json = flags.dry_run && flags.form.is_json()?;
        print::fits(
            form,
            if limits.is_some() {
                &[]
            } else {
                &print::UNLIMITED
            },
        )?;
        // Checked before a commit is checked out and built.
        if !flags.dry_run {
            flags.out.out.as_deref().map_or(Ok(()), preflight::record)?;
        }
        let prometheus = flags
            .prometheus
            .prometheus
            .filter(|_| !flags.dry_run)
            .map(prometheus::listen)
            .transpose()?;
        let file = experiment.plan(&Overrides::default(), None)?;
        self.check_time(&file)?;
        let overrides = self.overrides(&file)?;
        // The worktree is kept until the services have ended.
        let (plan, _worktree) = experiment::plan(experiment, &overrides, against, flags.dry_run)?;
        self.report_dropped_limits(&file, &plan);
        if limits.is_some() {
            gate::check(&plan)?;
        }
        if flags.dry_run {
            experiment.save()?;
            return dry_run::run(&plan, json);
        }
        dry_run::warn_of_budget(&plan);
        let directory = flags
            .out
            .out
            .clone()
            .unwrap_or_else(|| records::claim(&plan.name));
        let (name, repeat) = (experiment.name(), self.repeat(&file, &plan));
        let job = LabJob::new(&name, experiment.text(), plan, Some(&directory))?;
        experiment.save()?;
        let (events, yes) = (flags.events, flags.yes.yes);
        let (record, result) = execution::execute(LabJob {
            repeat,
            events,
            yes,
            prometheus,
            ..job
        })?;
        // If no service ran, the error is the whole result.
        let nothing = result.is_err() && record.trials().all(|trial| trial.slices.is_empty());
        let code = if nothing && !flags.events && *form == report::TEXT {
            0
        } else if let Some(limits) = limits {
            let output = if flags.events {
                GateOutput::Events
            } else {
                GateOutput::Report(form, flags.amount)
            };
            gate::after_run(&record, limits, output)?
        } else if flags.events {
            // The last event was the report.
            exit::of_record(&record, &analysis::conclude(&record))
        } else {
            crate::report::print(&record, form, flags.amount)?
        };
        execution::end(result, code)
    }

    fn searches_capacity(&self) -> bool {
        !self.slo.is_empty()
    }

    /// Rejects flags about the budget if the experiment compares nothing.
    fn check_time(&self, file: &Plan) -> Result<(), CliError> {
        let given = exit::given(&[
            (self.flags.quick, "--quick"),
            (self.flags.budget.is_some(), "--budget"),
        ]);
        match given {
            Some(flag) if file.measure.is_some() && !self.searches_capacity() => {
                let message =
                    format!("{flag}: the experiment has [measure], and takes as long as that says");
                Err(CliError::usage(message).hint("say it there, as `duration` or `requests`"))
            }
            _ => Ok(()),
        }
    }

    /// The settings of all flags. `file` is the plan without them.
    fn overrides(&self, file: &Plan) -> Result<Overrides, CliError> {
        let mut limits = KnownLimits::of(file);
        limits.is_compared |= self.against.against.is_some();
        let mut overrides = Overrides::default();
        if self.searches_capacity() {
            limits.metrics = vec![Metric::Capacity];
            limits
                .entries
                .retain(|entry| entry.limit.figure.exists_in(Pacing::Search));
            overrides = capacity_overrides(self.slo);
        }
        let RunFlags {
            seed: SeedFlag { seed },
            explain,
            quick: _,
            budget: _,
            // About the output, the record, or this process.
            dry_run: _,
            form: _,
            events: _,
            amount: _,
            yes: _,
            prometheus: _,
            out: _,
        } = self.flags;
        overrides.settings.extend(self.budget(file));
        overrides.settings.extend(seed.map(seed_setting));
        if *explain {
            overrides.settings.push(explain_setting());
        }
        if let Some(flags) = self.limits {
            overrides.settings.extend(limits.settings(flags)?);
        }
        Ok(overrides)
    }

    /// The budget, if it is not the file's.
    fn budget(&self, file: &Plan) -> Option<FlagSetting> {
        // The length of a measurement is no budget of a search.
        let is_lacking = self.searches_capacity() && file.measure.is_some();
        let own = if is_lacking {
            BUDGET
        } else {
            file.design.budget
        };
        let quick = || quick_budget(file.variants.len(), file.design.rate.is_some());
        let (budget, flag) = match self.flags.budget {
            Some(budget) => (budget, "--budget"),
            None if self.flags.quick => (own.min(quick()), "--quick"),
            None if is_lacking => (own, "--slo"),
            None => return None,
        };
        let budget = plan::duration_text(budget);
        let from = match flag {
            "--budget" => format!("{flag} {budget}"),
            _ => flag.to_owned(),
        };
        Some(FlagSetting::new(&["design", "budget"], budget, from))
    }

    /// Prints which limits of the file are not judged because capacity is searched.
    fn report_dropped_limits(&self, file: &Plan, plan: &Plan) {
        let dropped = |entry: &&GateEntry| !entry.limit.figure.exists_in(Pacing::Search);
        let entries = file.gate.iter().filter(|_| self.searches_capacity());
        for entry in entries.filter(dropped) {
            let (why, _) = plan.why_never(entry.limit.figure);
            print::tell!(
                "note: the file's limit {} is not judged: {why}",
                entry.limit
            );
        }
    }

    /// The command that repeats the run. Limits from flags are in it as they are judged.
    fn repeat(&self, file: &Plan, plan: &Plan) -> Repeat {
        let mut words = vec!["run".to_owned(), self.experiment.name()];
        let limits = plan.gate.iter().filter(|entry| entry.line.is_none());
        let limits: Vec<String> = limits
            .flat_map(|entry| ["--limit".to_owned(), entry.limit.to_string()])
            .collect();
        if self.searches_capacity() {
            "capacity".clone_into(&mut words[0]);
            let slo = self.slo.iter();
            words.extend(slo.flat_map(|limit| ["--slo".to_owned(), limit.to_string()]));
        } else if !limits.is_empty() {
            // A limit from a flag does not require limits in the file.
            words.push("--gate".to_owned());
        }
        if self.flags.explain {
            words.push("--explain".to_owned());
        }
        words.extend(limits);
        words.extend(self.against.again());
        if plan.design.budget != file.design.budget {
            let budget = plan::duration_text(plan.design.budget);
            words.extend(["--budget".to_owned(), budget]);
        }
        Repeat::Command(words)
    }
}

/// Turns a file's experiment into a search for the capacity within these limits.
fn capacity_overrides(slo: &[Limit]) -> Overrides {
    let texts: Vec<String> = slo.iter().map(ToString::to_string).collect();
    let flags = texts.iter().map(|text| format!("--slo '{text}'"));
    let flags = flags.collect::<Vec<_>>().join(" ");
    let rates = [
        &["load", "rate"][..],
        &["factors", "*", "*", "load", "rate"],
    ];
    let design = ["metric", "endpoint", "rate", "pooled", "slice", "slices"];
    let unmeasured = plan::LimitFigure::all().filter(|figure| !figure.exists_in(Pacing::Search));
    let limits = unmeasured.flat_map(|figure| {
        let name = figure.name();
        [vec!["gate", name], vec!["gate", "of", "*", name]]
    });
    let removed = std::iter::once(vec!["measure"])
        .chain(rates.map(<[_]>::to_vec))
        .chain(design.map(|key| vec!["design", key]))
        .chain(limits);
    Overrides {
        settings: vec![FlagSetting::new(&["design", "slo"], texts, flags)],
        removed: removed.collect(),
        requests: None,
    }
}

/// The budget of `--quick` for a number of variants, in open or closed loop.
pub fn quick_budget(variants: usize, open: bool) -> Duration {
    let variant_s = if open {
        QUICK_VARIANT_OPEN_S
    } else {
        QUICK_VARIANT_S
    };
    Duration::from_secs(QUICK_MIN_S.max(variant_s * variants as u64))
}
