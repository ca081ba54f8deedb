//! Tuning: finds by experiment which settings make a service faster, and confirms the result in fresh runs.
//!
//! ```text
//!   catalogue + facts ─► settings ─► Tuning ─► Step ─► an experiment ─► Outcome ─► Tuning … ─► advice
//! ```
//! [`Tuning`] decides the next measurement and the conclusions, and starts nothing itself. Each step is a
//! normal experiment with its own record. Its variants are rows with a level of every setting. Tuning never
//! changes files of the user.

mod catalogue;
mod lines;
mod overlay;
mod procedure;
mod screening;
mod setting;
mod step;
mod step_plan;

pub use catalogue::{Catalogue, Chosen, Runtime, ServiceFacts, Wish};
pub use lines::LineToWrite;
pub use overlay::{LEVEL, experiment};
pub use procedure::{SettingState, Tuning};
pub use setting::{Keep, Setting, SettingChange, SettingLevel, tried};
pub use step::{
    Confirmation, EffectEstimate, LevelRow, Purpose, RowFigures, StepOutcome, TooShort, TuneSpec,
    TuneStep, confirmed, figures, same_work,
};
pub use step_plan::{StepConditions, StepTimes, on_ports_of, step_plan};

/// Directives of nginx that compress instead of the service.
const COMPRESSION: &str = "gzip on;\n            gzip_types *;\n            gzip_proxied any;\n            proxy_set_header Accept-Encoding \"\";";

/// The service in front of others when nginx is tried.
pub const NGINX: &str = "tune-nginx";

/// Returns a template of an nginx configuration in front of a service. It optionally compresses instead of
/// the service.
pub fn nginx(service: &str, compresses: bool) -> String {
    let text =
        include_str!("tune/nginx.conf.tmpl").replace("{{SERVICE.", &format!("{{{{{service}."));
    text.replace("# COMPRESSION", if compresses { COMPRESSION } else { "" })
}

/// A script for Node.js that some settings load into the service. Variables configure it.
pub const SERVER_FILE: &str = "server.cjs";
/// Text of the script.
pub const SERVER_SCRIPT: &str = include_str!("tune/server.cjs");
