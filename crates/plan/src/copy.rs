//! Plans in which a variant is held against a copy of itself: whatever they find is the machine's doing.

use crate::model::{Comparison, LookRule, Plan};
use crate::prepare;

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
        let mut design = self.design.clone();
        design.looks = LookRule::Once;
        let variant = self.variants.get(of)?.clone();
        let mut plan = Plan {
            name: self.name.clone(),
            question: Some(format!("How far apart do two equal copies of {} come out here?", variant.name)),
            factors: Vec::new(),
            variants: vec![variant],
            comparisons: Vec::new(),
            aa: None,
            prepare: Vec::new(),
            building: self.building.clone(),
            against: None,
            generators: self.generators.clone(),
            design,
            gate: Vec::new(),
        };
        plan.prepare = prepare::mentioned(self.prepare.clone(), &plan.variants);
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
        let label = format!("{} against itself", self.variants[of].name);
        self.variants.push(copy);
        Comparison { baseline: of, candidate: self.variants.len() - 1, label }
    }
}
