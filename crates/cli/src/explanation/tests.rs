//! File access of explanations: source maps and versions where they exist, and nothing outside of a record.

use std::fs;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use explain::CaptureFiles;

use super::Files;

#[test]
fn a_record_that_names_files_outside_of_it_gets_none() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("record")).expect("a folder");
    fs::write(folder.path().join("secret"), "secret").expect("a file");
    fs::write(folder.path().join("record/p.cpuprofile"), "{}").expect("a file");
    let files = Files::of(&folder.path().join("record"));
    assert_eq!(files.file("p.cpuprofile"), Ok(b"{}".to_vec()));
    for path in ["../secret", "/etc/hostname", "", "a/../../secret"] {
        assert!(
            files
                .file(path)
                .is_err_and(|error| error.contains("outside")),
            "{path}"
        );
    }
    // Endless files, and pipes without a writer, are not read.
    let pipe = folder.path().join("record/pipe");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .expect("mkfifo")
            .success()
    );
    assert!(
        files
            .file("pipe")
            .is_err_and(|error| error.contains("a pipe, not a file"))
    );
    assert_eq!(files.source_map("/dev/zero"), None);
    // Nor through a link.
    std::os::unix::fs::symlink(folder.path(), folder.path().join("record/profiles"))
        .expect("a link");
    assert!(
        files
            .file("profiles/secret")
            .is_err_and(|error| error.contains("leads out"))
    );
}

#[test]
fn versions_and_source_maps_are_found_where_scripts_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let write = |name: &str, text: String| fs::write(path(name), text).expect("a file");
    write("package.json", "{ \"version\": \"1.2.3\" }".into());
    write("app.js.map", "{\"version\":3}".into());
    write("app.js", "x()\n//# sourceMappingURL=app.js.map\n".into());
    let inline = STANDARD.encode("{\"version\":3,\"inline\":1}");
    write(
        "inline.js",
        format!("x()\n//# sourceMappingURL=data:application/json;charset=utf-8;base64,{inline}\n"),
    );
    fs::create_dir(folder.path().join("all maps")).expect("a folder");
    write("all maps/app.js.map", "{}".into());
    write(
        "apart.js",
        "x()\n//# sourceMappingURL=all%20maps/app.js.map?1a2b\n".into(),
    );
    write(
        "remote.js",
        "x()\n//# sourceMappingURL=https://example.com/app.js.map".into(),
    );
    write("none.js", "x()".into());
    let files = Files::of(folder.path());
    let version = files.version(&folder.path().display().to_string());
    assert_eq!(
        (version.as_deref(), files.version("relative")),
        (Some("1.2.3"), None)
    );
    // Each with the file that contains it.
    for (script, map, at) in [
        ("app.js", "{\"version\":3}", "app.js.map"),
        ("inline.js", "{\"version\":3,\"inline\":1}", "inline.js"),
        ("apart.js", "{}", "all maps/app.js.map"),
    ] {
        assert_eq!(
            files.source_map(&path(script)),
            Some((map.as_bytes().to_vec(), path(at)))
        );
    }
    // Another spelling of app.js is not how Node.js names it.
    for name in ["remote.js", "none.js", "missing.js", "all maps/../app.js"] {
        assert_eq!(files.source_map(&path(name)), None, "{name}");
    }
}
