//! How a service is started, and as how many processes: words of the file that the plan keeps.
//!
//! It only reads and writes these words; what a launcher does is known to whoever starts services.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// How a service is started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Launcher {
    /// As the command says.
    #[default]
    Exec,
    /// As several processes of Node.js's own cluster, without a change to the program.
    Cluster,
    /// By PM2, in fork mode.
    Pm2Fork,
    /// By PM2, in cluster mode.
    Pm2Cluster,
}

impl Launcher {
    /// Its name, as the experiment file has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Cluster => "cluster",
            Self::Pm2Fork => "pm2-fork",
            Self::Pm2Cluster => "pm2-cluster",
        }
    }

    /// Whether PM2 does it.
    pub fn is_pm2(self) -> bool {
        matches!(self, Self::Pm2Fork | Self::Pm2Cluster)
    }
}

/// As how many processes a service serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub enum Workers {
    /// One for each CPU that the services have.
    Cores,
    /// So many, 1 to [`WORKERS_MAX`].
    Number(u32),
}

/// Most workers of a service: more than any machine gains by.
pub const WORKERS_MAX: u32 = 256;

/// The word for one worker a CPU.
const CORES: &str = "cores";

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Number(u32),
    Word(String),
}

impl TryFrom<Written> for Workers {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        match written {
            Written::Number(number) if (1..=WORKERS_MAX).contains(&number) => Ok(Self::Number(number)),
            Written::Number(number) => Err(format!("{number} workers, from 1 to {WORKERS_MAX}")),
            Written::Word(word) if word == CORES => Ok(Self::Cores),
            Written::Word(word) => Err(format!("`{word}` is no number of workers and not `{CORES}`")),
        }
    }
}

impl From<Workers> for Written {
    fn from(workers: Workers) -> Self {
        match workers {
            Workers::Cores => Self::Word(CORES.to_owned()),
            Workers::Number(number) => Self::Number(number),
        }
    }
}

impl JsonSchema for Workers {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Workers".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let number = json_schema!({ "type": "integer", "minimum": 1, "maximum": WORKERS_MAX });
        json_schema!({ "anyOf": [number, { "const": CORES }] })
    }
}
