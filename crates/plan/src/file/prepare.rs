//! Steps that make data before anything is measured, as the experiment file has them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::shape::Scalar;
use crate::text_form::{Period, Space};

/// Data that services need, made once by a command and kept in a cache under a hash of command, env and inputs.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["command"]))]
pub(crate) struct Prepare {
    /// Program and arguments, each a string of its own; no shell is involved. {output} stands for the folder to fill,
    /// {directory} for the working directory. A plain brace is written {{.
    #[schemars(length(min = 1))]
    pub command: Vec<String>,
    /// Working directory, relative to the folder of this file.
    pub directory: String,
    /// Variables added to Proofload's own environment. Values may contain the placeholders of `command`.
    pub env: BTreeMap<String, Scalar>,
    /// Files and folders, relative to `directory`, whose content decides with command and env whether data made before
    /// is still right.
    pub inputs: Vec<String>,
    /// Free disk space that it needs, such as 2GB, looked for before it starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub space: Option<Space>,
    /// How long it may take, 1s to 24h.
    pub timeout: Period,
}

impl Default for Prepare {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            directory: ".".to_owned(),
            env: BTreeMap::new(),
            inputs: Vec::new(),
            space: None,
            timeout: Period::seconds(600),
        }
    }
}
