//! The experiment of a step: the user's own file with one factor more, whose levels are the rows of the step.

use plan::{Service, Variant};
use toml::{Table, Value};

use super::NGINX;
use super::setting::{Change, Setting, Started};
use super::step::Row;

/// The factor's name.
const FACTOR: &str = "setting";
/// The level of the service as it is.
pub const LEVEL: &str = "as it is";

/// Longest name of a level in an experiment file.
const NAME_CHARS_MAX: usize = 40;

/// The text of an experiment with these rows, made of that of the service as it is; and the name of each row's level.
///
/// A factor has two levels at least: one row alone has the service as it is beside it, which the caller drops. Two rows that come out the
/// same would be refused; the caller gives none.
pub fn experiment(text: &str, base: &Variant, settings: &[Setting], rows: &[Row]) -> (String, Vec<String>) {
    let mut names: Vec<String> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let name = name(row, settings).filter(|name| !names.contains(name));
        names.push(name.unwrap_or_else(|| format!("row {}", at + 1)));
    }
    if let [row] = rows
        && row.iter().all(|level| *level == 0)
    {
        return (text.to_owned(), names);
    }
    let text = &with_nginx(text, base, settings, rows);
    let alone = (rows.len() == 1).then(|| (LEVEL.to_owned(), Table::new()));
    let rows = rows.iter().zip(&names).map(|(row, name)| (name.clone(), overlay(base, settings, row)));
    let levels: Vec<String> = alone
        .into_iter()
        .chain(rows)
        .map(|(name, level)| format!("{} = {}", Value::String(name), Value::Table(level)))
        .collect();
    (format!("{}\n\n[factors.{FACTOR}]\n{}\n", text.trim_end(), levels.join("\n")), names)
}

/// The text with nginx as a service of its own, where a row has it in front.
fn with_nginx(text: &str, base: &Variant, settings: &[Setting], rows: &[Row]) -> String {
    let levels = rows.iter().flat_map(|row| row.iter().zip(settings));
    let levels = levels.filter_map(|(level, of)| of.levels.get(level.checked_sub(1)?));
    let template = levels.flat_map(|level| &level.changes).find_map(|change| match change {
        Change::Nginx(template) => Some(template),
        _ => None,
    });
    let Some(template) = template else { return text.to_owned() };
    // With a second service the file has to say which one gets the load.
    let says_entry = text.parse::<Table>().is_ok_and(|file| file.contains_key("entry"));
    let entry = Value::String(base.entry.clone());
    let first = if says_entry { String::new() } else { format!("entry = {entry}\n") };
    let text_of = |value: String| Value::String(value).to_string();
    let (folder, file) = (template.parent().unwrap_or(template), text_of(template.display().to_string()));
    let folder = text_of(folder.display().to_string());
    format!(
        "{first}{}\n\n[services.{NGINX}]\ndirectory = {folder}\ncommand = [\"nginx\", \"-e\", \"stderr\", \"-p\", \"{{scratch}}\", \"-c\", \
         \"{{scratch}}/nginx.conf\"]\ntemplates = {{ \"nginx.conf\" = {file} }}\nneeds = [{entry}]\n",
        text.trim_end(),
    )
}

/// Lays a value over what a table has of that key.
pub(crate) fn merge(below: &mut Table, key: &str, value: Value) {
    match (below.get_mut(key), value) {
        (Some(Value::Table(below)), Value::Table(above)) => {
            above.into_iter().for_each(|(key, value)| merge(below, &key, value));
        }
        (_, value) => {
            below.insert(key.to_owned(), value);
        }
    }
}

/// A short name for a level; `None` where it takes more than one setting to tell.
fn name(row: &Row, settings: &[Setting]) -> Option<String> {
    let mut on = row.iter().enumerate().filter(|(_, level)| **level > 0);
    match (on.next(), on.next()) {
        (None, _) => Some(LEVEL.to_owned()),
        (Some((of, level)), None) => {
            let name: String = settings[of].level(*level).chars().map(plain).take(NAME_CHARS_MAX).collect();
            Some(name.trim().to_owned())
        }
        (Some(_), Some(_)) => None,
    }
}

fn plain(c: char) -> char {
    if c.is_control() || c == '·' { ' ' } else { c }
}

/// What a row changes, as a level of the file has it.
fn overlay(base: &Variant, settings: &[Setting], row: &Row) -> Table {
    let Some((service, before)) = base.entry_service().and_then(|service| Some((service, started(service)?)))
    else {
        return Table::new();
    };
    let levels = row.iter().zip(settings).filter_map(|(level, of)| of.levels.get(level.checked_sub(1)?));
    let after = levels.fold(before.clone(), Started::with);
    let mut own = Table::new();
    if after.words != before.words {
        own.insert("command".into(), after.words.into());
    }
    let changed = after.env.into_iter().filter(|(name, value)| before.env.get(name) != Some(value));
    let env: Table = changed.map(|(name, value)| (name, Value::String(value))).collect();
    if !env.is_empty() {
        own.insert("env".into(), env.into());
    }
    if let Some(workers) = after.workers.filter(|workers| before.workers != Some(*workers)) {
        own.insert("launcher".into(), after.launcher.name().into());
        own.insert("workers".into(), i64::from(workers).into());
    }
    if after.pmx != before.pmx {
        own.insert("pmx".into(), after.pmx.into());
    }
    let mut table = after.overlay;
    if let Some(template) = after.nginx {
        table.insert("entry".into(), NGINX.into());
        let file = Value::String(template.display().to_string());
        let templates = Table::from_iter([("nginx.conf".to_owned(), file)]);
        table.insert(
            NGINX.into(),
            Table::from_iter([("templates".to_owned(), Value::Table(templates))]).into(),
        );
    }
    if !own.is_empty() {
        merge(&mut table, &service.name, Value::Table(own));
    }
    table
}

fn started(service: &Service) -> Option<Started> {
    let command = service.command()?;
    Some(Started {
        words: command.command.clone(),
        env: command.env.clone(),
        launcher: command.launcher,
        workers: match command.workers {
            Some(plan::Workers::Number(number)) => Some(number),
            Some(plan::Workers::Cores) | None => None,
        },
        pmx: command.pmx,
        nginx: None,
        overlay: Table::new(),
    })
}
