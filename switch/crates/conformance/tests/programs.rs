// SPDX-License-Identifier: Apache-2.0
//! The two programs: what they say, their exit codes, and our P4 programs against BMv2 where it is on the PATH.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

const CONFORMANCE: &str = env!("CARGO_BIN_EXE_fairlane-conformance");
const DIFFERENTIAL: &str = env!("CARGO_BIN_EXE_fairlane-differential");

fn p4src(folder: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../p4src")
        .join(folder)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// A folder with one program (qthresh.p4, compiled) and one test of it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, stf: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let compiled = p4src("compiled").join("qthresh.json");
        std::fs::copy(compiled, folder.join("one.json")).unwrap();
        std::fs::write(folder.join("one_1.stf"), stf).unwrap();
        Folder(folder)
    }

    fn conformance(&self) -> Output {
        Command::new(CONFORMANCE).arg(&self.0).output().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const ROUTE: &str =
    "add \"LaneIngress.route.l2\" 10 \"hdr.ethernet.ether_type\":0x88cc \"LaneIngress.route.l2_forward\"(\"port\":0x3)\n";
const FRAME: &str = "000000000002 000000000001 88cc 00";

#[test]
fn a_folder_of_tests_passes_and_fails_by_its_expectations() {
    let passes = Folder::new(
        "conformance-passes",
        &format!("{ROUTE}packet 511 {FRAME}\nexpect 3 {FRAME}$\n"),
    );
    let output = passes.conformance();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(text(&output).contains("1 of 1 passed"), "{}", text(&output));

    let silent = Folder::new("conformance-silent", &format!("{ROUTE}packet 5 {FRAME}\n"));
    let output = silent.conformance();
    assert_eq!(output.status.code(), Some(1));
    let wanted = "FAILED        one_1: port 3: expected 0 packets, got 1";
    assert!(text(&output).contains(wanted), "{}", text(&output));
}

#[test]
fn a_folder_without_tests_is_told() {
    let output = Command::new(CONFORMANCE)
        .arg(p4src("include"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("no STF file"), "{}", text(&output));
}

#[test]
fn without_bmv2_the_comparison_says_so() {
    let output = Command::new(DIFFERENTIAL)
        .arg(p4src("differential"))
        .env("PATH", "")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let wanted = "simple_switch is not on the PATH";
    assert!(text(&output).contains(wanted), "{}", text(&output));
}

#[test]
fn our_programs_do_as_on_bmv2() {
    if let Some(name) = conformance::bmv2::missing() {
        // Not by a macro, whose text a passing test keeps to itself.
        let said = format!("skipped our_programs_do_as_on_bmv2: {name} is not on the PATH\n");
        std::io::stderr().write_all(said.as_bytes()).unwrap();
        return;
    }
    let output = Command::new(DIFFERENTIAL)
        .args(["--packets", "40", "--programs"])
        .args([p4src("compiled"), p4src("differential")])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(
        text(&output).contains("3 programs with"),
        "{}",
        text(&output)
    );
}
