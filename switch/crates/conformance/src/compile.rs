// SPDX-License-Identifier: Apache-2.0
//! Compiles programs by p4c-bm2-ss, once: results are kept by CRC-32 of its path and source.

use std::path::Path;
use std::process::Command;

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
pub fn compile(test: &Test, compiler: &Path, cache: &Path) -> Result<Vec<u8>, String> {
    let source =
        std::fs::read(&test.program).map_err(|e| format!("{}: {e}", test.program.display()))?;
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
    if let Ok(text) = std::fs::read(&json) {
        return Ok(text);
    }
    if let Ok(text) = std::fs::read_to_string(&failure) {
        return Err(text);
    }
    std::fs::create_dir_all(cache).map_err(|e| format!("{}: {e}", cache.display()))?;
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
    let output = command
        .arg(&test.program)
        .output()
        .map_err(|e| format!("{}: {e}", compiler.display()))?;
    if output.status.success() {
        std::fs::rename(&partial, &json).map_err(|e| format!("{}: {e}", json.display()))?;
        return std::fs::read(&json).map_err(|e| e.to_string());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    std::fs::write(&failure, &text).map_err(|e| e.to_string())?;
    Err(text)
}
