//! Secrets of a plan: the texts that may contain them, and the plan as it is stored.

use std::collections::BTreeMap;
use std::path::Path;

use crate::model::{
    Against, Building, CommandTexts, Contract, Load, Plan, Preparation, Ready, Request, Service,
    ServiceSource, Tune, Variant,
};
use crate::secret::{Field, Secrets, TextVisit, mask_parts, visit_words};
use crate::url::Url;

impl Secrets {
    /// The secrets of a plan. Files are relative to `folder`.
    ///
    /// # Errors
    /// The reason for each secret that is not available, each once. None if the file of the plan was checked.
    pub fn of(plan: &Plan, folder: &Path) -> Result<Secrets, Vec<String>> {
        // The plan without the texts that may contain secrets: names of services and levels, for example.
        let mut structure = plan.clone();
        visit_plan(&mut structure, &mut |_, text| text.clear());
        let structure = serde_json::to_string(&structure).unwrap_or_default();
        let visit_texts = |visit: TextVisit<'_>| visit_plan(&mut plan.clone(), visit);
        Secrets::collect(visit_texts, &structure, folder)
    }

    /// Values of the placeholders in a step, by name.
    pub fn values_of_step(&self, step: &Preparation) -> BTreeMap<String, String> {
        let mut texts = Vec::new();
        visit_step(&mut step.clone(), &mut |_, text| texts.push(text.clone()));
        self.values_of(texts.iter().map(String::as_str))
    }

    /// Values of the placeholders in all texts of a service, by name.
    pub fn values_of_service(&self, service: &Service) -> BTreeMap<String, String> {
        let texts = service.command().into_iter().flat_map(|command| {
            let CommandTexts {
                words,
                env,
                templates,
            } = command.texts();
            words.iter().chain(env.values()).chain(templates.values())
        });
        self.values_of(texts.map(String::as_str))
    }
}

impl Plan {
    /// The plan as it is stored, without secrets.
    #[must_use]
    pub fn masked(&self) -> Plan {
        let mut plan = self.clone();
        visit_plan(&mut plan, &mut |field, text| {
            *text = self.secrets.mask_field(field, text)
        });
        // A person's words, in which only known secrets and assignments are recognized.
        plan.question
            .iter_mut()
            .for_each(|text| *text = self.secrets.mask(None, text));
        let mut stored = self.secrets.hidden(plan);
        stored.secrets.clone_from(&self.secrets);
        stored
    }
}

impl Preparation {
    /// The step as it is stored and as its data is named, without secrets.
    #[must_use]
    pub fn masked(&self) -> Preparation {
        let mut step = self.clone();
        visit_step(&mut step, &mut |field, text| {
            *text = mask_parts(field, text)
        });
        step
    }
}

// The functions below name every field, so that a new field does not compile until it is classified: may it
// contain a secret?

fn visit_plan(plan: &mut Plan, visit: TextVisit<'_>) {
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
        // Names that things are found by, and a person's question.
        name: _,
        question: _,
        factors: _,
        comparisons: _,
        aa: _,
        // Numbers, and names of metrics and machines.
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
        settings: _,
        connections_typed: _,
        rate_per_s: _,
        timeout: _,
        protocol: _,
        // Names of files, which are read when needed.
        tls: _,
        network: _,
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
        // Requests are found by name. A name made from the path is made from the masked path.
        name: _,
        weight: _,
        method: _,
        // Names of files, which are read when needed.
        body_file: _,
        values: _,
        once: _,
        // The position of a value in a response. The value is never stored.
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

fn visit_step(step: &mut Preparation, visit: TextVisit<'_>) {
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
        // Our own sentences, with paths.
        notes: _,
    } = against;
    build.iter_mut().for_each(|text| visit(Field::Text, text));
}
