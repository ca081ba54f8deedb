//! The output formats of profiles of a record, and the selection.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use explain::{ExplainedService, Explanation, Tree, TreeUnit, flame};
use plan::Plan;

use crate::exit::CliError;
use crate::print;

/// Flags for the contents, format and destination of the output.
#[derive(Debug, Args)]
pub struct ProfileFormArgs {
    /// Format of the output
    #[arg(long, value_enum, default_value_t = ProfileForm::Text)]
    pub format: ProfileForm,
    /// Only this variant
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// Only this service
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,
    /// With folded, svg, speedscope and cpuprofile: retained memory by allocation site instead of CPU time
    #[arg(long)]
    pub heap: bool,
    /// Write to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// With a record: recompute the explanation from the raw profiles
    #[arg(long)]
    pub again: bool,
}

impl ProfileFormArgs {
    /// Rejects flags that conflict.
    pub fn check(&self) -> Result<(), CliError> {
        if self.heap
            && matches!(
                self.format,
                ProfileForm::Text | ProfileForm::Json | ProfileForm::Html
            )
        {
            let message = format!("--heap: {} has memory beside CPU time", self.format.name());
            let hint = "leave it out, or add --format folded, svg, speedscope or cpuprofile";
            return Err(CliError::usage(message).hint(hint));
        }
        self.out.as_deref().map_or(Ok(()), print::check_writable)
    }

    /// Rejects names that this plan does not have and formats that it cannot be printed in, before its
    /// services are started.
    pub fn check_for(&self, plan: &Plan) -> Result<(), CliError> {
        if self.again {
            let message = "--again: what is captured now is computed from the raw profiles anyway";
            return Err(CliError::usage(message).hint("it is for records"));
        }
        let services = plan.variants.iter().flat_map(|variant| &variant.services);
        known(
            "--variant",
            self.variant.as_deref(),
            plan.variants.iter().map(|variant| &*variant.name),
        )?;
        known(
            "--service",
            self.service.as_deref(),
            services.map(|service| &*service.name),
        )?;
        let is_chosen = |chosen: &Option<String>, name: &str| {
            chosen.as_deref().is_none_or(|chosen| chosen == name)
        };
        let variants = plan
            .variants
            .iter()
            .filter(|variant| is_chosen(&self.variant, &variant.name));
        let profiled = variants.flat_map(|variant| {
            let started = variant
                .services
                .iter()
                .filter(|service| service.command().is_some());
            let started = started.filter(|service| is_chosen(&self.service, &service.name));
            started.map(move |service| format!("{} · {}", variant.name, service.name))
        });
        let profiled: Vec<String> = profiled.collect();
        match self.format {
            ProfileForm::Folded | ProfileForm::Cpuprofile | ProfileForm::Svg
                if profiled.len() > 1 =>
            {
                Err(no_room(self.format, &profiled))
            }
            _ => Ok(()),
        }
    }
}

/// Rejects unknown names.
fn known<'n>(
    flag: &str,
    name: Option<&'n str>,
    there: impl IntoIterator<Item = &'n str>,
) -> Result<(), CliError> {
    let there = model::distinct(there);
    let Some(name) = name.filter(|name| !there.contains(name)) else {
        return Ok(());
    };
    let hint = plan::did_you_mean(name, "profiles", there);
    Err(CliError::usage(format!("{flag}: no profile of `{name}`")).hint(hint))
}

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProfileForm {
    /// Tables and trees for a terminal
    Text,
    /// Everything, for other programs
    Json,
    /// One page with flame graphs of each variant and of differences, for a browser, without network
    Html,
    /// Stacks in Brendan Gregg's folded format, one per line, for flamegraph.pl, inferno and speedscope
    Folded,
    /// One flame graph as an image
    Svg,
    /// speedscope's format: drop it on speedscope.app, to search and to see callers
    Speedscope,
    /// V8's format, for DevTools and speedscope, all workers in one
    Cpuprofile,
}

impl ProfileForm {
    /// Its name as a flag's value.
    pub fn name(self) -> String {
        self.to_possible_value()
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }
}

/// Prints an explanation, or the selected part of it.
pub fn print(args: &ProfileFormArgs, explanation: &Explanation, title: &str) -> anyhow::Result<()> {
    let chosen = chosen(args, explanation)?;
    let out = args.out.as_deref();
    let unit = if args.heap {
        TreeUnit::BytesPerRequest
    } else {
        TreeUnit::MicrosPerRequest
    };
    let text = match args.format {
        ProfileForm::Text => report::text(&explain::all_of(&chosen, title), print::width_of(out)),
        ProfileForm::Json => model::text::json(report::with_format(serde_json::to_value(&chosen)?)),
        ProfileForm::Html => flame::page(&chosen, title),
        form => {
            let of = |subject| Some((called(subject), tree(args, subject)?));
            let trees: Vec<(String, &Tree)> = chosen.subjects.iter().filter_map(of).collect();
            if trees.is_empty() && args.heap {
                return Err(CliError::usage("--heap: no memory was sampled")
                    .hint(
                        "the record's captures tell why, if it was tried: proofload profile RECORD",
                    )
                    .into());
            }
            exported(form, &trees, unit, title)?
        }
    };
    Ok(print::put(out, &text)?)
}

/// How to open a file of this format, or the meaning of its times.
fn hint(form: ProfileForm, unit: TreeUnit) -> Option<&'static str> {
    match form {
        ProfileForm::Speedscope => Some("to open it: drop the file on speedscope.app"),
        ProfileForm::Cpuprofile => match unit {
            TreeUnit::MicrosPerRequest => Some(
                "times are those of a thousand requests: a millisecond stands for a microsecond of each",
            ),
            TreeUnit::BytesPerRequest | TreeUnit::Bytes => {
                Some("the format has times alone: a microsecond stands for a byte")
            }
            TreeUnit::Nanoseconds => None,
        },
        ProfileForm::Text
        | ProfileForm::Json
        | ProfileForm::Html
        | ProfileForm::Folded
        | ProfileForm::Svg => None,
    }
}

/// Trees in a format of other tools, with a hint how to open it.
pub fn exported(
    form: ProfileForm,
    trees: &[(String, &Tree)],
    unit: TreeUnit,
    title: &str,
) -> Result<String, CliError> {
    let text = match form {
        ProfileForm::Speedscope => format!("{}\n", explain::speedscope(trees, unit)),
        ProfileForm::Folded => explain::folded(one(form, trees)?.1, unit),
        ProfileForm::Cpuprofile => format!("{}\n", explain::cpuprofile(one(form, trees)?.1, unit)),
        ProfileForm::Svg => {
            let (name, tree) = one(form, trees)?;
            let title = if name == title {
                title.to_owned()
            } else {
                format!("{title}: {name}")
            };
            flame::svg(tree, unit, &title)
        }
        ProfileForm::Text | ProfileForm::Json | ProfileForm::Html => String::new(),
    };
    hint(form, unit).into_iter().for_each(print::talk);
    Ok(text)
}

fn tree<'a>(args: &ProfileFormArgs, subject: &'a ExplainedService) -> Option<&'a Tree> {
    if args.heap {
        subject.heap.as_ref()
    } else {
        Some(&subject.tree)
    }
}

fn called(subject: &ExplainedService) -> String {
    format!("{} · {}", subject.variant, subject.service)
}

/// The selected part: subjects by name, and the comparisons of a variant. Comparisons of several services are
/// left out if one service is selected.
fn chosen(args: &ProfileFormArgs, explanation: &Explanation) -> Result<Explanation, CliError> {
    let mut chosen = explanation.clone();
    if let Some(variant) = &args.variant {
        chosen
            .comparisons
            .retain(|of| of.variant == *variant || of.baseline == *variant);
        retain("--variant", variant, &mut chosen.subjects, |subject| {
            &subject.variant
        })?;
    }
    if let Some(service) = &args.service {
        let all = chosen.subjects.len();
        retain("--service", service, &mut chosen.subjects, |subject| {
            &subject.service
        })?;
        if chosen.subjects.len() < all {
            chosen.comparisons.clear();
        }
    }
    Ok(chosen)
}

fn retain(
    flag: &str,
    name: &str,
    subjects: &mut Vec<ExplainedService>,
    of: fn(&ExplainedService) -> &str,
) -> Result<(), CliError> {
    known(flag, Some(name), subjects.iter().map(of))?;
    subjects.retain(|subject| of(subject) == name);
    Ok(())
}

/// The tree for a format that contains only one.
fn one<'a>(
    form: ProfileForm,
    trees: &[(String, &'a Tree)],
) -> Result<(String, &'a Tree), CliError> {
    match trees {
        [one] => Ok(one.clone()),
        [] => Err(CliError::usage(format!(
            "--format {}: there is no profile",
            form.name()
        ))),
        several => {
            let names: Vec<String> = several.iter().map(|(name, _)| name.clone()).collect();
            Err(no_room(form, &names))
        }
    }
}

fn no_room(form: ProfileForm, names: &[String]) -> CliError {
    let message = format!(
        "--format {} has room for one profile, and there are {}",
        form.name(),
        names.len()
    );
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    CliError::usage(message).hint(format!(
        "name one with --variant and --service: {}",
        names.join(", ")
    ))
}
