// SPDX-License-Identifier: Apache-2.0
//! The program: what it says, its exit codes, and our P4 programs against BMv2 where it is on the PATH.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const CONFORMANCE: &str = env!("CARGO_BIN_EXE_fairlane-conformance");

fn p4src(folder: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../p4src")
        .join(folder)
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// A folder with one program and one test of it.
struct Folder(PathBuf);

impl Folder {
    /// Of qthresh.p4.
    fn new(name: &str, stf: &str) -> Folder {
        Folder::of(&p4src("compiled/qthresh.json"), name, stf)
    }

    fn of(compiled: &Path, name: &str, stf: &str) -> Folder {
        let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
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

/// Where the verdict of `stf` for one of v1model's programs is `wanted`.
fn verdict(program: &str, name: &str, stf: &str, wanted: &str) {
    let compiled = format!(
        "{}/../v1model/tests/p4/compiled/{program}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let output = Folder::of(Path::new(&compiled), name, stf).conformance();
    let passed = wanted.contains("1 of 1 passed");
    assert_eq!(output.status.code(), Some(i32::from(!passed)));
    assert!(text(&output).contains(wanted), "{}", text(&output));
}

/// p4c's driver makes a member for each entry of a table with an action profile.
#[test]
fn entries_of_a_table_with_a_profile_get_members() {
    let entries = "add MyIngress.first hdr.p.key:1 MyIngress.set_x(value:7)\n\
        add MyIngress.first hdr.p.key:2 MyIngress.set_both(x:8, c:0x99)\n";
    // key, a, b; c, x, y, z, hit.
    let packet = |key: u8, rest: &str| format!("0000000{key} 00000000 00000000 {rest}");
    let sent = |key| format!("packet 3 {}\n", packet(key, "0000 00 00 00 00"));
    let got = |key, rest| format!("expect 1 {}$\n", packet(key, rest));
    let stf = [
        entries,
        &sent(1),
        &got(1, "0000 07 00 00 09"),
        &sent(2),
        &got(2, "0099 08 00 00 09"),
        &sent(3),
        &got(3, "0000 00 00 00 00"),
    ];
    verdict("profiles", "members", &stf.concat(), "1 of 1 passed");
}

/// `entries` that are not const, which BMv2 JSON does not tell from those that are.
#[test]
fn a_file_adds_to_the_entries_of_a_program() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let path = format!("{folder}/../v1model/tests/p4/compiled/state.json");
    let mut program: serde_json::Value =
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let tables = program["pipelines"][0]["tables"].as_array_mut().unwrap();
    let table = tables.iter_mut().find(|t| t["name"] == "MyIngress.by_key");
    let table = table.unwrap();
    let tag = table["actions"]
        .as_array()
        .unwrap()
        .iter()
        .position(|a| a == "MyIngress.tag");
    let action = serde_json::json!({
        "action_id": table["action_ids"][tag.unwrap()], "action_data": ["0x07"],
    });
    table["entries"] = serde_json::json!([{
        "match_key": [{"match_type": "lpm", "key": "0x0b000000", "prefix_length": 8}],
        "action_entry": action,
    }]);
    table["max_size"] = serde_json::json!(1);
    let compiled =
        std::env::temp_dir().join(format!("conformance-own-{}.json", std::process::id()));
    std::fs::write(&compiled, program.to_string()).unwrap();
    // Key, what the register had (the key before), 10, then what the entry says.
    let packet = |key: &str, before: &str, x: &str| {
        let sent = format!("packet 3 {key} 00000000 0000000a 0000 00 00 00 00\n");
        sent + &format!("expect 1 {key} {before} 0000000a 0000 {x} 00 00 00$\n")
    };
    let (added, own) = ("0a000001", "0b000001");
    let stf = [
        "add by_key hdr.p.key:0x0a000000/8 tag(value:9)\n".to_string(),
        packet(added, "00000000", "09"),
        packet(own, added, "07"),
        "remove all\n".to_string(),
        packet(added, own, "ff"),
        packet(own, added, "07"),
    ];
    let output = Folder::of(&compiled, "own-entries", &stf.concat()).conformance();
    std::fs::remove_file(&compiled).unwrap();
    assert!(text(&output).contains("1 of 1 passed"), "{}", text(&output));
}

#[test]
fn a_direct_counter_is_looked_at_by_the_name_of_its_entry() {
    let packet = |key: u8| format!("packet 3 0a0000{key:02} 00000000 0000000a 0000 00 00 00 00\n");
    let stf = |name: &str, packets: u8| {
        let entry = |key: u8| format!("add by_key hdr.p.key:0x0a0000{key:02} tag(value:1)");
        [
            &format!("{} = A\n{} = B\n", entry(1), entry(2)),
            packet(1).as_str(),
            &packet(2),
            &packet(1),
            &packet(3),
            &format!("check_counter by_entry({name}) packets == {packets}\n"),
            &format!("check_counter by_entry({name}) bytes == {}\n", 18 * packets),
        ]
        .concat()
    };
    verdict("state", "counter-a", &stf("$A", 2), "1 of 1 passed");
    verdict("state", "counter-b", &stf("$B", 1), "1 of 1 passed");
    let wanted = "counter by_entry($A) is 2, expected == 3";
    verdict("state", "counter-wrong", &stf("$A", 3), wanted);
    let wanted = "no entry has the name `C`";
    verdict("state", "counter-none", &stf("$C", 3), wanted);
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
    let output = Command::new(CONFORMANCE)
        .arg("--bmv2")
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
    let output = Command::new(CONFORMANCE)
        .args(["--bmv2", "--packets", "40", "--programs"])
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
