//! Plans in which each variant is there twice: with the code as it is here, and as it is at another commit.
//!
//! Pure: which commit that is, and where it lies, is found out by others.

use std::collections::BTreeMap;

use crate::factor::{SEPARATOR, VARIANTS_MAX};
use crate::model::{Against, Comparison, Factor, Plan, Preparation, VERDICTS_MAX, Variant};
use crate::placeholder::{Placeholder, placeholders};
use crate::template::template_placeholders;

/// What the factor is called, where the file has none of this name.
const FACTOR: &str = "source";

/// Why a plan cannot be held against another commit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotDoubled {
    /// A block would have to run through too many.
    #[error("{own} variants, here and at {baseline}, are {all}{}, at most {VARIANTS_MAX}", if *copy { " with the copy of `aa`" } else { "" })]
    Variants {
        /// Variants of the file.
        own: usize,
        /// The commit, by name.
        baseline: String,
        /// How many they would be.
        all: usize,
        /// Whether a copy is among them.
        copy: bool,
    },
    /// All verdicts share one chance to err.
    #[error("{comparisons} comparisons with {baseline} in {metrics} metrics are {} verdicts, at most {VERDICTS_MAX}", comparisons * metrics)]
    Verdicts {
        /// Comparisons, one for each variant of the file.
        comparisons: usize,
        /// The commit, by name.
        baseline: String,
        /// Metrics that get a verdict.
        metrics: usize,
    },
    /// The commit is checked out and built on this machine.
    #[error("service {service} runs on {host}, and a commit is checked out and built on this machine alone")]
    Elsewhere {
        /// The service.
        service: String,
        /// Its host.
        host: String,
    },
    /// What runs already is of whatever commit it was made from.
    #[error("service {service} runs already in a cluster, and nothing of a commit is started")]
    Deployed {
        /// The service.
        service: String,
    },
}

impl NotDoubled {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            NotDoubled::Elsewhere { .. } => {
                "check both commits out on that host, and make a factor of `directory`: before = { api.directory = \"/srv/shop-before\" }"
            }
            NotDoubled::Deployed { .. } => {
                "deploy both beside each other, and make a factor of the Service: before = { shop.kubernetes.service = \"shop-before\" }"
            }
            NotDoubled::Variants { .. } | NotDoubled::Verdicts { .. } => {
                "leave out levels, or ask the question in several experiments"
            }
        }
    }
}

impl Plan {
    /// The same plan with every directory of the working tree as it is at the commit. What is read from files, templates
    /// that is, stays as it is here: [`crate::read_at`] reads that too.
    pub fn moved(&self, against: &Against) -> Plan {
        let mut plan = self.clone();
        for service in plan.variants.iter_mut().flat_map(|variant| &mut variant.services) {
            service.directory = against.moved(&service.directory);
        }
        for step in &mut plan.prepare {
            step.directory = against.moved(&step.directory);
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
    pub fn against(
        &self,
        base: &Plan,
        against: Against,
        builds: Vec<Preparation>,
    ) -> Result<Plan, NotDoubled> {
        let own = self.own_variants();
        self.check_doubled(own.len(), &against)?;
        let factor = self.free_name(FACTOR);
        let levels = [against.baseline(), against.candidate().to_owned()];
        let suffix = format!(" at {}", against.short_commit());
        let (steps, renamed) = self.prepared_twice(base, &suffix);
        let mut plan = self.clone();
        plan.prepare = builds.into_iter().chain(steps).collect();
        (plan.variants, plan.comparisons, plan.aa) = (Vec::new(), Vec::new(), None);
        for (here, there) in own.iter().zip(base.own_variants()) {
            let context = if here.levels.is_empty() { String::new() } else { format!(" ({})", here.name) };
            let baseline = plan.variants.len();
            let label = format!("{} against {}{context}", levels[1], levels[0]);
            plan.comparisons.push(Comparison { baseline, candidate: baseline + 1, label });
            plan.variants.push(mentioning(side(there, &factor, &levels[0]), &renamed));
            plan.variants.push(side(here, &factor, &levels[1]));
        }
        plan.factors.push(Factor { name: factor, levels: levels.to_vec() });
        plan.against = Some(against);
        // Without comparisons of its own the file may ask for no copy, but with `aa` it has one.
        Ok(if self.aa.is_some() { plan.with_copy(0) } else { plan })
    }

    /// Whether all services run where commits are checked out.
    ///
    /// # Errors
    /// With the first that does not.
    pub fn check_here(&self) -> Result<(), NotDoubled> {
        for service in self.variants.iter().flat_map(|variant| &variant.services) {
            if let Some(host) = &service.host {
                return Err(NotDoubled::Elsewhere { service: service.name.clone(), host: host.clone() });
            }
            if service.kubernetes.is_some() {
                return Err(NotDoubled::Deployed { service: service.name.clone() });
            }
        }
        Ok(())
    }

    /// The variants without the copy of the baseline.
    fn own_variants(&self) -> &[Variant] {
        &self.variants[..self.variants.len() - usize::from(self.aa.is_some())]
    }

    fn check_doubled(&self, own: usize, against: &Against) -> Result<(), NotDoubled> {
        let copy = self.aa.is_some();
        let all = 2 * own + usize::from(copy);
        if all > VARIANTS_MAX {
            return Err(NotDoubled::Variants { own, baseline: against.baseline(), all, copy });
        }
        let metrics = self.design.metrics().count();
        if own * metrics > VERDICTS_MAX {
            return Err(NotDoubled::Verdicts { comparisons: own, baseline: against.baseline(), metrics });
        }
        Ok(())
    }

    /// A name that none of the factors has.
    fn free_name(&self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        while self.factors.iter().any(|factor| factor.name == name) {
            name.insert_str(0, "git ");
        }
        name
    }

    /// The steps of both sides, and the new names of those at the commit. Steps that are the same there are made once, under
    /// their own name.
    fn prepared_twice(&self, base: &Plan, suffix: &str) -> (Vec<Preparation>, BTreeMap<String, String>) {
        let differs = |step: &&Preparation| !self.prepare.contains(step);
        let mut renamed = BTreeMap::new();
        let mut steps = Vec::new();
        for step in base.prepare.iter().filter(differs) {
            let name = format!("{}{suffix}", step.name);
            renamed.insert(format!("prepare.{}", step.name), format!("prepare.{name}"));
            steps.push(Preparation { name, ..step.clone() });
        }
        steps.extend(self.prepare.iter().cloned());
        (steps, renamed)
    }
}

fn side(variant: &Variant, factor: &str, level: &str) -> Variant {
    let name = if variant.levels.is_empty() {
        level.to_owned()
    } else {
        format!("{}{SEPARATOR}{level}", variant.name)
    };
    let mut side = Variant { name, ..variant.clone() };
    side.levels.insert(factor.to_owned(), level.to_owned());
    side
}

/// The variant whose services mention prepared data by its new names.
fn mentioning(mut variant: Variant, renamed: &BTreeMap<String, String>) -> Variant {
    for service in &mut variant.services {
        for text in service.command.iter_mut().chain(service.env.values_mut()) {
            *text = replaced(text, &placeholders(text), renamed);
        }
        for text in service.templates.values_mut() {
            *text = replaced(text, &template_placeholders(text), renamed);
        }
    }
    variant
}

fn replaced(text: &str, found: &[Placeholder<'_>], renamed: &BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for Placeholder { name, range } in found {
        let Some(new) = renamed.get(*name) else { continue };
        out += &text[from..range.start];
        out += &text[range.clone()].replacen(name, new, 1);
        from = range.end;
    }
    out + &text[from..]
}
