//! The experiment of a step: the user's file with an additional factor, whose levels are the rows of the
//! step.

use std::path::PathBuf;

use plan::{Launcher, ServiceCommand, Variant, Workers};
use toml::{Table, Value};

use super::NGINX;
use super::setting::{Setting, SettingChange, SettingLevel};
use super::step::LevelRow;

/// Name of the factor.
const FACTOR: &str = "setting";
/// Level of the unchanged service.
pub const LEVEL: &str = "as it is";

/// Maximum length of a level's name in an experiment file.
const NAME_CHARS_MAX: usize = 40;

/// Returns the text of an experiment with these rows, made from the text for the unchanged service, and the
/// name of each row's level.
///
/// A factor has at least two levels. A single row is therefore accompanied by the unchanged service, which
/// the caller drops. Two rows with the same result would be rejected, so the caller must not pass any.
pub fn experiment(
    text: &str,
    base: &Variant,
    settings: &[Setting],
    rows: &[LevelRow],
) -> (String, Vec<String>) {
    let mut names: Vec<String> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let name = name(row, settings).filter(|name| !names.contains(name));
        names.push(name.unwrap_or_else(|| format!("row {}", at + 1)));
    }
    if rows.len() == 1 && rows[0].iter().all(|level| *level == 0) {
        return (text.to_owned(), names);
    }
    let text = &with_nginx(text, base, settings, rows);
    let alone = (rows.len() == 1).then(|| (LEVEL.to_owned(), Table::new()));
    let rows = rows
        .iter()
        .zip(&names)
        .map(|(row, name)| (name.clone(), overlay(base, settings, row)));
    let line = |(name, level)| format!("{} = {}", Value::String(name), Value::Table(level));
    let levels: Vec<String> = alone.into_iter().chain(rows).map(line).collect();
    (
        format!(
            "{}\n\n[factors.{FACTOR}]\n{}\n",
            text.trim_end(),
            levels.join("\n")
        ),
        names,
    )
}

/// Returns the text with nginx as an additional service, if a row uses it.
fn with_nginx(text: &str, base: &Variant, settings: &[Setting], rows: &[LevelRow]) -> String {
    let levels = rows.iter().flat_map(|row| row.iter().zip(settings));
    let levels = levels.filter_map(|(level, of)| of.levels.get(level.checked_sub(1)?));
    let template = levels
        .flat_map(|level| &level.changes)
        .find_map(|change| match change {
            SettingChange::Nginx(template) => Some(template),
            _ => None,
        });
    let Some(template) = template else {
        return text.to_owned();
    };
    // With a second service the file must name the one under load.
    let says_entry = text
        .parse::<Table>()
        .is_ok_and(|file| file.contains_key("entry"));
    let entry = Value::String(base.entry.clone());
    let first = if says_entry {
        String::new()
    } else {
        format!("entry = {entry}\n")
    };
    let text_of = |value: String| Value::String(value).to_string();
    let (folder, file) = (
        template.parent().unwrap_or(template),
        text_of(template.display().to_string()),
    );
    let folder = text_of(folder.display().to_string());
    format!(
        "{first}{}\n\n[services.{NGINX}]\ndirectory = {folder}\ncommand = [\"nginx\", \"-e\", \"stderr\", \"-p\", \"{{scratch}}\", \"-c\", \
         \"{{scratch}}/nginx.conf\"]\ntemplates = {{ \"nginx.conf\" = {file} }}\nneeds = [{entry}]\n",
        text.trim_end(),
    )
}

/// Merges a value into a table under a key.
fn merge(below: &mut Table, key: &str, value: Value) {
    match (below.get_mut(key), value) {
        (Some(Value::Table(below)), Value::Table(above)) => {
            above
                .into_iter()
                .for_each(|(key, value)| merge(below, &key, value));
        }
        (_, value) => {
            below.insert(key.to_owned(), value);
        }
    }
}

/// A short name for a row. `None` if it has several settings.
fn name(row: &LevelRow, settings: &[Setting]) -> Option<String> {
    let mut on = row.iter().enumerate().filter(|(_, level)| **level > 0);
    match (on.next(), on.next()) {
        (None, _) => Some(LEVEL.to_owned()),
        (Some((of, level)), None) => {
            // A name with both kinds of quotes is not a valid key of the file.
            let plain = |c: char| match c {
                '"' => '\'',
                c if c.is_control() || c == '·' => ' ',
                c => c,
            };
            let name: String = settings[of]
                .level(*level)
                .chars()
                .map(plain)
                .take(NAME_CHARS_MAX)
                .collect();
            Some(name.trim().to_owned())
        }
        (Some(_), Some(_)) => None,
    }
}

/// The start of a service, and additional changes.
#[derive(Debug, Clone, Default)]
struct OverlaidStart {
    command: ServiceCommand,
    nginx: Option<PathBuf>,
    overlay: Table,
}

impl OverlaidStart {
    /// Applies the changes of these levels.
    fn with<'a>(mut self, levels: impl Iterator<Item = &'a SettingLevel>) -> OverlaidStart {
        let mut changes: Vec<SettingChange> = levels
            .flat_map(|level| level.changes.iter().cloned())
            .collect();
        // Program and flags are the first words until words are prepended.
        changes.sort_by_key(|change| matches!(change, SettingChange::Before(_)));
        // The pattern names every field. Those that a change may set are bound, and none of them is in
        // `overlay`.
        let ServiceCommand {
            command: words,
            env,
            launcher,
            workers,
            pmx,
            directory: _,
            address: _,
            container: _,
            port: _,
            listens_on: _,
            other_ports: _,
            stop_timeout: _,
            templates: _,
        } = &mut self.command;
        for change in changes {
            match change {
                SettingChange::Env(name, value) => drop(env.insert(name, value)),
                SettingChange::Append {
                    variable,
                    by,
                    value,
                    inherited,
                } => {
                    let set = env.entry(variable).or_insert(inherited);
                    *set = if set.is_empty() {
                        value
                    } else {
                        format!("{set}{by}{value}")
                    };
                }
                SettingChange::Arguments(more) => words.extend(more),
                SettingChange::Flags(flags) => {
                    let behind = 1.min(words.len());
                    words.splice(behind..behind, flags);
                }
                SettingChange::Before(before) => drop(words.splice(..0, before)),
                SettingChange::Program(program) => words
                    .iter_mut()
                    .take(1)
                    .for_each(|one| one.clone_from(&program)),
                SettingChange::Cluster(n) => {
                    (*launcher, *workers) = (Launcher::Cluster, Some(Workers::Number(n)))
                }
                SettingChange::Pm2Metrics(metrics) => *pmx = metrics,
                SettingChange::Nginx(template) => self.nginx = Some(template),
                SettingChange::Overlay(table) => {
                    table
                        .into_iter()
                        .for_each(|(key, value)| merge(&mut self.overlay, &key, value));
                }
            }
        }
        self
    }
}

/// The changes of a row, as a level of the file.
fn overlay(base: &Variant, settings: &[Setting], row: &LevelRow) -> Table {
    let Some((service, before)) = base
        .entry_service()
        .and_then(|service| Some((service, service.command()?)))
    else {
        return Table::new();
    };
    let levels = row
        .iter()
        .zip(settings)
        .filter_map(|(level, of)| of.levels.get(level.checked_sub(1)?));
    let started = OverlaidStart {
        command: before.clone(),
        ..OverlaidStart::default()
    };
    let OverlaidStart {
        command: after,
        nginx,
        overlay: mut table,
    } = started.with(levels);
    let mut own = Table::new();
    if after.command != before.command {
        own.insert("command".into(), after.command.into());
    }
    let changed = after
        .env
        .into_iter()
        .filter(|(name, value)| before.env.get(name) != Some(value));
    let env: Table = changed
        .map(|(name, value)| (name, Value::String(value)))
        .collect();
    if !env.is_empty() {
        own.insert("env".into(), env.into());
    }
    let is_other = (after.launcher, after.workers) != (before.launcher, before.workers);
    if let (true, Some(Workers::Number(workers))) = (is_other, after.workers) {
        own.insert("launcher".into(), after.launcher.name().into());
        own.insert("workers".into(), i64::from(workers).into());
    }
    if after.pmx != before.pmx {
        own.insert("pmx".into(), after.pmx.into());
    }
    if let Some(template) = nginx {
        table.insert("entry".into(), NGINX.into());
        let file = Value::String(template.display().to_string());
        let templates = Table::from_iter([("nginx.conf".to_owned(), file)]);
        let nginx = Table::from_iter([("templates".to_owned(), Value::Table(templates))]);
        table.insert(NGINX.into(), nginx.into());
    }
    if !own.is_empty() {
        merge(&mut table, &service.name, Value::Table(own));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_add_up() {
        let append = |value: &str| {
            let (variable, by) = ("NODE_OPTIONS".into(), " ".into());
            SettingChange::Append {
                variable,
                by,
                value: value.into(),
                inherited: "--v".into(),
            }
        };
        let level = |changes| SettingLevel {
            name: String::new(),
            changes,
        };
        let command = ServiceCommand {
            command: vec!["node".into(), "a.js".into()],
            env: [("NODE_OPTIONS".to_owned(), "--x".to_owned())].into(),
            ..ServiceCommand::default()
        };
        let levels = [
            level(vec![
                append("--y"),
                SettingChange::Before(vec!["nice".into()]),
            ]),
            level(vec![
                append("--w"),
                SettingChange::Program("node22".into()),
                SettingChange::Cluster(2),
            ]),
            level(vec![SettingChange::Flags(vec!["--z".into()])]),
        ];
        let started = OverlaidStart {
            command,
            ..OverlaidStart::default()
        }
        .with(levels.iter());
        let ServiceCommand {
            command,
            env,
            launcher,
            workers,
            ..
        } = started.command;
        assert_eq!(command, ["nice", "node22", "--z", "a.js"]);
        assert_eq!(env["NODE_OPTIONS"], "--x --y --w");
        assert_eq!(
            (launcher, workers),
            (Launcher::Cluster, Some(Workers::Number(2)))
        );
    }

    #[test]
    fn a_launcher_is_changed_beside_equal_workers() {
        let text = "name = \"x\"\n[services.api]\ncommand = [\"node\", \"a.js\", \"{workers}\"]\nworkers = 2\n";
        let plan = plan::parse(text, std::path::Path::new("/")).expect("a plan");
        let level = SettingLevel {
            name: String::new(),
            changes: vec![SettingChange::Cluster(2)],
        };
        let setting = Setting {
            levels: vec![level],
            ..Setting::default()
        };
        let level = overlay(&plan.variants[0], &[setting], &vec![1]);
        assert_eq!(level["api"]["launcher"].as_str(), Some("cluster"));
    }
}
