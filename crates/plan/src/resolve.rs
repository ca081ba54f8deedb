//! Resolves a checked tree to the plan: reads each variant's values and collects each problem once.
//!
//! It only calls the other modules, which check services, requests and designs.

use std::collections::HashSet;

use crate::design;
use crate::factor::{self, Grid};
use crate::file::{ExperimentFile, VariantTable};
use crate::gate;
use crate::model::{Factor, Generators, Plan, Variant};
use crate::problem::Problem;
use crate::secret::Secrets;
use crate::site::{FileSource, Site};
use crate::tree::TomlNode;
use crate::{generators, measure, prepare, request, service};

/// Returns the plan, which is only valid without problems. `None` if too much is missing.
pub(crate) fn plan(
    tree: &TomlNode,
    source: FileSource<'_>,
    problems: &mut Vec<Problem>,
) -> Option<Plan> {
    let file: ExperimentFile = tree.read().map_err(|problem| problems.push(problem)).ok()?;
    let ExperimentFile {
        name,
        question,
        // Read from the tree: for each variant, and by factor and limit.
        settings: _,
        factors: _,
        gate: _,
        prepare: steps,
        against: written_building,
        generators: written_generators,
        design: written,
        measure: written_measure,
        tune,
    } = file;
    let factors = factor::factors(tree, source.complete, problems);
    let mut site = Site::new(source, tree, "");
    let mut design = design::design(&mut site, &written);
    let sound = site.problems.is_empty();
    // Too many combinations must not be enumerated.
    if factor::too_many(tree, &factors).is_some() {
        problems.extend(site.problems);
        return None;
    }
    let comparisons = design::comparisons(&mut site, &written, &factors);
    if written.aa {
        design::judge_copy(&mut site, &factors);
    }
    design::report_too_many_verdicts(&mut site, comparisons.len(), design.metrics().count());
    let measure = measure::measure(&mut site, written_measure.as_ref(), &factors);
    measure
        .iter()
        .for_each(|measure| design.budget = measure.total());
    let prepare = steps
        .iter()
        .map(|(name, step)| prepare::preparation(&mut site, name, step))
        .collect();
    let building = prepare::building(&mut site, &written_building);
    let generators = generators::generators(&mut site, written_generators);
    problems.extend(site.problems);
    let variants = variants(tree, source, (&factors, &generators), problems);
    let mut site = Site::new(source, tree, "");
    design::settle_rates(&mut site, &mut design, &variants);
    design.endpoint = design::endpoint(&mut site, &written, &design, &variants);
    if sound && measure.is_none() && site.problems.is_empty() {
        design::judge_times(
            &mut site,
            &written,
            &design,
            Grid::new(&factors).count_saturating(),
        );
    }
    let pacing = measure.is_none().then(|| design.pacing());
    let gate = gate::entries(&mut site, pacing, (&variants, &comparisons));
    service::elsewhere::judge_design(&mut site, &design, &gate, &variants);
    problems.extend(site.problems);
    let compared = comparisons.first().map(|comparison| comparison.baseline);
    let plan = Plan {
        name: name.0,
        question,
        factors,
        prepare: prepare::mentioned(prepare, &variants),
        variants,
        comparisons,
        aa: None,
        building,
        against: None,
        generators,
        design,
        measure,
        gate,
        tune,
        secrets: Secrets::default(),
    };
    Some(
        match compared.filter(|_| written.aa && problems.is_empty()) {
            Some(baseline) => plan.with_copy(baseline),
            None => plan,
        },
    )
}

fn variants(
    tree: &TomlNode,
    source: FileSource<'_>,
    (factors, generators): (&[Factor], &Generators),
    problems: &mut Vec<Problem>,
) -> Vec<Variant> {
    let (grid, before) = (Grid::new(factors), problems.len());
    let mut variants = Vec::new();
    // A problem in a common part would be found once for each variant.
    let mut seen = HashSet::new();
    for index in 0..grid.count_saturating() {
        let name = grid.variant_name(index);
        let laid = factor::laid_over(tree, &grid.names(index));
        let mut site = Site::new(source, &laid, &name);
        match laid.read::<VariantTable>() {
            Ok(settings) => {
                let variant = variant(&mut site, &settings, grid.names(index));
                generators::judge_variant(&mut site, generators, &variant);
                variants.push(variant);
            }
            Err(problem) => site.problems.push(problem),
        }
        let new = |problem: &Problem| seen.insert((problem.span.clone(), problem.label.clone()));
        problems.extend(site.problems.into_iter().filter(new));
    }
    if problems.len() == before && source.complete {
        problems.extend(alike(tree, grid, &variants));
    }
    variants
}

fn variant(site: &mut Site<'_>, settings: &VariantTable, levels: Vec<(&str, &str)>) -> Variant {
    let (entry, services) = service::services(site, settings);
    let load = request::load(
        site,
        &settings.load,
        services.iter().find(|service| service.name == entry),
    );
    Variant {
        name: site.variant.to_owned(),
        levels: levels
            .into_iter()
            .map(|(factor, level)| (factor.to_owned(), level.to_owned()))
            .collect(),
        services,
        entry,
        expect: match site.source.requests {
            Some(typed) => typed.expect.clone(),
            None => request::contract(
                site,
                site.tree,
                &settings.expect,
                load.settings.sample_every,
            ),
        },
        load,
    }
}

/// Reports variants that are equal although their levels differ: a level sets nothing, or nothing that
/// counts.
fn alike(tree: &TomlNode, grid: Grid<'_>, variants: &[Variant]) -> Vec<Problem> {
    let mut problems: Vec<Problem> = Vec::new();
    for (later, variant) in variants.iter().enumerate() {
        // Names and levels always differ.
        let Variant {
            name: _,
            levels: _,
            services,
            entry,
            load,
            expect,
        } = variant;
        let same = |other: &Variant| {
            (&other.services, &other.entry, &other.load, &other.expect)
                == (services, entry, load, expect)
        };
        // A running service cannot be given a variable to distinguish it from itself, so an A/A test of it is
        // written like this.
        let runs_already = variant
            .entry_service()
            .is_some_and(|entry| entry.url().is_some());
        let Some(earlier) = variants[..later]
            .iter()
            .position(same)
            .filter(|_| !runs_already)
        else {
            continue;
        };
        let names = grid.names(earlier).into_iter().zip(grid.names(later));
        let Some((_, (factor, level))) = names.into_iter().find(|(one, other)| one != other) else {
            continue;
        };
        let span = tree.key_place(&["factors", factor, level]);
        let message = format!(
            "variants `{}` and `{}` are alike: everything they start, send and expect is the same",
            variants[earlier].name, variant.name
        );
        if problems.iter().all(|problem| problem.span != span) {
            let problem = Problem::new(span, message, "makes no difference");
            problems.push(problem.with_hint(
                "a level must set something, and of a service that the entry needs; to compare a variant with \
                 itself, set a variable that the service does not read",
            ));
        }
    }
    problems
}
