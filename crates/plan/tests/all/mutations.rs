//! For any mutation of an experiment file, reading it ends with a valid plan or with problems that can be
//! shown.

use proofload_plan::{Launcher, NodeCommand, Plan, Problem, fill, parse, render};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::{here, plan};

/// Uses every key of the file.
const FULL: &str = include_str!("../full.toml");
/// The keys of several requests, which are an alternative to some keys of the other file.
const MIX: &str = include_str!("../mix.toml");

/// Inserted texts, separated by bars: pieces of TOML, of this file, and of neither.
const FRAGMENTS: &str = "[¦]¦[[¦{¦}¦=¦.¦,¦\"¦'¦'''¦\n¦\r\n¦\r¦#¦\\¦\0¦é¦·¦\u{feff}¦name¦services¦factors¦load¦design¦\
    entry¦needs = [\"api\"]¦api¦proxy¦env¦{port}¦{{¦{api.port}¦{prepare.zips}¦prepare¦\"20mbit\"¦0¦\
    -1¦1e400¦nan¦99999999999999999999¦0xff¦true¦2026-01-01¦\"10s\"¦\"3%\"¦[services.api]\n¦\
    [[services]]\n¦[factors.x]\n¦[factors.x.y]\n¦a = {}\n¦\"\" = \"\"\n¦load = 1\n¦\
    services = \"none\"\n¦design.compare = []\n¦x.y.z = { a.b = [[], {}] }\n¦\
    launcher = \"pm2-fork\"\n¦templates = { \"..\" = \"src\", a = \"b\" }\n¦\"> -3%\"¦[gate.of.x]\n¦\
    [generators]\n¦local = 0\n";

/// The nearest character boundary at or before `at`.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or_default()
}

/// One change at a place, with a part from another place. Most are words replaced by others of the file,
/// which mostly leaves valid TOML with another meaning.
fn mutated(text: &str, (kind, place, other): &(u8, Index, Index)) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let at = boundary(text, place.index(text.len() + 1));
    match kind {
        0 => {
            let fragments: Vec<&str> = FRAGMENTS.split('¦').collect();
            format!(
                "{}{}{}",
                &text[..at],
                fragments[other.index(fragments.len())],
                &text[at..]
            )
        }
        1 => {
            let end = boundary(text, text.len().min(at + 1 + other.index(11)));
            format!("{}{}", &text[..at], &text[end..])
        }
        2 | 3 if lines.is_empty() => String::new(),
        2 => {
            lines.remove(place.index(lines.len()));
            lines.concat()
        }
        3 => {
            let line = lines[place.index(lines.len())];
            lines.insert(other.index(lines.len()), line);
            lines.concat()
        }
        _ => {
            let words: Vec<&str> = text
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .collect();
            let word = words[place.index(words.len())];
            let at = word.as_ptr() as usize - text.as_ptr() as usize;
            format!(
                "{}{}{}",
                &text[..at],
                words[other.index(words.len())],
                &text[at + word.len()..]
            )
        }
    }
}

fn assert_can_be_shown(text: &str, problems: &[Problem]) {
    assert!(!problems.is_empty());
    for problem in problems {
        assert!(
            text.get(problem.span.clone()).is_some(),
            "{problem:?} lies outside the text"
        );
        assert!(
            problem.line_column(text).0 <= text.lines().count() + 1,
            "{problem:?}"
        );
        assert!(
            !problem.message.is_empty() && !problem.message.contains(['\n', '\0', '\r']),
            "{problem:?}"
        );
        let is_read = problem.label != "this cannot be read";
        assert!(
            is_read,
            "the schema lets pass what serde cannot read: {problem:?}"
        );
    }
}

fn assert_sound(plan: &Plan) {
    assert!((1..=64).contains(&plan.variants.len()));
    assert!(plan.generators.count() > 0);
    assert!(!plan.generators.is_elsewhere() || plan.generators.address.is_some());
    for variant in &plan.variants {
        assert!(variant.load.settings.connections >= plan.generators.count());
        assert!(variant.load.network.is_none() || plan.generators.is_here());
        let names = variant.load.requests.iter().map(|request| &request.name);
        assert_eq!(
            names.collect::<std::collections::BTreeSet<_>>().len(),
            variant.load.requests.len()
        );
        assert!(
            variant
                .load
                .requests
                .iter()
                .all(|request| request.weight > 0)
        );
        if let Some(endpoint) = &plan.design.endpoint {
            assert!(
                variant
                    .load
                    .share_of(&endpoint.name)
                    .is_some_and(|share| share >= endpoint.share)
            );
        }
        assert_eq!(
            variant.services.last().map(|service| &service.name),
            Some(&variant.entry)
        );
        for (index, service) in variant.services.iter().enumerate() {
            let Some(command) = service.command() else {
                continue;
            };
            assert!(!command.command.is_empty());
            let started = &variant.services[..index];
            assert!(
                service
                    .needs
                    .iter()
                    .all(|need| started.iter().any(|other| other.name == *need))
            );
            let known = |name: &str| match name.strip_prefix("prepare.") {
                Some(name) => plan.prepare.iter().any(|step| step.name == name),
                None if name == "workers" => command.workers.is_some(),
                None => {
                    ["port", "directory", "address", "scratch"].contains(&name)
                        || name.ends_with(".port")
                }
            };
            for text in command.command.iter().chain(command.env.values()) {
                fill(text, |name| known(name).then(String::new)).expect("only known placeholders");
            }
            for text in command.templates.values() {
                render(text, |name| known(name).then(String::new))
                    .expect("only known placeholders");
            }
            if command.launcher != Launcher::Exec {
                assert!(command.workers.is_some() && NodeCommand::parse(&command.command).is_ok());
            }
        }
    }
    for comparison in &plan.comparisons {
        assert!(comparison.baseline != comparison.candidate);
        assert!(comparison.baseline.max(comparison.candidate) < plan.variants.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1000) })]

    #[test]
    fn reading_ends_well(
        file in proptest::sample::select(&[FULL, MIX][..]),
        mutations in prop::collection::vec((0..10u8, any::<Index>(), any::<Index>()), 1..6),
    ) {
        let text = mutations.iter().fold(file.to_owned(), |text, mutation| mutated(&text, mutation));
        match parse(&text, here()) {
            Ok(plan) => assert_sound(&plan),
            Err(problems) => assert_can_be_shown(&text, &problems),
        }
    }
}

#[test]
fn the_file_that_is_mutated_is_a_good_one() {
    let plan = plan(FULL);
    assert_sound(&plan);
    assert_eq!(plan.variants.len(), 7);
}
