// SPDX-License-Identifier: Apache-2.0
//! The committed JSON of `tests/p4` is what its programs compile to. Compares nothing, and says so, where the p4c that
//! made it is not installed: another version may write other JSON.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Of the p4c that compiled what is committed.
const P4C_VERSION: &str = "1.2.5.16";

#[test]
fn compiled_programs_are_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/p4");
    let version = Command::new("p4c-bm2-ss").arg("--version").output();
    let version =
        version.map(|o| String::from_utf8_lossy(&[o.stdout, o.stderr].concat()).into_owned());
    if !version.is_ok_and(|v| v.contains(P4C_VERSION)) {
        eprintln!("p4c-bm2-ss {P4C_VERSION} is not installed: nothing compared");
        return;
    }
    let mut programs = 0;
    for file in std::fs::read_dir(&folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|e| e != "p4") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap().to_string();
        let out = std::env::temp_dir().join(format!("v1model-{}-{name}.json", std::process::id()));
        let compiled = Command::new("p4c-bm2-ss")
            .current_dir(&folder)
            .args(["--std", "p4-16", "-o"])
            .arg(&out)
            .arg(format!("{name}.p4"))
            .output()
            .unwrap();
        assert!(
            compiled.status.success(),
            "{name}.p4: {}",
            String::from_utf8_lossy(&compiled.stderr)
        );
        let read = |path: &Path| -> Value {
            let mut json: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            // p4c's own version.
            json.as_object_mut().unwrap().remove("__meta__");
            json
        };
        let fresh = read(&out);
        std::fs::remove_file(&out).unwrap();
        let committed = read(&folder.join(format!("compiled/{name}.json")));
        assert!(
            fresh == committed,
            "{name}.p4 changed: compile it anew, as include/probe.p4 says"
        );
        programs += 1;
    }
    assert_eq!(programs, 5);
}
