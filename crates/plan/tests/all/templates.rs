//! Templates that an experiment names: stored as text, with errors reported at their places.

use std::fs;

use proofload_plan::{Launcher, Problem, Service, Workers, parse, render};

use crate::{kept, plan};

/// An experiment with a proxy before two services, of which it needs one.
const EXPERIMENT: &str = r#"
name = "templates"
entry = "proxy"
[services.api]
command = ["node", "server.js"]
[services.other]
command = ["node", "server.js"]
[services.proxy]
command = ["nginx", "-c", "{scratch}/nginx.conf"]
directory = "proxy"
needs = ["api"]
workers = 2
templates = { "nginx.conf" = "nginx.conf.tmpl" }
"#;

/// Reads the experiment with this text in its template. Returns problems as `message | hint`, each at the
/// template's name.
fn read(template: &[u8]) -> Result<proofload_plan::Plan, Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("proxy")).unwrap();
    fs::write(folder.path().join("proxy/nginx.conf.tmpl"), template).unwrap();
    parse(EXPERIMENT, folder.path()).map_err(|problems| {
        let shown = |problem: &Problem| {
            assert_eq!(
                &EXPERIMENT[problem.span.clone()],
                "\"nginx.conf.tmpl\"",
                "{problem:?}"
            );
            let hint = problem.hint.clone().unwrap_or_default();
            format!("{} | {hint}", problem.message)
                .replace(folder.path().to_str().unwrap(), "FOLDER")
        };
        problems.iter().map(shown).collect()
    })
}

#[test]
fn a_template_is_kept_as_text_and_filled_in_later() {
    let text = "worker_processes {{workers}};\nevents {}\nhttp { server { listen {{ port }}; } }\n";
    let plan = read(text.as_bytes()).unwrap();
    let proxy = plan.variants[0]
        .services
        .last()
        .and_then(Service::command)
        .unwrap();
    assert_eq!(proxy.templates["nginx.conf"], text);
    assert_eq!(proxy.workers, Some(Workers::Number(2)));
    let rendered = render(&proxy.templates["nginx.conf"], |name| {
        Some(format!("<{name}>"))
    })
    .unwrap();
    assert_eq!(
        rendered,
        "worker_processes <workers>;\nevents {}\nhttp { server { listen <port>; } }\n"
    );
}

#[test]
fn each_slip_in_a_template_has_its_own_line_and_column() {
    let slips = "a {{prot}};\n  é {{other.port}} {{scratch}}\n{{api.port}} {{\n";
    assert_eq!(
        read(slips.as_bytes()).unwrap_err(),
        [
            "proxy/nginx.conf.tmpl:1:3: unknown placeholder `{{prot}}` | did you mean `{{port}}`? (two plain braces need \
             a blank between them)",
            "proxy/nginx.conf.tmpl:2:5: unknown placeholder `{{other.port}}` | `services.proxy.needs` must name `other` \
             first",
            "proxy/nginx.conf.tmpl:3:14: `{{` is not closed | a placeholder ends in its line with `}}`; two plain braces \
             need a blank between them",
        ]
    );
}

#[test]
fn what_is_no_text_or_too_much_of_it_is_refused() {
    assert_eq!(
        read(b"a\nbc\xff").unwrap_err(),
        [
            "`services.proxy.templates.\"nginx.conf\"`: proxy/nginx.conf.tmpl:2:3: the byte 0xff is not UTF-8 | looked \
             for FOLDER/proxy/nginx.conf.tmpl"
        ]
    );
    let large = read(&vec![b'a'; (1 << 20) + 1]).unwrap_err();
    assert!(
        large[0].contains("proxy/nginx.conf.tmpl: it is larger than 1048576 bytes"),
        "{large:?}"
    );
    assert!(read(&vec![b'a'; 1 << 20]).is_ok());
}

#[test]
fn a_level_may_choose_the_launcher_and_each_has_its_workers() {
    let text = r#"
name = "launchers"
[services.api]
command = ["node", "server.js"]
[factors.launcher]
exec = { api.launcher = "exec" }
cluster = { api.launcher = "cluster" }
pm2-fork = { api.launcher = "pm2-fork" }
pm2-cluster = { api.launcher = "pm2-cluster", api.workers = 3, api.pmx = false }
"#;
    let plan = plan(text);
    let services = plan.variants.iter().map(|variant| &variant.services[0]);
    let seen: Vec<_> = services
        .filter_map(Service::command)
        .map(|command| (command.launcher, command.workers, command.pmx))
        .collect();
    assert_eq!(
        seen,
        [
            (Launcher::Exec, None, true),
            (Launcher::Cluster, Some(Workers::Cores), true),
            (Launcher::Pm2Fork, Some(Workers::Number(1)), true),
            (Launcher::Pm2Cluster, Some(Workers::Number(3)), false),
        ]
    );
    // As the record stores it, and as one without these keys did.
    let kept = kept(&plan);
    let service = &kept["variants"][1]["services"][0];
    assert_eq!(
        (&service["launcher"], &service["workers"]),
        (&"cluster".into(), &"cores".into())
    );
    let mut old = service.clone();
    for key in ["launcher", "workers", "pmx", "templates"] {
        old.as_object_mut().unwrap().remove(key);
    }
    let old: proofload_plan::Service = serde_json::from_value(old).unwrap();
    let old = old.command().unwrap();
    assert_eq!(
        (old.launcher, old.workers, old.pmx),
        (Launcher::Exec, None, true)
    );
}
