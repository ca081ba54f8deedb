//! The forms in which profiles of a record are printed, and which of them.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use explain::{Explanation, Subject, Tree, Values};
use report::{flame, why};

use super::{plain, put};
use crate::exit::Failed;
use crate::print;

/// Flags that say what is printed, how, and where.
#[derive(Debug, Args)]
pub struct FormArgs {
    /// Form of what is printed
    #[arg(long, value_enum, default_value_t = Form::Text)]
    pub format: Form,
    /// Only this variant
    #[arg(long, value_name = "NAME")]
    pub variant: Option<String>,
    /// Only this service
    #[arg(long, value_name = "NAME")]
    pub service: Option<String>,
    /// With folded, svg, firefox and cpuprofile: memory that was kept, by who allocated it, in place of CPU time
    #[arg(long)]
    pub heap: bool,
    /// Write to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Of a record: explain anew from the raw profiles, whatever explanation lies there
    #[arg(long)]
    pub again: bool,
}

/// A form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Tables and trees for a terminal
    Text,
    /// Everything, for other programs
    Json,
    /// One page with flame graphs of each variant and of differences, for a browser, without network
    Html,
    /// Stacks in Brendan Gregg's folded form, a line each, for flamegraph.pl, inferno and speedscope
    Folded,
    /// One flame graph as an image
    Svg,
    /// The Firefox Profiler's form: open it at profiler.firefox.com
    Firefox,
    /// V8's form, for DevTools and speedscope, all workers in one
    Cpuprofile,
}

impl Form {
    /// Its name as a flag's value.
    pub fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// Of a tree in µs a request, what makes nanoseconds of it, which folded stacks count in whole numbers; of one in bytes, a microsecond
/// of each.
const NANOSECONDS: f64 = 1e3;
/// The same of a thousand requests: in tools that show time, a millisecond is then a microsecond of one request.
const THOUSAND_REQUESTS: f64 = 1e6;

/// Prints an explanation, or the part of it that was asked for.
///
/// # Errors
/// If there is no such variant or service, several where the form has room for one, or it cannot be written.
pub fn print(args: &FormArgs, explanation: &Explanation, title: &str) -> anyhow::Result<()> {
    let chosen = chosen(args, explanation)?;
    let out = args.out.as_deref();
    let text = match args.format {
        Form::Text => plain(out, why::subjects(&chosen, width(out))),
        Form::Json => format!("{:#}\n", why::json(&chosen)),
        Form::Html => flame::page(&chosen, title),
        Form::Firefox => {
            let trees: Vec<(String, Tree)> = chosen
                .subjects
                .iter()
                .filter_map(|subject| {
                    let factor = if args.heap { 1.0 } else { THOUSAND_REQUESTS };
                    Some((called(subject), scaled(tree(args, subject)?, factor)))
                })
                .collect();
            let trees: Vec<(String, &Tree)> = trees.iter().map(|(name, tree)| (name.clone(), tree)).collect();
            let values = if args.heap { Values::Bytes } else { Values::Nanoseconds };
            format!("{}\n", explain::firefox(&trees, values))
        }
        Form::Folded => explain::folded(&one(args, &chosen, if args.heap { 1.0 } else { NANOSECONDS })?.1),
        Form::Svg => {
            let (name, tree) = one(args, &chosen, 1.0)?;
            let unit = if args.heap { "B/request" } else { "µs/request" };
            flame::svg_in(&tree, unit, &format!("{title}: {name}"))
        }
        Form::Cpuprofile => {
            let factor = if args.heap { NANOSECONDS } else { THOUSAND_REQUESTS };
            format!("{}\n", explain::cpuprofile(&one(args, &chosen, factor)?.1))
        }
    };
    match (args.format, args.heap) {
        (Form::Firefox | Form::Cpuprofile, false) => {
            print::talk(
                "times are those of a thousand requests: a millisecond stands for a microsecond of each",
            );
        }
        (Form::Cpuprofile, true) => {
            print::talk("the format has times alone: a microsecond stands for a byte of each request");
        }
        _ => {}
    }
    put(out, &text)
}

fn width(out: Option<&Path>) -> usize {
    if out.is_some() { print::WIDTH } else { print::width() }
}

fn scaled(tree: &Tree, factor: f64) -> Tree {
    explain::merge(&[(tree, factor)])
}

fn tree<'a>(args: &FormArgs, subject: &'a Subject) -> Option<&'a Tree> {
    if args.heap { subject.heap.as_ref() } else { Some(&subject.tree) }
}

fn called(subject: &Subject) -> String {
    format!("{} · {}", subject.variant, subject.service)
}

/// The part that was asked for: subjects by name, and the comparisons that they are in.
fn chosen(args: &FormArgs, explanation: &Explanation) -> Result<Explanation, Failed> {
    let mut chosen = explanation.clone();
    if let Some(variant) = &args.variant {
        chosen.subjects.retain(|subject| subject.variant == *variant);
        chosen.comparisons.retain(|of| of.variant == *variant || of.baseline == *variant);
        let names = explanation.subjects.iter().map(|subject| &subject.variant);
        found("--variant", variant, &chosen, names)?;
    }
    if let Some(service) = &args.service {
        let before = chosen.clone();
        chosen.subjects.retain(|subject| subject.service == *service);
        found("--service", service, &chosen, before.subjects.iter().map(|subject| &subject.service))?;
    }
    Ok(chosen)
}

fn found<'a>(
    flag: &str,
    name: &str,
    chosen: &Explanation,
    names: impl Iterator<Item = &'a String>,
) -> Result<(), Failed> {
    if !chosen.subjects.is_empty() {
        return Ok(());
    }
    let mut names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    names.dedup();
    let there =
        if names.is_empty() { "there is none".to_owned() } else { format!("there are {}", names.join(", ")) };
    Err(Failed::usage(format!("{flag}: no profile of `{name}`")).hint(there))
}

/// The one tree that a form has room for.
fn one(args: &FormArgs, chosen: &Explanation, factor: f64) -> Result<(String, Tree), Failed> {
    let trees: Vec<(&Subject, &Tree)> =
        chosen.subjects.iter().filter_map(|subject| Some((subject, tree(args, subject)?))).collect();
    let form = args.format.name();
    match trees.as_slice() {
        [(subject, tree)] => Ok((called(subject), scaled(tree, factor))),
        [] if args.heap => Err(Failed::usage("--heap: no memory was sampled")
            .hint("the record's captures tell why, if it was tried: proofload profile RECORD")),
        [] => Err(Failed::usage(format!("--format {form}: there is no profile"))),
        several => {
            let names: Vec<String> =
                several.iter().map(|(subject, _)| format!("`{}`", called(subject))).collect();
            let message = format!("--format {form} has room for one profile, and there are {}", names.len());
            Err(Failed::usage(message)
                .hint(format!("name one with --variant and --service: {}", names.join(", "))))
        }
    }
}
