//! What nobody may read in a record: values that come from the environment or a file, and what looks like a secret where it was typed.
//!
//! ```text
//! {env.TOKEN}, {file.token.txt}   ─► resolved when a service starts or a request is sent; kept as they were written
//! Authorization: Bearer abc       ─► used as typed; kept as `Authorization: Bearer [secret-3f9a1b2c4d5e]`
//! ```
//! A mark is a hash under a key of this machine's user, so that equal values look equal here and nobody can try words against a record.
//! The plan that is run has the values, and the one that is kept ([`Plan::masked`]) has not. Touches the world by variables, files
//! that placeholders name, and the key.

mod forms;
mod key;
mod parts;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Url;
use crate::model::{
    Against, Building, CommandTexts, Contract, Load, Plan, Preparation, Ready, Request, Service, Source,
    Tune, Variant,
};
use crate::outside::read_text;
use crate::placeholder::{Placeholder, placeholders, spliced, template_placeholders};
use crate::problem::{Problem, Span};
use crate::secret::forms::{forms, in_json};
use crate::secret::parts::secret_parts;
use crate::tree::{Node, Value};

/// Names have such a part whose values are secrets: of variables, flags, header fields, and keys in bodies and queries. In capitals, with `_`
/// for what stands between words.
const NAMES: &str = "AUTHORIZATION COOKIE TOKEN SECRET PASSWORD PASSWD PASSPHRASE _PWD API_KEY APIKEY \
    ACCESS_KEY PRIVATE_KEY CREDENTIAL SESSION_ID";
/// Endings of names that say where a secret lies, and not what it is.
const PLACES: [&str; 3] = ["_FILE", "_PATH", "_DIR"];
/// What the placeholders begin with.
const ENV: &str = "env.";
const FILE: &str = "file.";
const FILE_BYTES_MAX: u64 = 64 << 10;
/// What a mark begins with.
const MARK: &str = "[secret-";
/// Shorter values are masked where their name stands, and not looked for elsewhere: they would be found in every other word.
const SOUGHT_BYTES_MIN: usize = 6;

/// Whether the value of such a variable, flag or field is a secret.
pub fn is_secret_name(name: &str) -> bool {
    // `sessionId` is two words, and `passWord` may be one.
    let (mut whole, mut parted, mut before) = (String::new(), String::new(), ' ');
    for c in name.chars() {
        if before.is_ascii_lowercase() && c.is_ascii_uppercase() {
            parted.push('_');
        }
        before = c;
        let plain = if c.is_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        whole.push(plain);
        parted.push(plain);
    }
    let spelled = [whole, parted];
    let has = |part: &str| spelled.iter().any(|name| name.contains(part));
    let ends = |end: &&str| spelled.iter().any(|name| name.ends_with(*end));
    // `DB_PASS`, and no `PASSENGERS`.
    let is_pass = spelled[0] == "PASS" || ends(&"_PASS");
    (is_pass || NAMES.split(' ').any(has)) && !PLACES.iter().any(ends)
}

/// The values of an experiment that must not be kept. It has no form on disk, and shows names alone.
#[derive(Clone, Default, PartialEq)]
pub struct Secrets {
    /// By the name of their placeholder: `env.TOKEN`.
    values: BTreeMap<String, String>,
    /// Everything that is a secret, the longest first.
    hidden: Vec<Hidden>,
}

/// A secret, and what stands in its place.
#[derive(Clone, PartialEq)]
struct Hidden {
    value: String,
    instead: String,
    /// Whether it is looked for within other texts.
    is_sought: bool,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl Secrets {
    /// Those of a plan, with files looked for in `folder`.
    ///
    /// # Errors
    /// What cannot be had, in words, each once; a plan whose file was checked has none.
    pub fn of(plan: &Plan, folder: &Path) -> Result<Secrets, Vec<String>> {
        let (mut values, mut instead, mut problems) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
        visit_plan(&mut plan.clone(), &mut |name, text| {
            for range in secret_parts(name, text) {
                instead.extend(forms::values(&text[range]).map(|value| (key::mark(&value), value)));
            }
            for name in named(text) {
                match value(&name, folder) {
                    Some(Ok(value)) => _ = values.insert(name, value),
                    Some(Err(reason)) => _ = problems.insert(reason),
                    None => {}
                }
            }
        });
        if !problems.is_empty() {
            return Err(problems.into_iter().collect());
        }
        let placed = |(name, value): (&String, &String)| (format!("{{{name}}}"), value.clone());
        instead.extend(values.iter().map(placed));
        let structure = structure(plan);
        let hidden = |(instead, value): (String, String)| {
            let is_word = value.bytes().all(|byte| byte.is_ascii_alphabetic());
            let is_sought = !(MARK.contains(&value) || is_word && structure.contains(&value));
            forms(&value).into_iter().map(move |value| {
                let is_sought = is_sought && value.len() >= SOUGHT_BYTES_MIN;
                Hidden { value, instead: instead.clone(), is_sought }
            })
        };
        let mut secrets = Secrets { values, hidden: instead.into_iter().flat_map(hidden).collect() };
        secrets.sort();
        Ok(secrets)
    }

    fn sort(&mut self) {
        self.hidden.sort_by_cached_key(|of| (Reverse(of.value.len()), of.value.clone(), of.instead.clone()));
        self.hidden.dedup_by(|one, other| one.value == other.value);
    }

    fn sought(&self) -> impl Iterator<Item = &Hidden> {
        self.hidden.iter().filter(|hidden| hidden.is_sought)
    }

    /// Those of two plans that become one.
    pub(crate) fn join(&mut self, other: &Secrets) {
        self.values.extend(other.values.clone());
        self.hidden.extend(other.hidden.iter().cloned());
        self.sort();
    }

    /// What the placeholders of these texts stand for, by their names.
    fn asked_by<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> BTreeMap<String, String> {
        let names = texts.into_iter().flat_map(named);
        names.filter_map(|name| Some((name.clone(), self.values.get(&name)?.clone()))).collect()
    }

    /// The same of the texts of a step.
    pub fn asked_by_step(&self, step: &Preparation) -> BTreeMap<String, String> {
        let mut texts = Vec::new();
        visit_step(&mut step.clone(), &mut |_, text| texts.push(text.clone()));
        self.asked_by(texts.iter().map(String::as_str))
    }

    /// The same of all texts of a service, wherever it is started.
    pub fn asked_by_service(&self, service: &Service) -> BTreeMap<String, String> {
        let texts = service.command().into_iter().flat_map(|command| {
            let CommandTexts { words, env, templates } = command.texts();
            words.iter().chain(env.values()).chain(templates.values())
        });
        self.asked_by(texts.map(String::as_str))
    }

    /// A text of a request with its placeholders filled in. `doubled`: braces of what is filled in are doubled, for it is read once more.
    pub fn fill_request(&self, text: &str, doubled: bool) -> String {
        let value = |found: Placeholder<'_>| {
            let value = self.values.get(found.name)?;
            let double = || value.replace('{', "{{").replace('}', "}}");
            Some((found.range, if doubled { double() } else { value.clone() }))
        };
        spliced(text, placeholders(text).into_iter().filter_map(value))
    }

    /// A text without any of them.
    pub fn hide(&self, text: &str) -> String {
        match self.hidden.iter().find(|hidden| hidden.value == text) {
            Some(whole) => whole.instead.clone(),
            None => {
                self.sought().fold(text.to_owned(), |text, part| text.replace(&part.value, &part.instead))
            }
        }
    }

    /// What is to be kept, without any of them.
    pub fn hidden<T: Serialize + DeserializeOwned>(&self, kept: T) -> T {
        if self.sought().next().is_none() {
            return kept;
        }
        let Ok(mut text) = serde_json::to_string(&kept) else { return kept };
        let mut hidden = kept;
        for part in self.sought() {
            let replaced = text.replace(&in_json(&part.value), &in_json(&part.instead));
            // A value that is also a word of the format itself is no secret there; the others are all the same.
            if replaced != text
                && let Ok(without) = serde_json::from_str(&replaced)
            {
                (text, hidden) = (replaced, without);
            }
        }
        hidden
    }

    /// The text of an experiment file without any of them, comments included.
    pub fn hide_in_file(&self, text: &str) -> String {
        let mut hidden = String::with_capacity(text.len());
        let mut from = 0;
        let mut leaves = leaves_of(text);
        leaves.sort_by_key(|(span, ..)| span.start);
        let between = |text: &str| comments_masked(&self.hide(text));
        for (span, name, value) in leaves {
            let masked = self.mask(name.as_deref(), &value);
            if masked != value && span.start >= from {
                hidden += &between(&text[from..span.start]);
                hidden += &toml::Value::String(masked).to_string();
                from = span.end;
            }
        }
        hidden + &between(&text[from..])
    }

    /// The value of this variable, field or flag without known secrets and without what looks like one; see [`masked`]. Known values go
    /// first: a part of one that is masked by its name would leave the rest of it.
    pub fn mask(&self, name: Option<&str>, text: &str) -> String {
        masked(name, &self.hide(text))
    }

    /// The same of the words of a command line.
    pub fn mask_words(&self, words: &[String]) -> Vec<String> {
        masked_words(&words.iter().map(|word| self.hide(word)).collect::<Vec<_>>())
    }
}

/// The words of a plan outside of the texts in which secrets may stand: names of services and levels, for example. A weak secret that is
/// such a word is none there.
fn structure(plan: &Plan) -> BTreeSet<String> {
    let mut plan = plan.clone();
    visit_plan(&mut plan, &mut |_, text| text.clear());
    let text = serde_json::to_string(&plan).unwrap_or_default();
    text.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_owned).collect()
}

/// A piece of a file whose comments are masked: a command line may stand in one.
fn comments_masked(text: &str) -> String {
    let line =
        |line: &str| if line.trim_start().starts_with('#') { masked(None, line) } else { line.to_owned() };
    text.split_inclusive('\n').map(line).collect()
}

/// The names of all placeholders of secrets in a text.
fn named(text: &str) -> Vec<String> {
    let all = placeholders(text).into_iter().chain(template_placeholders(text));
    all.map(|found| found.name.to_owned()).filter(|name| is_placeholder(name)).collect()
}

/// Whether a placeholder of this name stands for a secret.
pub(crate) fn is_placeholder(name: &str) -> bool {
    name.starts_with(ENV) || name.starts_with(FILE)
}

/// A text whose placeholders name files by absolute paths, so that they are found from any folder.
pub(crate) fn anchored(text: &str, folder: &Path) -> String {
    let absolute = |found: Placeholder<'_>| {
        // Joining an absolute path drops the folder.
        let path = folder.join(found.name.strip_prefix(FILE)?);
        Some((found.range, format!("{{{FILE}{}}}", path.display())))
    };
    spliced(text, placeholders(text).into_iter().filter_map(absolute))
}

/// What a placeholder stands for, or why nobody knows; `None` where it is none of a secret. Files are looked for in `folder`.
pub(crate) fn value(name: &str, folder: &Path) -> Option<Result<String, String>> {
    if let Some(variable) = name.strip_prefix(ENV) {
        return Some(match std::env::var(variable) {
            Ok(value) if value.is_empty() => Err(format!("the variable {variable} is empty")),
            Ok(value) => Ok(value),
            Err(std::env::VarError::NotPresent) => Err(format!("the variable {variable} is not set")),
            Err(error) => Err(format!("the variable {variable}: {error}")),
        });
    }
    let path = folder.join(name.strip_prefix(FILE)?);
    Some(read(&path).map_err(|error| format!("{} cannot be read: {error}", path.display())))
}

/// The content of a file without the end of its last line.
fn read(path: &Path) -> io::Result<String> {
    let text = read_text(path, FILE_BYTES_MAX)?;
    let line = text.strip_suffix('\n').map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
    match line {
        "" => Err(io::Error::other("it is empty")),
        line if line.contains('\0') => Err(io::Error::other("it contains NUL")),
        line => Ok(line.to_owned()),
    }
}

impl Plan {
    /// The plan as it is kept: without what looks like a secret.
    #[must_use]
    pub fn masked(&self) -> Plan {
        let mut plan = self.clone();
        visit_plan(&mut plan, &mut |name, text| *text = self.secrets.mask(name, text));
        // Words of people, by which no secret is told from other words.
        plan.question.iter_mut().for_each(|text| *text = self.secrets.mask(None, text));
        let mut kept = self.secrets.hidden(plan);
        kept.secrets.clone_from(&self.secrets);
        kept
    }
}

impl Preparation {
    /// The step as it is kept, and as its data is named after.
    #[must_use]
    pub fn masked(&self) -> Preparation {
        let mut step = self.clone();
        visit_step(&mut step, &mut |name, text| *text = masked(name, text));
        step
    }
}

/// Words of a command line, as they are kept.
pub fn masked_words(words: &[String]) -> Vec<String> {
    let mut words = words.to_vec();
    visit_words(&mut words, &mut |name, text| *text = masked(name, text));
    words
}

/// The value of this variable, field or flag as it is kept; `None`: any text, which may have variables, fields and URLs in it.
pub fn masked(name: Option<&str>, text: &str) -> String {
    let mark = |range: Range<usize>| (range.clone(), key::mark(&text[range].replace("{{", "{")));
    spliced(text, secret_parts(name, text).into_iter().map(mark))
}

/// Marks that a file has from a record: what they stand for was not kept.
pub(crate) fn lost(tree: &Node) -> Vec<Problem> {
    let is_mark =
        |text: &str| text.split(MARK).skip(1).any(|rest| rest.split(']').next().is_some_and(key::is_hash));
    // The question of a comparison names its variants, and variants without a name are called by their words.
    let question = tree.entry(&["question"]).map(|entry| &entry.node.span);
    let lost = leaves(tree).into_iter().filter(|(span, _, text)| is_mark(text) && Some(span) != question);
    let message = "a secret stood here, which the record does not have";
    let hint = "write {env.NAME} or {file.PATH}, and set the variable or make the file";
    let problem =
        |(span, ..): (Span, _, _)| Problem::new(span, message, "its value was not kept").with_hint(hint);
    lost.map(problem).collect()
}

/// Whether the text of an experiment file has secrets that were typed.
pub fn has_secrets(text: &str) -> bool {
    leaves_of(text).iter().any(|(_, name, text)| masked(name.as_deref(), text) != *text)
}

/// The text of an experiment file as it is shown with its problems: a star for each byte of what looks like a secret.
pub fn veiled(text: &str) -> String {
    let mut veiled = text.as_bytes().to_vec();
    for (span, name, value) in leaves_of(text) {
        if !secret_parts(name.as_deref(), &value).is_empty() {
            veiled[span].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b'*');
        }
    }
    String::from_utf8(veiled).unwrap_or_default()
}

/// The leaves of a text; none where it is not TOML.
fn leaves_of(text: &str) -> Vec<(Span, Option<String>, String)> {
    Node::parse(text).map(|tree| leaves(&tree)).unwrap_or_default()
}

/// All strings of a file, and numbers that are values of variables, each with its place and the name that its value is of.
fn leaves(tree: &Node) -> Vec<(Span, Option<String>, String)> {
    fn walk(node: &Node, name: Option<&str>, within: &str, found: &mut Vec<(Span, Option<String>, String)>) {
        let mut leaf = |text: String| found.push((node.span.clone(), name.map(str::to_owned), text));
        match &node.value {
            Value::String(text) => leaf(text.clone()),
            Value::Integer(_, text) | Value::Float(_, text) if name.is_some() => leaf(text.clone()),
            Value::Integer(..) | Value::Float(..) | Value::Boolean(_) | Value::Unusable(_) => {}
            Value::Array(items) => {
                let mut flag: Option<&str> = None;
                for item in items {
                    walk(item, name.or(flag), within, found);
                    flag = if let Value::String(word) = &item.value { flag_name(word) } else { None };
                }
            }
            Value::Table(table) => {
                for entry in &table.entries {
                    let named = matches!(within, "env" | "headers").then_some(entry.key.as_str());
                    walk(&entry.node, named, &entry.key, found);
                }
            }
        }
    }
    let mut found = Vec::new();
    walk(tree, None, "", &mut found);
    found
}

/// What is done with each text of a plan in which secrets may stand: the name of its variable, field or flag, and the text.
pub(crate) type Visit<'v> = &'v mut dyn FnMut(Option<&str>, &mut String);

// Every field is named in the following, so that a new one does not compile before somebody has decided whether a secret may stand in it.

fn visit_plan(plan: &mut Plan, visit: Visit<'_>) {
    let Plan {
        variants,
        prepare,
        building: Building { command, timeout: _, copy: _ },
        against,
        tune: Tune { tries, only: _, without: _, keep: _ },
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
    for Variant { services, load, expect, name: _, levels: _, entry: _ } in variants {
        services.iter_mut().for_each(|service| visit_service(service, visit));
        visit_load(load, visit);
        visit_contract(expect, visit);
    }
    prepare.iter_mut().for_each(|step| visit_step(step, visit));
    visit_words(command, visit);
    tries.iter_mut().for_each(|text| visit(None, text));
    against.iter_mut().for_each(|against| visit_against(against, visit));
}

fn visit_service(service: &mut Service, visit: Visit<'_>) {
    let Service { ready, source, name: _, ready_timeout: _, needs: _ } = service;
    match ready {
        Ready::Http(path) => visit(None, path),
        Ready::Tcp | Ready::Response => {}
    }
    match source {
        Source::Deployed { kubernetes: _ } => {}
        Source::Url { url: Url { path, secure: _, place: _ } } => visit(None, path),
        Source::Command(command) => {
            let CommandTexts { words, env, templates } = command.texts_mut();
            visit_words(words, visit);
            env.iter_mut().for_each(|(name, text)| visit(Some(name), text));
            templates.values_mut().for_each(|text| visit(None, text));
        }
    }
}

fn visit_load(load: &mut Load, visit: Visit<'_>) {
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
    requests.iter_mut().for_each(|request| visit_request(request, visit));
}

pub(crate) fn visit_request(request: &mut Request, visit: Visit<'_>) {
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
    visit(None, path);
    headers.iter_mut().for_each(|(name, text)| visit(Some(name), text));
    visit(None, body);
    expect.iter_mut().for_each(|expect| visit_contract(expect, visit));
}

fn visit_contract(contract: &mut Contract, visit: Visit<'_>) {
    let Contract { headers, status: _, body_bytes: _, content: _ } = contract;
    for (name, accepted) in headers {
        accepted.iter_mut().for_each(|text| visit(Some(name), text));
    }
}

fn visit_step(step: &mut Preparation, visit: Visit<'_>) {
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
    env.iter_mut().for_each(|(name, text)| visit(Some(name), text));
}

fn visit_against(against: &mut Against, visit: Visit<'_>) {
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
    build.iter_mut().for_each(|text| visit(None, text));
}

/// A word behind a flag that ends with its name is the flag's value.
fn visit_words(words: &mut [String], visit: Visit<'_>) {
    let mut before: Option<String> = None;
    for word in words {
        let next = flag_name(word).map(str::to_owned);
        visit(before.filter(|_| next.is_none()).as_deref(), word);
        before = next;
    }
}

/// The name of a flag that has its value behind it, in a word of its own.
fn flag_name(word: &str) -> Option<&str> {
    word.starts_with('-').then(|| word.trim_start_matches('-')).filter(|name| !name.contains(['=', ' ', ':']))
}

#[cfg(test)]
mod tests;
