// SPDX-License-Identifier: Apache-2.0
//! Compiles the senders of `hosts/cc/`, the same headers as the BPF programs, into the crate, and writes their table.
//!
//! A header is a sender when it has hooks: a line `#ifdef CC_SENDER_<its name>` (hosts/cc/tcp.h).

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
    for name in &senders {
        build()
            .file(SENDER)
            .define("CC_NAME", name.as_str())
            .define("CC_HEADER", format!("\"{name}.h\"").as_str())
            .define(&format!("CC_SENDER_{name}"), "1")
            .compile(&format!("fairlane_cc_{name}"));
        let _ = writeln!(table, "extern const struct cc_ops cc_sender_{name};");
    }
    table +=
        "extern const struct cc_ops *const cc_senders[];\nextern const size_t cc_senders_len;\n";
    let _ = writeln!(table, "const size_t cc_senders_len = {};", senders.len());
    table += "const struct cc_ops *const cc_senders[] = {\n";
    for name in &senders {
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

/// Names of the headers that have hooks, in alphabetical order.
fn senders() -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(HEADERS)? {
        let path = entry?.path();
        if let Some(name) = stem_of_header(&path) {
            let hooks = format!("#ifdef CC_SENDER_{name}");
            if fs::read_to_string(&path)?.lines().any(|line| line == hooks) {
                found.push(name);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn stem_of_header(path: &Path) -> Option<String> {
    let is_header = path.extension().is_some_and(|extension| extension == "h");
    let stem = path.file_stem()?.to_str()?;
    is_header.then(|| stem.to_owned())
}
