//! What the pages of HTML that we write have in common: a template that is filled in one pass, texts made harmless where they stand, and
//! a policy by which nothing runs but what the page brings along.
//!
//! Must not: know what is on a page, or trust any text that is put into one.

pub(crate) use explain::flame::source_of;

/// The template with its `{{name}}`s replaced, in one pass: what is put in is not looked at again. Other braces are left alone: scripts
/// have them too.
pub(crate) fn filled(template: &str, values: &[(&str, &str)]) -> String {
    let room = values.iter().map(|(_, value)| value.len()).sum::<usize>();
    let mut out = String::with_capacity(template.len() + room);
    let mut rest = template;
    while let Some(at) = rest.find("{{") {
        let (before, mark) = rest.split_at(at);
        out += before;
        let known = values.iter().find_map(|(name, value)| {
            let after = mark.strip_prefix("{{")?.strip_prefix(name)?.strip_prefix("}}")?;
            Some((value, after))
        });
        match known {
            Some((value, after)) => {
                out += value;
                rest = after;
            }
            None => {
                out.push('{');
                rest = &mark[1..];
            }
        }
    }
    out + rest
}

/// The texts of a page's elements of one name, `script` or `style`, each with what its tag says beside the name. Elements inside of other
/// such texts are none.
pub(crate) fn elements<'a>(page: &'a str, name: &str) -> Vec<(&'a str, &'a str)> {
    let mut found = Vec::new();
    let mut rest = page;
    while let Some((kind, after)) = first_of(rest, ["script", "style"]) {
        let Some((attributes, body)) = after.split_once('>') else { break };
        let Some(end) = body.find(&format!("</{kind}")) else { break };
        if kind == name {
            found.push((attributes, &body[..end]));
        }
        rest = &body[end..];
    }
    found
}

/// The first tag of one of these names, and what follows the name.
fn first_of<'a>(page: &'a str, names: [&'static str; 2]) -> Option<(&'static str, &'a str)> {
    let tag = |name: &'static str| {
        let opened = format!("<{name}");
        let mut ends = page.match_indices(&opened).map(|(at, _)| at + opened.len());
        Some((ends.find(|end| page[*end..].starts_with([' ', '>', '\n']))?, name))
    };
    let (at, name) = names.into_iter().filter_map(tag).min()?;
    Some((name, &page[at..]))
}

/// JSON inside a script element: nothing in it can end the element or begin a comment, and it means the same.
pub(crate) fn in_script(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => out += "\\u003c",
            '>' => out += "\\u003e",
            '&' => out += "\\u0026",
            '\u{2028}' => out += "\\u2028",
            '\u{2029}' => out += "\\u2029",
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_once_and_braces_of_scripts_stay() {
        let template = "<p>{{a}}{{b}}{{{a}}}</p><script>if(x){{y}}z={{c:1}}{{</script>";
        let values = [("a", "{{b}}"), ("b", "<b>")];
        let filled = filled(template, &values);
        assert_eq!(filled, "<p>{{b}}<b>{{{b}}}</p><script>if(x){{y}}z={{c:1}}{{</script>");
    }

    #[test]
    fn elements_are_found_with_their_attributes_and_none_inside_of_others() {
        let page = "<head><style>a{}</style><script type=\"module\">x='<style>b</style>'</script>\
                    <scripts>no</scripts><script\nid=\"data\">{}</script><style media=\"print\">c</style>";
        assert_eq!(elements(page, "style"), [("", "a{}"), (" media=\"print\"", "c")]);
        let scripts = elements(page, "script");
        assert_eq!(scripts, [(" type=\"module\"", "x='<style>b</style>'"), ("\nid=\"data\"", "{}")]);
        assert_eq!(elements("<script>never ends", "script"), []);
    }
}
