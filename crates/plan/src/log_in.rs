//! Requests that a user sends once, before all others, and captured values that later requests use. Checked
//! in experiments and in mix files.

use crate::model::{Load, Request};
use crate::placeholder::placeholders;
use crate::problem::did_you_mean;
use crate::secret::{Field, is_in_secret, is_placeholder};
use crate::shown::{clipped, is_bare, shown_key};
use crate::site::Site;
use crate::tree::TomlNode;

/// Checks the requests of a load in the list at `list`.
pub(crate) fn judge(site: &mut Site<'_>, list: &[&str], load: &Load) {
    let requests = &load.requests;
    let (tree, mut known): (&TomlNode, Vec<&str>) = (site.tree, Vec::new());
    for (index, request) in requests.iter().enumerate() {
        let node = tree.item(list, index).unwrap_or(tree);
        if !request.once && !request.capture.is_empty() {
            let message = "`capture` is of requests that are sent once, before all others";
            site.report(node.key_place(&["capture"]), message, "of a request that is not").hint(
                "add `once = true`: each connection sends it first, and the others are filled with what was captured",
            );
        }
        if request.once && node.entry(&["weight"]).is_some() {
            let message = "a request that is sent once has no `weight`";
            site.report(node.key_place(&["weight"]), message, "without effect");
        }
        for (name, _) in &request.capture {
            let place = node.key_place(&["capture", name]);
            if !is_bare(name) {
                let message = format!("{} is not a name for what is captured", shown_key(name));
                site.report(place, message, "expected letters, digits, `_` and `-`");
            } else if known.contains(&name.as_str()) {
                let message = format!("two requests capture a value called `{}`", clipped(name));
                site.report(place, message, "called so before")
                    .hint("give each a name of its own");
            }
            known.push(name);
        }
        judge_holes(site, node, request, &load.captured_before(index));
    }
    if !requests.is_empty() && requests.iter().all(|request| request.once) {
        let message = "all requests are sent once, and nothing is left to load with";
        site.report(
            tree.item_place(list, 0),
            message,
            "expected one without `once`",
        );
    }
}

/// Placeholders of rows of values are checked with the rows.
fn judge_holes(site: &mut Site<'_>, node: &TomlNode, request: &Request, captured: &[&str]) {
    if captured.is_empty() || request.values.is_some() {
        return;
    }
    let fields = request
        .headers
        .iter()
        .map(|(name, text)| (vec!["headers", name.as_str()], text));
    let texts = [(vec!["path"], &request.path), (vec!["body"], &request.body)]
        .into_iter()
        .chain(fields);
    for (path, text) in texts {
        for placeholder in placeholders(text)
            .iter()
            .filter(|found| !is_placeholder(found.name))
        {
            if captured.contains(&placeholder.name) {
                continue;
            }
            let written = &text[placeholder.range.clone()];
            let place = site.part_place(node.place(&path), written);
            let field = path.get(1).map_or(Field::Sent, |name| Field::Of(name));
            let message = match is_in_secret(field, text, &placeholder.range) {
                true => "nothing that was captured before is called as a placeholder in a secret"
                    .to_owned(),
                false => {
                    format!(
                        "nothing that was captured before is called `{}`",
                        clipped(placeholder.name)
                    )
                }
            };
            let hint = did_you_mean(placeholder.name, "captured", captured.iter().copied());
            site.report(place, message, "stands for nothing")
                .hint(format!("{hint} (a plain brace is written {{{{)"));
        }
    }
}
