//! Comparison of the services' code with another commit: plans in which each variant appears twice, with the
//! working tree's code and with the commit's. Also plans with a copy of a variant, where any difference is
//! noise.
//!
//! Pure: other modules resolve the commit, check it out and build it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::factor::{SEPARATOR, VARIANTS_MAX};
use crate::model::{
    Against, CommandTexts, Comparison, Design, Factor, LookRule, Plan, Preparation, Service,
    VERDICTS_MAX, Variant,
};
use crate::paths::PlanPaths;
use crate::placeholder::{Placeholder, placeholders, spliced, template_placeholders};
use crate::prepare;
use crate::problem::Refused;

/// Name of the factor, if the file has no factor with this name.
const FACTOR: &str = "source";

impl Plan {
    /// Returns the plan with every directory of the working tree mapped to the commit. Contents read from
    /// files, such as templates, do not change: [`crate::parse_with`] reads the commit's.
    pub fn moved(&self, against: &Against) -> Plan {
        let mut plan = self.clone();
        // Both sides are loaded with the files of the working tree.
        let PlanPaths {
            directories,
            files: _,
        } = plan.paths_mut();
        for directory in directories {
            *directory = against.moved(directory);
        }
        plan
    }

    /// Returns the plan that compares every variant with itself at the commit, and nothing else. `base` is
    /// the plan of the same file at the commit, and `builds` are the builds needed there first.
    ///
    /// The variants are the file's in its order, each at the commit and then in the working tree. This is an
    /// additional factor, which changes fastest. The file's own comparisons are not judged, but its factors
    /// are still among the effects.
    ///
    /// # Errors
    /// If there would be more variants or verdicts than permitted.
    pub fn against(
        &self,
        base: &Plan,
        against: Against,
        builds: Vec<Preparation>,
    ) -> Result<Plan, Refused> {
        let own = self.own_variants();
        self.check_doubled(own.len(), &against)?;
        let mut factor = FACTOR.to_owned();
        while self.factors.iter().any(|known| known.name == factor) {
            factor.insert_str(0, "git ");
        }
        let levels = [against.baseline(), against.candidate().to_owned()];
        let mut plan = self.clone();
        plan.secrets.join(&base.secrets);
        (plan.variants, plan.comparisons, plan.aa, plan.prepare) =
            (Vec::new(), Vec::new(), None, builds);
        // Steps that are equal on both sides run once, with their original name.
        let mut renamed = BTreeMap::new();
        for step in base
            .prepare
            .iter()
            .filter(|step| !self.prepare.contains(step))
        {
            let name = format!("{} at {}", step.name, against.short_commit());
            renamed.insert(format!("prepare.{}", step.name), format!("prepare.{name}"));
            plan.prepare.push(Preparation {
                name,
                ..step.clone()
            });
        }
        plan.prepare.extend(self.prepare.iter().cloned());
        for (here, there) in own.iter().zip(base.own_variants()) {
            let context = if here.levels.is_empty() {
                String::new()
            } else {
                format!(" ({})", here.name)
            };
            let baseline = plan.variants.len();
            let label = format!("{} vs {}{context}", levels[1], levels[0]);
            plan.comparisons.push(Comparison {
                baseline,
                candidate: baseline + 1,
                label,
            });
            plan.variants
                .push(mentioning(side(there, &factor, &levels[0]), &renamed));
            plan.variants.push(side(here, &factor, &levels[1]));
        }
        plan.factors.push(Factor {
            name: factor,
            levels: levels.to_vec(),
        });
        plan.against = Some(against);
        // A file without comparisons cannot ask for a copy, but here `aa` adds one.
        Ok(if self.aa.is_some() {
            plan.with_copy(0)
        } else {
            plan
        })
    }

    /// Checks that variants are compared, that all services are started, and that the services under load run
    /// from their code.
    ///
    /// # Errors
    /// The first service that does not.
    pub fn check_here(&self) -> Result<(), Refused> {
        if self.measure.is_some() {
            let message = "`measure` is about one variant, and a commit makes a second one";
            return Err(Refused::new(
                message,
                "leave `measure` out of the file to compare the two",
            ));
        }
        let is_container =
            |entry: &&Service| entry.command().is_some_and(|one| one.container.is_some());
        let mut entries = self.variants.iter().filter_map(Variant::entry_service);
        if let Some(Service { name, .. }) = entries.find(is_container) {
            let message =
                format!("service {name} is a container, and its image is the same at every commit");
            let hint = "make an image of each of the two, and compare them: proofload compare --container shop:old shop:new";
            return Err(Refused::new(message, hint));
        }
        let mut services = self.variants.iter().flat_map(|variant| &variant.services);
        let Some(Service { name, .. }) = services.find(|service| service.command().is_none())
        else {
            return Ok(());
        };
        let message = format!("service {name} runs already, and nothing of a commit is started");
        let hint = "have both run beside each other, and make a factor of where: before = { shop.url = \"http://127.0.0.1:4000\" }";
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
            let copy = if self.aa.is_some() {
                " with the copy of `aa`"
            } else {
                ""
            };
            format!(
                "{own} variants, here and at {baseline}, are {all}{copy}, at most {VARIANTS_MAX}"
            )
        } else if verdicts > VERDICTS_MAX {
            let made = format!(
                "{own} comparisons with {baseline} in {metrics} metrics are {verdicts} verdicts"
            );
            format!("{made}, at most {VERDICTS_MAX}")
        } else {
            return Ok(());
        };
        Err(Refused::new(
            message,
            "leave out levels, or ask the question in several experiments",
        ))
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

/// The variant, with references to prepared data replaced by their new names.
fn mentioning(mut variant: Variant, renamed: &BTreeMap<String, String>) -> Variant {
    for service in variant.services.iter_mut().filter_map(Service::command_mut) {
        let CommandTexts {
            words,
            env,
            templates,
        } = service.texts_mut();
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

/// Suffix of a copy's name.
const COPY: &str = " (again)";

impl Plan {
    /// Adds a copy of the variant `of` as the last variant, and the check of the one against the other.
    pub(crate) fn with_copy(mut self, of: usize) -> Plan {
        self.aa = Some(self.push_copy(of));
        self
    }

    /// Returns the plan of a calibration: the variant `of` and its copy, analyzed once when the budget is
    /// spent. `seed` replaces that of the file.
    ///
    /// `None` if there is no such variant.
    pub fn calibration(&self, of: usize, budget: Duration, seed: Option<u64>) -> Option<Plan> {
        let variants = vec![self.variants.get(of)?.clone()];
        let design = Design {
            looks: LookRule::Once,
            budget,
            seed: seed.or(self.design.seed),
            // A copy differs in nothing that could be explained.
            explain: false,
            ..self.design.clone()
        };
        let copied = &variants[0].name;
        let mut plan = Plan {
            name: self.name.clone(),
            question: Some(format!(
                "How far apart do two equal copies of {copied} come out here?"
            )),
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
        // Names must be unique, and a level may already have this name.
        while self
            .variants
            .iter()
            .any(|variant| variant.name == copy.name)
        {
            copy.name.push_str(COPY);
        }
        let label = format!("{} vs itself", self.variants[of].name);
        self.variants.push(copy);
        Comparison {
            baseline: of,
            candidate: self.variants.len() - 1,
            label,
        }
    }
}
