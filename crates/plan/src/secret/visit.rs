//! Each text of a plan in which a secret may stand, with what it is. It judges nothing.

use super::Field;
use super::names::is_secret_name;
use super::parts::is_likely;
use crate::Url;
use crate::model::{
    Against, Building, CommandTexts, Contract, Load, Plan, Preparation, Ready, Request, Service,
    ServiceSource, Tune, Variant,
};

/// What is done with each text of a plan in which secrets may stand.
pub(crate) type TextVisit<'v> = &'v mut dyn FnMut(Field<'_>, &mut String);

// Every field is named in the following, so that a new one does not compile before somebody has decided whether a secret may stand in it.

pub(super) fn visit_plan(plan: &mut Plan, visit: TextVisit<'_>) {
    let Plan {
        variants,
        prepare,
        building:
            Building {
                command,
                timeout: _,
                copy: _,
            },
        against,
        tune:
            Tune {
                tries,
                only: _,
                without: _,
                keep: _,
            },
        // Names, by which things are found, and what people ask.
        name: _,
        question: _,
        factors: _,
        comparisons: _,
        aa: _,
        // Numbers, names of metrics and of machines.
        generators: _,
        design: _,
        measure: _,
        gate: _,
        secrets: _,
    } = plan;
    for Variant {
        services,
        load,
        expect,
        name: _,
        levels: _,
        entry: _,
    } in variants
    {
        services
            .iter_mut()
            .for_each(|service| visit_service(service, visit));
        visit_load(load, visit);
        visit_contract(expect, visit);
    }
    prepare.iter_mut().for_each(|step| visit_step(step, visit));
    visit_words(command, visit);
    tries.iter_mut().for_each(|text| visit(Field::Text, text));
    against
        .iter_mut()
        .for_each(|against| visit_against(against, visit));
}

fn visit_service(service: &mut Service, visit: TextVisit<'_>) {
    let Service {
        ready,
        source,
        name: _,
        ready_timeout: _,
        needs: _,
    } = service;
    match ready {
        Ready::Http(path) => visit(Field::Sent, path),
        Ready::Tcp | Ready::Response => {}
    }
    match source {
        ServiceSource::Deployed { kubernetes: _ } => {}
        ServiceSource::Url {
            url:
                Url {
                    path,
                    secure: _,
                    place: _,
                },
        } => visit(Field::Sent, path),
        ServiceSource::Command(command) => {
            let CommandTexts {
                words,
                env,
                templates,
            } = command.texts_mut();
            visit_words(words, visit);
            env.iter_mut()
                .for_each(|(name, text)| visit(Field::Of(name), text));
            templates
                .values_mut()
                .for_each(|text| visit(Field::Template, text));
        }
    }
}

fn visit_load(load: &mut Load, visit: TextVisit<'_>) {
    let Load {
        requests,
        connections: _,
        connections_typed: _,
        threads: _,
        rate_per_s: _,
        timeout: _,
        protocol: _,
        // Names of files, which are read when they are needed.
        tls: _,
        keep_alive: _,
        sources: _,
        sample_every: _,
        network: _,
        cookies: _,
        think: _,
    } = load;
    requests
        .iter_mut()
        .for_each(|request| visit_request(request, visit));
}

pub(crate) fn visit_request(request: &mut Request, visit: TextVisit<'_>) {
    let Request {
        path,
        headers,
        body,
        expect,
        // By it requests are found: where it is made of the path, of the masked one.
        name: _,
        weight: _,
        method: _,
        // Names of files, which are read when they are needed.
        body_file: _,
        values: _,
        once: _,
        // Says where in a response a value stands, which is never kept.
        capture: _,
    } = request;
    visit(Field::Sent, path);
    headers
        .iter_mut()
        .for_each(|(name, text)| visit(Field::Of(name), text));
    visit(Field::Sent, body);
    expect
        .iter_mut()
        .for_each(|expect| visit_contract(expect, visit));
}

fn visit_contract(contract: &mut Contract, visit: TextVisit<'_>) {
    let Contract {
        headers,
        status: _,
        body_bytes: _,
        content: _,
    } = contract;
    for (name, accepted) in headers {
        accepted
            .iter_mut()
            .for_each(|text| visit(Field::Of(name), text));
    }
}

pub(super) fn visit_step(step: &mut Preparation, visit: TextVisit<'_>) {
    let Preparation {
        command,
        env,
        name: _,
        // Paths.
        directory: _,
        inputs: _,
        mark: _,
        space_bytes: _,
        timeout: _,
    } = step;
    visit_words(command, visit);
    env.iter_mut()
        .for_each(|(name, text)| visit(Field::Of(name), text));
}

fn visit_against(against: &mut Against, visit: TextVisit<'_>) {
    let Against {
        build,
        reference: _,
        commit: _,
        // Paths.
        repository: _,
        worktree: _,
        copy: _,
        copied: _,
        only_here: _,
        stat: _,
        untracked: _,
        uncommitted: _,
        // Sentences of ours, with paths.
        notes: _,
    } = against;
    build.iter_mut().for_each(|text| visit(Field::Text, text));
}

pub(super) fn visit_words(words: &mut [String], visit: TextVisit<'_>) {
    let flags = secret_flags(words);
    for (word, flag) in words.iter_mut().zip(&flags) {
        visit(flag.as_deref().map_or(Field::Word, Field::Of), word);
    }
}

/// The flag before each word of a command line whose secret the word is: a flag that ends with its name has its value behind it.
pub(crate) fn secret_flags<W: AsRef<str>>(words: &[W]) -> Vec<Option<String>> {
    let mut before: Option<String> = None;
    let flag_before = |word: &W| {
        let word = word.as_ref();
        let flag = before
            .take()
            .filter(|name| !is_flag(word) && is_secret_name(name));
        before = flag_name(word)
            .filter(|_| flag.is_none())
            .map(str::to_owned);
        flag
    };
    words.iter().map(flag_before).collect()
}

/// Whether a word that begins with a hyphen is a flag, and no value: `-x`, `--name`, `--name=value`. A token in base64url may begin so.
pub(super) fn is_flag(word: &str) -> bool {
    let Some(rest) = word
        .strip_prefix('-')
        .filter(|rest| !rest.contains(char::is_whitespace))
    else {
        return false;
    };
    let Some(long) = rest.strip_prefix('-') else {
        return !is_likely(rest);
    };
    let name = long.split('=').next().unwrap_or_default();
    let has = |is_part: fn(&char) -> bool| name.chars().any(|c| is_part(&c));
    !(has(char::is_ascii_digit) && has(char::is_ascii_uppercase))
}

/// The name of a flag that has its value behind it, in a word of its own.
fn flag_name(word: &str) -> Option<&str> {
    word.starts_with('-')
        .then(|| word.trim_start_matches('-'))
        .filter(|name| !name.contains(['=', ' ', ':']))
}
