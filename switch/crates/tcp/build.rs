// SPDX-License-Identifier: Apache-2.0
//! Compiles the senders of `hosts/cc/`, the same headers as the BPF programs, into the crate, and writes their table.
//!
//! A header is a sender when it has hooks: a line `#ifdef CC_SENDER_<its name>` (hosts/cc/tcp.h). One with CC_ENA is two more:
//! `ena_<its name>` with the paper's ENA around it, and `ena_<its name>_plus` with ENA+.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

const HEADERS: &str = "../../../hosts/cc";
const SENDER: &str = "src/cc/sender.c";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={SENDER}");
    println!("cargo::rerun-if-changed={HEADERS}");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    let senders = senders()?;
    let mut table = String::from("#include <stddef.h>\nstruct cc_ops;\n");
    for Row { name, header, ena } in &senders {
        let mut build = build();
        build
            .file(SENDER)
            .define("CC_NAME", name.as_str())
            .define("CC_HEADER", format!("\"{header}.h\"").as_str())
            .define(&format!("CC_SENDER_{header}"), "1");
        if let Some(plus) = ena {
            build
                .define("CC_WITH_ENA", "1")
                .define("FL_ENA_PLUS", *plus);
        }
        build.compile(&format!("fairlane_cc_{name}"));
        let _ = writeln!(table, "extern const struct cc_ops cc_sender_{name};");
    }
    table +=
        "extern const struct cc_ops *const cc_senders[];\nextern const size_t cc_senders_len;\n";
    let _ = writeln!(table, "const size_t cc_senders_len = {};", senders.len());
    table += "const struct cc_ops *const cc_senders[] = {\n";
    for Row { name, .. } in &senders {
        let _ = writeln!(table, "\t&cc_sender_{name},");
    }
    table += "};\n";
    let file = out.join("senders.c");
    fs::write(&file, table)?;
    build().file(&file).compile("fairlane_cc_table");
    Ok(())
}

fn build() -> cc::Build {
    let mut build = cc::Build::new();
    build
        .include(HEADERS)
        .opt_level(2)
        .flag("-Wno-unused-parameter") // not every hook looks at all that it gets
        .warnings_into_errors(true);
    build
}

/// A row of the table.
struct Row {
    name: String,
    header: String,
    /// With ENA around it: FL_ENA_PLUS.
    ena: Option<&'static str>,
}

/// The senders of the headers that have hooks, in alphabetical order.
fn senders() -> io::Result<Vec<Row>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(HEADERS)? {
        let path = entry?.path();
        let Some(header) = stem_of_header(&path) else {
            continue;
        };
        let text = fs::read_to_string(&path)?;
        let hooks = format!("#ifdef CC_SENDER_{header}");
        if !text.lines().any(|line| line == hooks) {
            continue;
        }
        let row = |name: String, ena| Row {
            name,
            header: header.clone(),
            ena,
        };
        found.push(row(header.clone(), None));
        if text.lines().any(|line| line.starts_with("#define CC_ENA ")) {
            found.push(row(format!("ena_{header}"), Some("0")));
            found.push(row(format!("ena_{header}_plus"), Some("1")));
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

fn stem_of_header(path: &Path) -> Option<String> {
    let is_header = path.extension().is_some_and(|extension| extension == "h");
    let stem = path.file_stem()?.to_str()?;
    is_header.then(|| stem.to_owned())
}
