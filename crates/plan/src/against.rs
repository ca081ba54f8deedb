//! What the services' code here is compared with, another commit, and plans in which each variant is there twice: with the code as it is
//! here, and as it is there; or beside a copy of itself, where whatever they find is the machine's doing.
//!
//! Pure: which commit that is, where it lies and how it is built is found out by others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::model::quantity::many;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::draft::{command_line, fitting};
use crate::factor::{SEPARATOR, VARIANTS_MAX};
use crate::model::{
    CommandTexts, Comparison, Design, Factor, LookRule, Plan, Preparation, Service, VERDICTS_MAX, Variant,
};
use crate::paths::PlanPaths;
use crate::placeholder::{Placeholder, placeholders, spliced, template_placeholders};
use crate::prepare;
use crate::problem::Refused;

/// Digits of a commit that are shown to people.
const COMMIT_DIGITS: usize = 7;
/// Longer refs are cut where they name a variant.
const REFERENCE_CHARS_MAX: usize = 33;

/// The commit that the working tree is compared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Against {
    /// The ref as it was given: a branch, a tag, a commit.
    pub reference: String,
    /// The commit that it named then, all of its digits.
    pub commit: String,
    /// Root of the working tree, absolute.
    pub repository: PathBuf,
    /// Where the commit is checked out, absolute: its root.
    pub worktree: PathBuf,
    /// How the working tree differs from the commit, as git says it: `3 files changed, 12 insertions(+), 4 deletions(-)`;
    /// empty where no file of the commit or of the index differs.
    pub stat: String,
    /// Files of the working tree that git neither knows nor ignores; records of Proofload not counted.
    pub untracked: usize,
    /// Whether the working tree differs from the commit that is checked out there.
    pub uncommitted: bool,
    /// The shell command by which it was asked to be built, where that was not the experiment file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// Files and folders typed to be copied in place of those that are recognised.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copy: Vec<String>,
    /// Files that git does not keep, copied from the working tree so that both sides are configured alike; relative to its root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copied: Vec<PathBuf>,
    /// Files that only the working tree has, and that the services may read; relative to its root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only_here: Vec<PathBuf>,
    /// What else a reader must know to trust the comparison, each a sentence without a full stop.
    #[serde(default)]
    pub notes: Vec<String>,
}

impl Against {
    /// Name of the level that is the commit: `main (1a2b3c4)`; of a commit that was given by its digits these alone.
    pub fn baseline(&self) -> String {
        self.called(self.short_commit())
    }

    fn called(&self, digits: &str) -> String {
        if self.commit.starts_with(&self.reference) {
            return digits.to_owned();
        }
        format!("{} ({digits})", fitting(&self.reference, REFERENCE_CHARS_MAX))
    }

    /// Name of the level that is the working tree.
    pub fn candidate(&self) -> &'static str {
        if self.uncommitted { "here + uncommitted changes" } else { "here" }
    }

    /// The first digits of the commit.
    pub fn short_commit(&self) -> &str {
        self.commit.get(..COMMIT_DIGITS).unwrap_or(&self.commit)
    }

    /// Where something of the working tree is at the commit; outside of the repository where it is.
    pub fn moved(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.repository) {
            // Joined to nothing a path would end with a slash.
            Ok(inside) if inside.as_os_str().is_empty() => self.worktree.clone(),
            Ok(inside) => self.worktree.join(inside),
            Err(_) => path.to_owned(),
        }
    }

    /// In words what is compared: `main (1a2b3c4d5e6f…): working tree with 3 files changed, …`.
    pub fn describe(&self) -> String {
        let untracked =
            (self.untracked > 0).then(|| format!("{} unknown to git", many(self.untracked as u64, "file")));
        let stat = Some(self.stat.clone()).filter(|stat| !stat.is_empty());
        let differs: Vec<String> = stat.into_iter().chain(untracked).collect();
        let uncommitted = if self.uncommitted { "; not all of it is committed" } else { "" };
        let tree = if differs.is_empty() {
            "the working tree is the same".to_owned()
        } else {
            format!("working tree with {}{uncommitted}", differs.join(", "))
        };
        let digits = self.commit.get(..12).unwrap_or(&self.commit);
        format!("{}: {tree}", self.called(&format!("{digits}…")))
    }

    /// The flags that ask for the same comparison, to be put behind a command: ` --against main`.
    pub fn flags(&self) -> String {
        format!(" {}", command_line(against_flags(&self.reference, self.build.as_deref(), &self.copy)))
    }
}

/// The flags that ask for a comparison with a commit, as words.
pub fn against_flags(reference: &str, build: Option<&str>, copy: &[String]) -> Vec<String> {
    let flags = [("--against", reference)].into_iter();
    let flags = flags.chain(build.map(|script| ("--build", script)));
    let flags = flags.chain(copy.iter().map(|path| ("--copy", path.as_str())));
    flags.flat_map(|(flag, value)| [flag.to_owned(), value.to_owned()]).collect()
}

/// How services are built at a commit.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Serialize, Deserialize)]
pub struct Building {
    /// Program and arguments, as they are; empty where nobody says, and it is found out.
    pub command: Vec<String>,
    /// How long it may take in each directory.
    #[default(Duration::from_secs(600))]
    pub timeout: Duration,
    /// Files and folders that git does not keep and the services read, absolute; `None` where those are copied that are recognised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<Vec<PathBuf>>,
}

/// What the factor is called, where the file has none of this name.
const FACTOR: &str = "source";

impl Plan {
    /// The same plan with every directory of the working tree as it is at the commit. What is read from files, templates
    /// that is, stays as it is here: [`crate::parse_at`] reads that too.
    pub fn moved(&self, against: &Against) -> Plan {
        let mut plan = self.clone();
        // Both sides are loaded with the files of the working tree.
        let PlanPaths { directories, files: _ } = plan.paths_mut();
        for directory in directories {
            *directory = against.moved(directory);
        }
        plan
    }

    /// The plan in which every variant is compared with itself at the commit, and with nothing else. `base` is the plan of the
    /// same file there, and `builds` is what has to be made there first.
    ///
    /// The variants are those of the file in its order, each at the commit and then here: a factor more, which changes
    /// fastest. The file's own comparisons are not judged; what its factors do is still among the effects.
    ///
    /// # Errors
    /// Where that makes more variants or verdicts than there may be.
    pub fn against(&self, base: &Plan, against: Against, builds: Vec<Preparation>) -> Result<Plan, Refused> {
        let own = self.own_variants();
        self.check_doubled(own.len(), &against)?;
        let mut factor = FACTOR.to_owned();
        while self.factors.iter().any(|known| known.name == factor) {
            factor.insert_str(0, "git ");
        }
        let levels = [against.baseline(), against.candidate().to_owned()];
        let mut plan = self.clone();
        plan.secrets.join(&base.secrets);
        (plan.variants, plan.comparisons, plan.aa, plan.prepare) = (Vec::new(), Vec::new(), None, builds);
        // Steps that are the same there are made once, under their own name.
        let mut renamed = BTreeMap::new();
        for step in base.prepare.iter().filter(|step| !self.prepare.contains(step)) {
            let name = format!("{} at {}", step.name, against.short_commit());
            renamed.insert(format!("prepare.{}", step.name), format!("prepare.{name}"));
            plan.prepare.push(Preparation { name, ..step.clone() });
        }
        plan.prepare.extend(self.prepare.iter().cloned());
        for (here, there) in own.iter().zip(base.own_variants()) {
            let context = if here.levels.is_empty() { String::new() } else { format!(" ({})", here.name) };
            let baseline = plan.variants.len();
            let label = format!("{} vs {}{context}", levels[1], levels[0]);
            plan.comparisons.push(Comparison { baseline, candidate: baseline + 1, label });
            plan.variants.push(mentioning(side(there, &factor, &levels[0]), &renamed));
            plan.variants.push(side(here, &factor, &levels[1]));
        }
        plan.factors.push(Factor { name: factor, levels: levels.to_vec() });
        plan.against = Some(against);
        // Without comparisons of its own the file may ask for no copy, but with `aa` it has one.
        Ok(if self.aa.is_some() { plan.with_copy(0) } else { plan })
    }

    /// Whether variants are compared, and all services run where commits are checked out, those that get the load from their code.
    ///
    /// # Errors
    /// With the first that does not.
    pub fn check_here(&self) -> Result<(), Refused> {
        if self.measure.is_some() {
            let message = "`measure` is about one variant, and a commit makes a second one";
            return Err(Refused::new(message, "leave `measure` out of the file to compare the two"));
        }
        let is_container = |entry: &&Service| entry.command().is_some_and(|one| one.container.is_some());
        let mut entries = self.variants.iter().filter_map(Variant::entry_service);
        if let Some(Service { name, .. }) = entries.find(is_container) {
            let message = format!("service {name} is a container, and its image is the same at every commit");
            let hint = "make an image of each of the two, and compare them: proofload compare --container shop:old shop:new";
            return Err(Refused::new(message, hint));
        }
        let mut services = self.variants.iter().flat_map(|variant| &variant.services);
        let Some(service) = services.find(|service| !service.is_here()) else { return Ok(()) };
        let name = &service.name;
        let (message, hint) = match service.host() {
            None => (
                format!("service {name} runs already, and nothing of a commit is started"),
                "have both run beside each other, and make a factor of where: before = { shop.url = \"http://127.0.0.1:4000\" }",
            ),
            Some(host) => (
                format!(
                    "service {name} runs on {host}, and a commit is checked out and built on this machine alone"
                ),
                "check both commits out on that host, and make a factor of `directory`: before = { api.directory = \
                 \"/srv/shop-before\" }",
            ),
        };
        Err(Refused::new(message, hint))
    }

    /// The variants without the copy of the baseline.
    fn own_variants(&self) -> &[Variant] {
        &self.variants[..self.variants.len() - usize::from(self.aa.is_some())]
    }

    fn check_doubled(&self, own: usize, against: &Against) -> Result<(), Refused> {
        let (baseline, copy) = (against.baseline(), usize::from(self.aa.is_some()));
        let (metrics, all) = (self.design.metrics().count(), 2 * own + copy);
        let verdicts = own * metrics;
        let message = if all > VARIANTS_MAX {
            let copy = if self.aa.is_some() { " with the copy of `aa`" } else { "" };
            format!("{own} variants, here and at {baseline}, are {all}{copy}, at most {VARIANTS_MAX}")
        } else if verdicts > VERDICTS_MAX {
            let made =
                format!("{own} comparisons with {baseline} in {metrics} metrics are {verdicts} verdicts");
            format!("{made}, at most {VERDICTS_MAX}")
        } else {
            return Ok(());
        };
        Err(Refused::new(message, "leave out levels, or ask the question in several experiments"))
    }
}

fn side(variant: &Variant, factor: &str, level: &str) -> Variant {
    let mut side = variant.clone();
    side.name = match variant.levels.is_empty() {
        true => level.to_owned(),
        false => format!("{}{SEPARATOR}{level}", variant.name),
    };
    side.levels.insert(factor.to_owned(), level.to_owned());
    side
}

/// The variant whose services mention prepared data by its new names.
fn mentioning(mut variant: Variant, renamed: &BTreeMap<String, String>) -> Variant {
    for service in variant.services.iter_mut().filter_map(Service::command_mut) {
        let CommandTexts { words, env, templates } = service.texts_mut();
        for text in words.iter_mut().chain(env.values_mut()) {
            *text = replaced(text, placeholders(text), renamed);
        }
        for text in templates.values_mut() {
            *text = replaced(text, template_placeholders(text), renamed);
        }
    }
    variant
}

fn replaced(text: &str, found: Vec<Placeholder<'_>>, renamed: &BTreeMap<String, String>) -> String {
    let new = |Placeholder { name, range }: Placeholder<'_>| {
        let written = text[range.clone()].replacen(name, renamed.get(name)?, 1);
        Some((range, written))
    };
    spliced(text, found.into_iter().filter_map(new))
}

/// What tells a copy's name from that of its variant.
const COPY: &str = " (again)";

impl Plan {
    /// The plan with a copy of the variant `of` as its last variant, and the check of the one against the other.
    pub(crate) fn with_copy(mut self, of: usize) -> Plan {
        self.aa = Some(self.push_copy(of));
        self
    }

    /// The plan of a calibration: the variant `of` of this one and its copy, looked at once, when the budget is spent.
    ///
    /// `None` where there is no such variant.
    pub fn calibration(&self, of: usize) -> Option<Plan> {
        let variants = vec![self.variants.get(of)?.clone()];
        let design = Design { looks: LookRule::Once, ..self.design.clone() };
        let copied = &variants[0].name;
        let mut plan = Plan {
            name: self.name.clone(),
            question: Some(format!("How far apart do two equal copies of {copied} come out here?")),
            factors: Vec::new(),
            comparisons: Vec::new(),
            aa: None,
            prepare: prepare::mentioned(self.prepare.clone(), &variants),
            variants,
            building: self.building.clone(),
            against: None,
            generators: self.generators.clone(),
            design,
            measure: None,
            gate: Vec::new(),
            tune: self.tune.clone(),
            secrets: self.secrets.clone(),
        };
        let comparison = plan.push_copy(0);
        plan.comparisons.push(comparison);
        Some(plan)
    }

    fn push_copy(&mut self, of: usize) -> Comparison {
        let mut copy = self.variants[of].clone();
        // Names must tell variants apart, and a level may have been called like that.
        while self.variants.iter().any(|variant| variant.name == copy.name) {
            copy.name.push_str(COPY);
        }
        let label = format!("{} vs itself", self.variants[of].name);
        self.variants.push(copy);
        Comparison { baseline: of, candidate: self.variants.len() - 1, label }
    }
}
