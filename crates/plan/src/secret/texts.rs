//! The texts of a plan in which secrets may stand, one after the other, with the name that a text is the value of.

use crate::model::{Contract, Plan, Preparation, Ready, Request, Service, Source};

/// What is done with a text: the name of its variable, field or flag, and the text.
pub(crate) type Visit<'v> = &'v mut dyn FnMut(Option<&str>, &mut String);

pub(super) fn of_plan(plan: &mut Plan, visit: Visit<'_>) {
    for variant in &mut plan.variants {
        variant.services.iter_mut().for_each(|service| of_service(service, visit));
        variant.load.requests.iter_mut().for_each(|request| of_request(request, visit));
        of_contract(&mut variant.expect, visit);
    }
    plan.prepare.iter_mut().for_each(|step| of_step(step, visit));
    of_words(&mut plan.building.command, visit);
    plan.against.iter_mut().filter_map(|against| against.build.as_mut()).for_each(|text| visit(None, text));
}

fn of_service(service: &mut Service, visit: Visit<'_>) {
    if let Ready::Http(path) = &mut service.ready {
        visit(None, path);
    }
    match &mut service.source {
        Source::Deployed { .. } => {}
        Source::Url { url } => visit(None, &mut url.path),
        Source::Command(command) => {
            of_words(&mut command.command, visit);
            command.env.iter_mut().for_each(|(name, text)| visit(Some(name), text));
            command.templates.values_mut().for_each(|text| visit(None, text));
        }
    }
}

pub(crate) fn of_request(request: &mut Request, visit: Visit<'_>) {
    visit(None, &mut request.path);
    request.headers.iter_mut().for_each(|(name, text)| visit(Some(name), text));
    visit(None, &mut request.body);
    request.expect.iter_mut().for_each(|expect| of_contract(expect, visit));
}

fn of_contract(contract: &mut Contract, visit: Visit<'_>) {
    for (name, accepted) in &mut contract.headers {
        accepted.iter_mut().for_each(|text| visit(Some(name), text));
    }
}

pub(super) fn of_step(step: &mut Preparation, visit: Visit<'_>) {
    of_words(&mut step.command, visit);
    step.env.iter_mut().for_each(|(name, text)| visit(Some(name), text));
}

/// A word behind a flag that ends with its name is the flag's value.
pub(super) fn of_words(words: &mut [String], visit: Visit<'_>) {
    let mut before: Option<String> = None;
    for word in words {
        let next = flag(word).map(str::to_owned);
        visit(before.filter(|_| next.is_none()).as_deref(), word);
        before = next;
    }
}

/// The name of a flag that has its value behind it, in a word of its own.
pub(super) fn flag(word: &str) -> Option<&str> {
    word.starts_with('-').then(|| word.trim_start_matches('-')).filter(|name| !name.contains(['=', ' ', ':']))
}
