//! The output formats of profiles of a record, and the selection.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use explain::{Explanation, Subject, Tree, Unit, flame};
use plan::Plan;

use crate::exit::Failed;
use crate::print;

/// Flags for the contents, format and destination of the output.
#[derive(Debug, Args)]
pub struct FormArgs {
    /// Format of the output
    #[arg(long, value_enum, default_value_t = Form::Text)]
    pub format: Form,
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

impl FormArgs {
    /// Rejects flags that conflict.
    pub fn check(&self) -> Result<(), Failed> {
        if self.heap && matches!(self.format, Form::Text | Form::Json | Form::Html) {
            let message = format!("--heap: {} has memory beside CPU time", self.format.name());
            let hint = "leave it out, or add --format folded, svg, speedscope or cpuprofile";
            return Err(Failed::usage(message).hint(hint));
        }
        self.out.as_deref().map_or(Ok(()), print::check_writable)
    }

    /// Rejects names that this plan does not have and formats that it cannot be printed in, before its
    /// services are started.
    pub fn check_for(&self, plan: &Plan) -> Result<(), Failed> {
        if self.again {
            let message = "--again: what is captured now is computed from the raw profiles anyway";
            return Err(Failed::usage(message).hint("it is for records"));
        }
        let services = plan.variants.iter().flat_map(|variant| &variant.services);
        known("--variant", self.variant.as_deref(), plan.variants.iter().map(|variant| &*variant.name))?;
        known("--service", self.service.as_deref(), services.map(|service| &*service.name))?;
        let is_chosen =
            |chosen: &Option<String>, name: &str| chosen.as_deref().is_none_or(|chosen| chosen == name);
        let variants = plan.variants.iter().filter(|variant| is_chosen(&self.variant, &variant.name));
        let profiled = variants.flat_map(|variant| {
            let started = variant.services.iter().filter(|service| service.command().is_some());
            let started = started.filter(|service| is_chosen(&self.service, &service.name));
            started.map(move |service| format!("{} · {}", variant.name, service.name))
        });
        let profiled: Vec<String> = profiled.collect();
        match self.format {
            Form::Folded | Form::Cpuprofile | Form::Svg if profiled.len() > 1 => {
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
) -> Result<(), Failed> {
    let there = model::distinct(there);
    let Some(name) = name.filter(|name| !there.contains(name)) else { return Ok(()) };
    let hint = plan::did_you_mean(name, "profiles", there);
    Err(Failed::usage(format!("{flag}: no profile of `{name}`")).hint(hint))
}

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
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

impl Form {
    /// Its name as a flag's value.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Prints an explanation, or the selected part of it.
pub fn print(args: &FormArgs, explanation: &Explanation, title: &str) -> anyhow::Result<()> {
    let chosen = chosen(args, explanation)?;
    let out = args.out.as_deref();
    let unit = if args.heap { Unit::BytesPerRequest } else { Unit::MicrosPerRequest };
    let text = match args.format {
        Form::Text => report::text(&explain::all_of(&chosen, title), print::width_of(out)),
        Form::Json => model::text::json(serde_json::to_string_pretty(&chosen)?),
        Form::Html => flame::page(&chosen, title),
        form => {
            let of = |subject| Some((called(subject), tree(args, subject)?));
            let trees: Vec<(String, &Tree)> = chosen.subjects.iter().filter_map(of).collect();
            if trees.is_empty() && args.heap {
                return Err(Failed::usage("--heap: no memory was sampled")
                    .hint("the record's captures tell why, if it was tried: proofload profile RECORD")
                    .into());
            }
            exported(form, &trees, unit, title)?
        }
    };
    Ok(print::put(out, &text)?)
}

/// How to open a file of this format, or the meaning of its times.
fn hint(form: Form, unit: Unit) -> Option<&'static str> {
    match form {
        Form::Speedscope => Some("to open it: drop the file on speedscope.app"),
        Form::Cpuprofile => match unit {
            Unit::MicrosPerRequest => {
                Some("times are those of a thousand requests: a millisecond stands for a microsecond of each")
            }
            Unit::BytesPerRequest | Unit::Bytes => {
                Some("the format has times alone: a microsecond stands for a byte")
            }
            Unit::Nanoseconds => None,
        },
        Form::Text | Form::Json | Form::Html | Form::Folded | Form::Svg => None,
    }
}

/// Trees in a format of other tools, with a hint how to open it.
pub fn exported(form: Form, trees: &[(String, &Tree)], unit: Unit, title: &str) -> Result<String, Failed> {
    let text = match form {
        Form::Speedscope => format!("{}\n", explain::speedscope(trees, unit)),
        Form::Folded => explain::folded(one(form, trees)?.1, unit),
        Form::Cpuprofile => format!("{}\n", explain::cpuprofile(one(form, trees)?.1, unit)),
        Form::Svg => {
            let (name, tree) = one(form, trees)?;
            let title = if name == title { title.to_owned() } else { format!("{title}: {name}") };
            flame::svg(tree, unit, &title)
        }
        Form::Text | Form::Json | Form::Html => String::new(),
    };
    hint(form, unit).into_iter().for_each(print::talk);
    Ok(text)
}

fn tree<'a>(args: &FormArgs, subject: &'a Subject) -> Option<&'a Tree> {
    if args.heap { subject.heap.as_ref() } else { Some(&subject.tree) }
}

fn called(subject: &Subject) -> String {
    format!("{} · {}", subject.variant, subject.service)
}

/// The selected part: subjects by name, and the comparisons of a variant. Comparisons of several services are
/// left out if one service is selected.
fn chosen(args: &FormArgs, explanation: &Explanation) -> Result<Explanation, Failed> {
    let mut chosen = explanation.clone();
    if let Some(variant) = &args.variant {
        chosen.comparisons.retain(|of| of.variant == *variant || of.baseline == *variant);
        retain("--variant", variant, &mut chosen.subjects, |subject| &subject.variant)?;
    }
    if let Some(service) = &args.service {
        let all = chosen.subjects.len();
        retain("--service", service, &mut chosen.subjects, |subject| &subject.service)?;
        if chosen.subjects.len() < all {
            chosen.comparisons.clear();
        }
    }
    Ok(chosen)
}

fn retain(
    flag: &str,
    name: &str,
    subjects: &mut Vec<Subject>,
    of: fn(&Subject) -> &str,
) -> Result<(), Failed> {
    known(flag, Some(name), subjects.iter().map(of))?;
    subjects.retain(|subject| of(subject) == name);
    Ok(())
}

/// The tree for a format that contains only one.
fn one<'a>(form: Form, trees: &[(String, &'a Tree)]) -> Result<(String, &'a Tree), Failed> {
    match trees {
        [one] => Ok(one.clone()),
        [] => Err(Failed::usage(format!("--format {}: there is no profile", form.name()))),
        several => {
            let names: Vec<String> = several.iter().map(|(name, _)| name.clone()).collect();
            Err(no_room(form, &names))
        }
    }
}

fn no_room(form: Form, names: &[String]) -> Failed {
    let message = format!("--format {} has room for one profile, and there are {}", form.name(), names.len());
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    Failed::usage(message).hint(format!("name one with --variant and --service: {}", names.join(", ")))
}
