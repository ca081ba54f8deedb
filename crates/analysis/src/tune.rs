//! Tuning: which settings make a service faster, found by experiment on it and confirmed on fresh runs.
//!
//! ```text
//!   catalogue + facts ─► settings ─► Tuning ─► Step ─► an experiment ─► Outcome ─► Tuning … ─► advice
//! ```
//! [`Tuning`] decides what is measured next and what follows, and starts nothing. Each step is an experiment like any other, with a record
//! of its own; its variants are rows, each with a level of every setting. Must not: change a file of the user's.

mod catalogue;
mod overlay;
mod procedure;
mod screening;
mod setting;
mod step;

pub use catalogue::{Catalogue, Chosen, Facts, Runtime, Wish};
pub use overlay::{LEVEL, experiment};
pub use procedure::{State, Tuning};
pub use setting::{Change, Keep, Level, Setting, tried};
pub use step::{
    Confirmation, Figures, Known, Outcome, Purpose, Row, Spec, Step, TooShort, confirmed, figures, same_work,
};

/// The service that stands in front where nginx is tried.
pub const NGINX: &str = "tune-nginx";

/// A configuration of nginx in front of a service, a template; it compresses in place of the service, or not.
pub fn nginx(service: &str, compresses: bool) -> String {
    const COMPRESSION: &str = "gzip on;\n            gzip_types *;\n            gzip_proxied any;\n            proxy_set_header Accept-Encoding \"\";";
    let text = include_str!("tune/nginx.conf.tmpl").replace("{{SERVICE.", &format!("{{{{{service}."));
    text.replace("# COMPRESSION", if compresses { COMPRESSION } else { "" })
}

/// A script for Node.js that some settings load into the service, with variables that say what it is to do.
pub const SERVER_FILE: &str = "server.cjs";
/// Its text.
pub const SERVER_SCRIPT: &str = include_str!("tune/server.cjs");
