//! The catalogue of advice, and the selection that applies to a service. The advice itself is data:
//! `catalogue.toml`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use plan::{Launcher, command_line};
use serde::{Deserialize, Serialize};

use super::SERVER_FILE;
use super::setting::{Setting, SettingChange, SettingLevel};
use crate::only_if;

/// Runtime of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Runtime {
    /// Node.js.
    Node,
    /// A program written in Go.
    Go,
    /// Python.
    Python,
    /// Java.
    Java,
}

/// Facts about a service and its machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServiceFacts {
    /// Runtime of the service. `None` for others.
    pub runtime: Option<Runtime>,
    /// Version of Node.js: major, minor.
    pub node: Option<(u32, u32)>,
    /// Program and arguments.
    pub words: Vec<String>,
    /// Environment variables of the service, from the experiment and from this process.
    pub env: BTreeMap<String, String>,
    /// Names of the files in the working directory.
    pub files: Vec<OsString>,
    /// Launcher of the service.
    pub launcher: Launcher,
    /// Number of processors of this machine.
    pub cores: usize,
    /// Whether the machine has transparent huge pages.
    pub huge_pages: bool,
    /// Installed allocators and other libraries.
    pub libraries: Vec<PathBuf>,
    /// Other installed versions of Node.js: program and version.
    pub other_nodes: Vec<(PathBuf, String)>,
    /// Whether the service writes a log line every few requests. `None` before its first run.
    pub logs: Option<bool>,
    /// Whether nginx is installed.
    pub nginx: bool,
    /// Whether the load uses TLS.
    pub tls: bool,
    /// Whether responses are compressed. `None` before its first run.
    pub compresses: Option<bool>,
    /// Share of the CPU time used by garbage collection. `None` if unknown.
    pub gc_share: Option<f64>,
    /// Share of the CPU time used by the thread pool. `None` if unknown.
    pub pool_share: Option<f64>,
}

impl ServiceFacts {
    /// Assumes the facts that a first run may still reveal.
    pub fn at_most(&self) -> ServiceFacts {
        let (logs, compresses) = (self.logs.or(Some(true)), self.compresses.or(Some(true)));
        ServiceFacts {
            logs,
            compresses,
            ..self.clone()
        }
    }
}

/// All advice.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    #[serde(rename = "item")]
    items: Vec<Item>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    name: String,
    when: ItemCondition,
    cost: String,
    source: String,
    #[serde(default)]
    seen: String,
    #[serde(default)]
    screened: usize,
    #[serde(default)]
    level: Vec<CatalogueLevel>,
    /// Why the item is not tried even if it applies.
    #[serde(default)]
    untried: Option<String>,
}

/// Conditions under which an item is tried. All must hold.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ItemCondition {
    /// Required runtime. `None` accepts any.
    #[serde(rename = "for")]
    runtime: Option<Runtime>,
    /// Variable that the service must not have.
    unset: String,
    /// Prefix that no word of the command may have, as `-w4` has `-w`.
    short: String,
    /// Texts that neither the command nor options of the runtime may contain.
    absent: Vec<String>,
    /// Minimum number of processors.
    cores: usize,
    /// Minimum version of Node.js.
    node: String,
    /// Required launcher: `exec`, or `pm2`.
    launcher: String,
    /// Accepted programs.
    program: Vec<String>,
    /// File that must exist in the working directory.
    file: String,
    huge_pages: bool,
    logs: bool,
    compresses: bool,
    tls: bool,
    /// Other versions of Node.js must be installed.
    versions: bool,
    /// Minimum share of CPU time for garbage collection, if known.
    gc: f64,
    /// Minimum share of CPU time for the thread pool, if known.
    pool: f64,
    /// The user must name it.
    asked: bool,
}

/// A level as written in the catalogue.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct CatalogueLevel {
    /// Name of the level. If empty, the name is made from its changes.
    name: String,
    env: BTreeMap<String, String>,
    /// For NODE_OPTIONS.
    options: Option<String>,
    /// For JAVA_TOOL_OPTIONS.
    java: Option<String>,
    /// For LD_PRELOAD: the first of these that is installed.
    library: Vec<String>,
    args: Vec<String>,
    flags: Vec<String>,
    before: Vec<String>,
    cluster: Option<String>,
    /// Configuration file for nginx in front of the service, in the folder of the tuning.
    nginx: Option<String>,
    pm2_metrics: Option<bool>,
    overlay: toml::Table,
}

/// Items that the user includes or excludes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wish {
    /// Only these items, by name. Empty for all that apply.
    pub only: Vec<String>,
    /// Excluded items, by name.
    pub without: Vec<String>,
}

/// Selected settings and skipped items.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chosen {
    /// The settings to try.
    pub settings: Vec<Setting>,
    /// Items for this runtime that are not tried, with reasons.
    pub skipped: Vec<(String, String)>,
}

impl Catalogue {
    /// The built-in catalogue.
    pub fn built_in() -> Catalogue {
        toml::from_str(include_str!("catalogue.toml")).expect("a test reads it")
    }

    /// Names of all items.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.items.iter().map(|item| item.name.as_str())
    }

    /// Names of the libraries that items use.
    pub fn libraries(&self) -> impl Iterator<Item = &str> {
        self.items
            .iter()
            .flat_map(|item| &item.level)
            .flat_map(|level| &level.library)
            .map(String::as_str)
    }

    /// Selects the settings that apply to a service. `folder` contains the files that some settings use.
    pub fn chosen(&self, facts: &ServiceFacts, wish: &Wish, folder: &Path) -> Chosen {
        let mut chosen = Chosen::default();
        let mut names: Vec<&str> = Vec::new();
        // Items that depend on a first run still exclude conflicting ones.
        let assumed = facts.at_most();
        let is_of = |item: &&Item| {
            item.when
                .runtime
                .is_none_or(|runtime| facts.runtime == Some(runtime))
        };
        for item in self.items.iter().filter(is_of) {
            let named = wish.only.contains(&item.name);
            if wish.without.contains(&item.name) || !named && !wish.only.is_empty() {
                continue;
            }
            let setting = item
                .when
                .lacks(&assumed, named)
                .map_or_else(|| item.setting(facts, folder), Err);
            let clash = |setting: &Setting| {
                let mut others = chosen.settings.iter().zip(&names);
                let (why, other) =
                    others.find_map(|(of, name)| Some((setting.clash(of)?, *name)))?;
                Some(format!(
                    "{why}; try it with {}",
                    command_line(["--without", other].map(str::to_owned))
                ))
            };
            let setting = setting.and_then(|setting| clash(&setting).map_or(Ok(setting), Err));
            match setting.and_then(|setting| item.when.lacks(facts, named).map_or(Ok(setting), Err))
            {
                Ok(setting) => {
                    chosen.settings.push(setting);
                    names.push(&item.name);
                }
                Err(why) => chosen.skipped.push((item.name.clone(), why)),
            }
        }
        chosen
    }
}

impl ItemCondition {
    /// Why the item does not apply. Empty conditions are ignored.
    fn lacks(&self, facts: &ServiceFacts, named: bool) -> Option<String> {
        let ItemCondition {
            unset,
            short,
            absent,
            cores,
            node,
            launcher,
            program,
            file,
            ..
        } = self;
        let options = ["NODE_OPTIONS", "JAVA_TOOL_OPTIONS"]
            .into_iter()
            .filter_map(|of| facts.env.get(of));
        let words: Vec<&String> = facts.words.iter().chain(options).collect();
        let has = absent
            .iter()
            .find(|text| words.iter().any(|word| word.contains(text.as_str())));
        let begins = facts
            .words
            .iter()
            .any(|word| word.starts_with(short.as_str()));
        let version = |text: &str| -> (u32, u32) {
            let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
            (major.parse().unwrap_or(0), minor.parse().unwrap_or(0))
        };
        let (ours, started) = (facts.node.unwrap_or((0, 0)), facts.launcher.name());
        let is_so = if launcher == "pm2" {
            facts.launcher.is_pm2()
        } else {
            started == launcher
        };
        let otherwise = match launcher.as_str() {
            "exec" => format!("it is started by {started} already"),
            name => format!("it is not started by {name}"),
        };
        let mut first = facts
            .words
            .iter()
            .take(3)
            .filter_map(|word| Path::new(word).file_name());
        let is_program = first.any(|word| program.iter().any(|name| word == name.as_str()));
        let has_file = facts.files.iter().any(|name| name == file.as_str());
        // By the profile, the part that the item would speed up takes almost no time.
        let idle = |what: &str, least: f64, share: Option<f64>| {
            let share = share.filter(|share| *share < least && !named);
            let told = model::quantity::share(share.unwrap_or_default());
            (
                share.is_some(),
                format!("{what} takes {told} of its CPU time"),
            )
        };
        let reasons = [
            (
                facts.env.contains_key(unset),
                format!("{unset} is set already"),
            ),
            (
                !short.is_empty() && begins,
                format!("the command has {short} already"),
            ),
            (
                has.is_some(),
                has.map(|text| format!("the command has {text} already"))
                    .unwrap_or_default(),
            ),
            (
                facts.cores < *cores,
                format!("it takes {cores} processors, and there is {}", facts.cores),
            ),
            (ours < version(node), format!("it takes Node.js {node}")),
            (!launcher.is_empty() && !is_so, otherwise),
            (
                !program.is_empty() && !is_program,
                format!("it is not started by {}", program.join(" or ")),
            ),
            (!file.is_empty() && !has_file, format!("there is no {file}")),
            idle("garbage collection", self.gc, facts.gc_share),
            idle("the thread pool", self.pool, facts.pool_share),
        ];
        let lacking = self.lacking(facts, named).map(str::to_owned);
        reasons
            .into_iter()
            .find_map(|(lacks, why)| lacks.then_some(why))
            .or(lacking)
    }

    fn lacking(&self, facts: &ServiceFacts, named: bool) -> Option<&'static str> {
        let (logs, compresses) = (facts.logs, facts.compresses);
        let lacking = [
            (
                self.huge_pages && !facts.huge_pages,
                "this machine has no transparent huge pages",
            ),
            (
                self.logs && logs.is_none(),
                "only if it writes a log as it serves, which its first run shows",
            ),
            (
                self.logs && logs == Some(false),
                "it writes next to no log as it serves",
            ),
            (
                self.compresses && compresses.is_none(),
                "only if its responses are compressed, which its first run shows",
            ),
            (
                self.compresses && compresses == Some(false),
                "its responses are not compressed",
            ),
            (self.tls && !facts.tls, "it is loaded without TLS"),
            (
                self.versions && facts.other_nodes.is_empty(),
                "no other version is installed",
            ),
            (self.asked && !named, "only if asked for, with --only"),
        ];
        lacking
            .into_iter()
            .find_map(|(lacks, why)| lacks.then_some(why))
    }
}

impl Item {
    fn setting(&self, facts: &ServiceFacts, folder: &Path) -> Result<Setting, String> {
        if let Some(why) = &self.untried {
            return Err(why.clone());
        }
        let mut levels: Vec<SettingLevel> = self
            .level
            .iter()
            .filter_map(|of| of.read(facts, folder))
            .collect();
        if self.when.versions {
            levels.extend(
                facts
                    .other_nodes
                    .iter()
                    .map(|(program, version)| SettingLevel {
                        name: format!("Node.js {version}"),
                        changes: vec![SettingChange::Program(program.display().to_string())],
                    }),
            );
        }
        // For example 8 threads and one per processor may be equal, and equal levels cannot be compared.
        let levels = model::distinct(levels);
        if levels.is_empty() {
            return Err("nothing of it is installed".to_owned());
        }
        // The screened level may not be available here.
        let screened = self.screened.min(levels.len() - 1);
        let name = if levels.len() == 1 {
            levels[0].name.clone()
        } else {
            self.name.clone()
        };
        let (cost, source, seen) = (self.cost.clone(), self.source.clone(), self.seen.clone());
        Ok(Setting {
            name,
            levels,
            screened,
            cost,
            source,
            seen,
        })
    }
}

/// Quotes a path with spaces for NODE_OPTIONS.
fn quoted(path: &str) -> String {
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
}

impl CatalogueLevel {
    /// `None` if a requirement is not installed.
    fn read(&self, facts: &ServiceFacts, folder: &Path) -> Option<SettingLevel> {
        let is = |path: &&PathBuf, name: &str| path.file_name().is_some_and(|file| file == name);
        let library = self
            .library
            .iter()
            .find_map(|name| facts.libraries.iter().find(|path| is(path, name)));
        only_if(
            (self.library.is_empty() || library.is_some()) && (self.nginx.is_none() || facts.nginx),
        )?;
        let library = library
            .map(|path| path.display().to_string())
            .unwrap_or_default();
        let fill = |text: &str| {
            let text = text.replace("{cores}", &facts.cores.to_string());
            let text = text.replace("{cores2}", &(2 * facts.cores).to_string());
            text.replace("{library}", &library).replace(
                "{require}",
                &quoted(&folder.join(SERVER_FILE).display().to_string()),
            )
        };
        let append = |variable: &str, by: &str, value: &str| SettingChange::Append {
            variable: variable.to_owned(),
            by: by.to_owned(),
            value: fill(value),
            inherited: facts.env.get(variable).cloned().unwrap_or_default(),
        };
        let words = |words: &[String]| words.iter().map(|word| fill(word)).collect::<Vec<_>>();
        let some = |list: &[String]| Some(words(list)).filter(|words| !words.is_empty());
        // Each change with its display name.
        let env = self.env.iter().map(|(name, value)| {
            let value = fill(value);
            (
                format!("{name}={value}"),
                SettingChange::Env(name.clone(), value),
            )
        });
        let mut all: Vec<(String, SettingChange)> = env.collect();
        let options = |value: &String| {
            (
                format!("NODE_OPTIONS={value}"),
                append("NODE_OPTIONS", " ", value),
            )
        };
        all.extend(self.options.iter().map(options));
        all.extend(
            self.java
                .iter()
                .map(|value| (value.clone(), append("JAVA_TOOL_OPTIONS", " ", value))),
        );
        if !library.is_empty() {
            all.push((
                format!("LD_PRELOAD={library}"),
                append("LD_PRELOAD", ":", &library),
            ));
        }
        all.extend(
            some(&self.args).map(|words| (words.join(" "), SettingChange::Arguments(words))),
        );
        all.extend(
            some(&self.flags)
                .map(|of| (format!("node {}", of.join(" ")), SettingChange::Flags(of))),
        );
        all.extend(some(&self.before).map(|words| (words.join(" "), SettingChange::Before(words))));
        let (names, mut changes): (Vec<String>, Vec<SettingChange>) = all.into_iter().unzip();
        changes.extend(
            self.cluster
                .iter()
                .filter_map(|count| fill(count).parse().ok().map(SettingChange::Cluster)),
        );
        changes.extend(
            self.nginx
                .iter()
                .map(|file| SettingChange::Nginx(folder.join(file))),
        );
        changes.extend(self.pm2_metrics.map(SettingChange::Pm2Metrics));
        changes.extend(
            (!self.overlay.is_empty()).then(|| SettingChange::Overlay(self.overlay.clone())),
        );
        let name = if self.name.is_empty() {
            names.join(" ")
        } else {
            fill(&self.name)
        };
        Some(SettingLevel { name, changes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node() -> ServiceFacts {
        ServiceFacts {
            runtime: Some(Runtime::Node),
            node: Some((20, 3)),
            words: ["node", "server.js"].map(str::to_owned).to_vec(),
            cores: 2,
            huge_pages: true,
            libraries: vec!["/usr/lib/libjemalloc.so.2".into()],
            launcher: Launcher::Exec,
            ..ServiceFacts::default()
        }
    }

    fn names(facts: &ServiceFacts, wish: &Wish) -> Vec<String> {
        let chosen = Catalogue::built_in().chosen(facts, wish, Path::new("/x.cjs"));
        chosen
            .settings
            .into_iter()
            .map(|setting| setting.name)
            .collect()
    }

    #[test]
    fn the_catalogue_is_whole() {
        let catalogue = Catalogue::built_in();
        let node = catalogue
            .items
            .iter()
            .filter(|one| one.when.runtime.is_none_or(|of| of == Runtime::Node));
        assert!(node.count() >= 14);
        for Item {
            name,
            screened,
            level,
            source,
            ..
        } in &catalogue.items
        {
            assert!(
                *screened <= level.len() && source.starts_with("https://"),
                "{name}"
            );
        }
    }

    #[test]
    fn what_applies_is_tried_and_nothing_else() {
        let all = names(&node(), &Wish::default());
        let has = |names: &[String], name: &str| names.iter().any(|one| one == name);
        let some = ["NODE_ENV=production", "processes", "semi-space"];
        let more = [
            "UV_THREADPOOL_SIZE",
            "malloc",
            "NODE_OPTIONS=--use-largepages=on",
        ];
        assert!(
            some.iter().chain(&more).all(|name| has(&all, name)),
            "{all:?}"
        );
        assert!(
            !all.iter()
                .any(|name| name.contains("GOGC") || name.contains("backlog")),
            "{all:?}"
        );
        let mut facts = node();
        facts.env.insert("NODE_ENV".into(), "development".into());
        facts
            .env
            .insert("NODE_OPTIONS".into(), "--max-semi-space-size=8".into());
        facts.cores = 1;
        let fewer = names(&facts, &Wish::default());
        assert!(!some.iter().any(|name| has(&fewer, name)), "{fewer:?}");
    }

    #[test]
    fn what_is_asked_for_by_name_is_tried_alone() {
        let wish = Wish {
            only: vec!["accept queue".into(), "processes".into()],
            ..Wish::default()
        };
        assert_eq!(names(&node(), &wish), ["processes", "backlog 4096"]);
        let wish = Wish {
            without: vec!["processes".into()],
            ..Wish::default()
        };
        assert!(!names(&node(), &wish).contains(&"processes".to_owned()));
        // Items that exclude each other: the hint says how to try the other one before anything runs.
        let chosen = Catalogue::built_in().chosen(&node(), &Wish::default(), Path::new("/x"));
        let (_, why) = chosen
            .skipped
            .iter()
            .find(|(name, _)| name == "log")
            .unwrap();
        assert!(why.ends_with("try it with --without processes"), "{why}");
        assert!(
            names(
                &ServiceFacts {
                    logs: Some(true),
                    ..node()
                },
                &wish
            )
            .contains(&"log".to_owned())
        );
    }

    #[test]
    fn options_of_the_shell_stay_and_short_flags_are_known() {
        let java = ServiceFacts {
            runtime: Some(Runtime::Java),
            words: vec!["java".into()],
            ..ServiceFacts::default()
        };
        let with = |options: &str| {
            let env = [("JAVA_TOOL_OPTIONS".to_owned(), options.to_owned())].into();
            Catalogue::built_in().chosen(
                &ServiceFacts {
                    env,
                    ..java.clone()
                },
                &Wish::default(),
                Path::new("/x"),
            )
        };
        // With a fixed heap size, a share of the memory would have no effect.
        assert!(
            with("-Xmx1g")
                .settings
                .iter()
                .all(|setting| setting.name != "heap")
        );
        let chosen = with("-Xss1m");
        let text = "name = \"a\"\n[services.api]\ncommand = [\"java\"]\n";
        let base = plan::parse(text, Path::new(".")).unwrap();
        let of = chosen
            .settings
            .iter()
            .position(|setting| setting.name == "heap")
            .unwrap();
        let heap = &chosen.settings[of..=of];
        let (text, _) = crate::tune::experiment(text, &base.variants[0], heap, &[vec![0], vec![1]]);
        assert!(text.contains("-Xss1m -XX:MaxRAMPercentage=50"), "{text}");
        let has_workers = |words: &[&str], env: &[&str]| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            let env = env
                .iter()
                .map(|name| ((*name).to_owned(), "4".to_owned()))
                .collect();
            let gunicorn = ServiceFacts {
                runtime: Some(Runtime::Python),
                cores: 2,
                words,
                env,
                ..ServiceFacts::default()
            };
            names(&gunicorn, &Wish::default()).contains(&"workers".to_owned())
        };
        assert!(has_workers(&["gunicorn", "app:app"], &[]));
        assert!(!has_workers(&["gunicorn", "-w", "4", "app:app"], &[]));
        assert!(!has_workers(&["gunicorn", "app:app"], &["WEB_CONCURRENCY"]));
    }

    #[test]
    fn one_nginx_stands_in_front() {
        let facts = ServiceFacts {
            nginx: true,
            compresses: Some(true),
            ..node()
        };
        let only = vec!["compression".into(), "nginx in front".into()];
        assert_eq!(
            names(
                &facts,
                &Wish {
                    only,
                    ..Wish::default()
                }
            ),
            ["compression"]
        );
    }

    #[test]
    fn every_level_makes_an_experiment() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["nginx.conf.tmpl", "nginx-gzip.conf.tmpl"] {
            std::fs::write(folder.path().join(name), crate::tune::nginx("api", true)).unwrap();
        }
        let exec = "name = \"a\"\n[services.api]\ncommand = [\"node\", \"a.js\"]\n".to_owned();
        let all = ServiceFacts {
            cores: 2,
            nginx: true,
            libraries: Catalogue::built_in()
                .libraries()
                .map(PathBuf::from)
                .collect(),
            ..ServiceFacts::default()
        };
        let mut items = Catalogue::built_in().items;
        items.retain(|item| item.untried.is_none() && !item.level.is_empty());
        for item in items {
            let is_pm2 = item.when.launcher == "pm2";
            let text = format!(
                "{exec}{}",
                if is_pm2 {
                    "launcher = \"pm2-fork\"\n"
                } else {
                    ""
                }
            );
            let base = plan::parse(&text, folder.path()).unwrap();
            let setting = item.setting(&all, folder.path()).unwrap();
            for level in 1..=setting.levels.len() {
                let rows = [vec![0], vec![level]];
                let one = std::slice::from_ref(&setting);
                let (text, _) = crate::tune::experiment(&text, &base.variants[0], one, &rows);
                let plan = plan::parse(&text, folder.path());
                assert!(
                    plan.is_ok_and(|plan| plan.variants.len() == 2),
                    "{} {level}: {text}",
                    item.name
                );
            }
        }
    }
}
