//! The folder of a service's own, and the files that are made in it from templates.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use plan::Workers;

use crate::stage::{Stage, get, of, with_env};

#[test]
fn a_real_server_is_configured_by_a_template_and_its_folder_goes_with_it() {
    let stage = Stage::new();
    let mut service = stage.service(&["nginx", "-p", "{scratch}", "-c", "nginx.conf"]);
    of(&mut service).workers = Some(Workers::Number(2));
    let template = "daemon off; pid nginx.pid; error_log stderr; worker_processes {{workers}};\n\
                    events {}\n\
                    http { access_log off; server { listen {{address}}:{{ port }}; \
                    location / { return 200 \"{{scratch}}\"; } } }\n";
    of(&mut service).templates.insert("nginx.conf".to_owned(), template.to_owned());
    let running = stage.start(&service).unwrap();
    let scratch = PathBuf::from(get(running.address(), "/"));
    assert_eq!(scratch.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let rendered = fs::read_to_string(scratch.join("nginx.conf")).unwrap();
    assert!(rendered.contains(&format!("listen {};", running.address())), "{rendered}");
    assert_eq!(running.processes(&[]).len(), 3, "a master and two workers");
    assert_eq!(running.stop().killed, 0);
    assert!(!scratch.exists());
}

#[test]
fn a_service_that_does_not_start_leaves_no_folder() {
    let stage = Stage::new();
    let service = with_env(stage.shell("echo $OWN_FOLDER; exit 1"), &[("OWN_FOLDER", "{scratch}")]);
    let error = stage.start(&service).unwrap_err();
    let tail = error.tail().unwrap();
    assert!(tail.starts_with('/') && !PathBuf::from(tail).exists(), "{tail}");
}
