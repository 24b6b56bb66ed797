// SPDX-License-Identifier: Apache-2.0
//! Compiles programs by p4c-bm2-ss, once: results are kept by CRC-32 of its path and source.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{bail, Context, Result};

use crate::corpus::{Language, Test};
use v1model::externs::{Hash, Random};

/// True for a program that declares extern functions of its own, which p4c compiles only when told so.
fn source_calls_own_externs(source: &[u8]) -> bool {
    String::from_utf8_lossy(source)
        .lines()
        .any(|l| l.starts_with("extern ") && l.contains('('))
}

/// The BMv2 JSON of a test's program.
///
/// # Errors
/// p4c's message.
pub fn compile(test: &Test, compiler: &Path, cache: &Path) -> Result<Vec<u8>> {
    let place = |path: &Path| path.display().to_string();
    let source = fs::read(&test.program).with_context(|| place(&test.program))?;
    if test.language == Language::Json {
        return Ok(source);
    }
    let mut key = test.program.display().to_string().into_bytes();
    key.extend(&source);
    let crc = Hash::from_name("crc32", Random::new(0))
        .expect("known")
        .compute(&key);
    let stem = test.program.file_stem().unwrap_or_default();
    let json = cache.join(format!("{}-{crc:08x}.json", stem.display()));
    let failure = json.with_extension("json.err");
    if let Ok(text) = fs::read(&json) {
        return Ok(text);
    }
    if let Ok(text) = fs::read_to_string(&failure) {
        bail!(text);
    }
    fs::create_dir_all(cache).with_context(|| place(cache))?;
    // Tests that share a program may run at the same time.
    let partial = json.with_extension(format!("{:?}.json", std::thread::current().id()));
    let mut command = Command::new(compiler);
    command
        .arg("--Wdisable")
        .arg("-I")
        .arg(test.program.parent().expect("a file"))
        .arg("-o")
        .arg(&partial);
    if test.language == Language::P4_14 {
        command.args(["--std", "p4-14"]);
    }
    if test.inline {
        command.arg("--parser-inline-opt");
    }
    if source_calls_own_externs(&source) {
        command.arg("--emit-externs");
    }
    let output = command.arg(&test.program).output();
    let output = output.with_context(|| place(compiler))?;
    if output.status.success() {
        fs::rename(&partial, &json).with_context(|| place(&json))?;
        return Ok(fs::read(&json)?);
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    fs::write(&failure, &text)?;
    bail!(text)
}
