//! One request of a load that sends several, as it is written.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Method;
use crate::shape::Entries;
use crate::text_form::RequestPath;

/// One of several requests of a load.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("required" = ["path"]))]
pub(crate) struct Request {
    /// What reports call it, unlike every other request's. Without it: method and path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How often it is sent, compared with the others: of weights 3 and 1 three times as often.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub weight: u32,
    /// Request method. Without it: POST where there is a body, else GET.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// Request path with its query, sent as it stands.
    pub path: RequestPath,
    /// Request header fields, besides those of the load; one of the same name takes the place of the load's.
    pub headers: Entries<String>,
    /// Request body; its length is sent with it.
    pub body: String,
}

impl Default for Request {
    fn default() -> Self {
        Self {
            name: None,
            weight: 1,
            method: None,
            path: RequestPath("/".to_owned()),
            headers: Entries::default(),
            body: String::new(),
        }
    }
}
