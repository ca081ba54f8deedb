//! Mix files: requests with weights, cookies and think times, without an experiment.

use std::path::Path;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::json;

use crate::check::check;
use crate::file::{LoadTable, RequestTable};
use crate::model::{Load, LoadSettings};
use crate::plan_secrets::visit_request;
use crate::problem::Problem;
use crate::request::one;
use crate::schema::SCHEMA;
use crate::site::{FileSource, Site};
use crate::text_form::ThinkText;
use crate::tree::TomlNode;
use crate::{log_in, secret};

/// Parses a mix file: requests, at least one, each with its weight, cookies and think times, and defaults for
/// the rest. `docs/mix-file.md` describes the format. Paths of files are relative to `folder`, and made
/// absolute.
///
/// # Errors
/// All problems, in the order of the text.
pub fn mix(text: &str, folder: &Path) -> Result<Load, Vec<Problem>> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct RequestsFile {
        request: Vec<RequestTable>,
        cookies: bool,
        think: Option<ThinkText>,
    }
    static MIX: LazyLock<serde_json::Value> = LazyLock::new(|| {
        let items = json!({ "$ref": "#/$defs/RequestTable" });
        let description = "Begins with [[request]] and path = \"/\".";
        let list =
            json!({ "type": "array", "items": items, "minItems": 1, "description": description });
        let mut schema =
            json!({ "type": "object", "additionalProperties": false, "required": ["request"] });
        (schema["properties"]["request"], schema["$defs"]) = (list, SCHEMA["$defs"].clone());
        schema["properties"]["cookies"] = json!({ "type": "boolean" });
        schema["properties"]["think"] = json!({ "$ref": "#/$defs/Think" });
        schema["$defs"]["Think"] = json!({ "type": "string" });
        // Mix files use other names for two keys.
        let expect = &mut schema["$defs"]["ExpectTable"]["properties"];
        (expect["bytes"], expect["sha256"]) =
            (expect["body_bytes"].clone(), expect["content"].clone());
        // Any method that a server may know.
        schema["$defs"]["RequestTable"]["properties"]["method"] = json!({ "type": "string" });
        schema
    });
    let mut tree = TomlNode::parse(text)?;
    let mut problems = check(&mut tree, &MIX);
    let file: RequestsFile = tree
        .read()
        .map_err(|problem| problems.push(problem))
        .unwrap_or_default();
    let source = FileSource {
        text,
        file_bytes: text.len(),
        directory: folder,
        against: None,
        requests: None,
        complete: problems.is_empty(),
    };
    let mut site = Site::new(source, &tree, "");
    let load = LoadTable::default();
    let mut requests = Vec::new();
    for (index, written) in file.request.iter().enumerate() {
        let node = tree.item(&["request"], index).unwrap_or(&tree);
        let mut request = one(&mut site, (node, "request"), written, (&load, None));
        // Unlike in an experiment, any 2xx is accepted.
        let any = request
            .expect
            .as_mut()
            .filter(|_| node.entry(&["expect", "status"]).is_none());
        any.into_iter().for_each(|expect| expect.status.clear());
        let absolute = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        visit_request(&mut request, &mut |_, text| {
            *text = secret::anchored(text, &absolute)
        });
        requests.push(request);
    }
    let think = file.think.map(|think| think.0);
    let mix = Load {
        requests,
        settings: LoadSettings {
            cookies: file.cookies,
            ..LoadSettings::default()
        },
        think,
        ..Load::default()
    };
    log_in::judge(&mut site, &["request"], &mix);
    problems.extend(site.problems);
    problems.sort_by_key(|problem| (problem.span.start, problem.span.end));
    if problems.is_empty() {
        Ok(mix)
    } else {
        Err(problems)
    }
}
