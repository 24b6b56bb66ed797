// SPDX-License-Identifier: Apache-2.0
//! Compiles programs by p4c-bm2-ss, once: results are kept by name and CRC-32 of the source.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A test of the corpus.
#[derive(Clone, Debug)]
pub struct Test {
    /// Path relative to the corpus, without `.p4`.
    pub name: String,
    pub p4: PathBuf,
    pub stf: PathBuf,
    /// Compiled with `--parser-inline-opt`.
    pub inline: bool,
}

/// v1model programs with an `.stf` file under `<tree>/testdata/p4_16_samples`, in order of name.
///
/// # Errors
/// When the tree is not p4c's.
pub fn tests(tree: &Path) -> Result<Vec<Test>, String> {
    let corpus = tree.join("testdata/p4_16_samples");
    let mut out = Vec::new();
    collect(&corpus, &corpus, &mut out).map_err(|e| {
        format!(
            "{}: {e}; --p4c-tree must be a source tree of p4c",
            corpus.display()
        )
    })?;
    out.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(out)
}

fn collect(corpus: &Path, folder: &Path, out: &mut Vec<Test>) -> std::io::Result<()> {
    for item in std::fs::read_dir(folder)? {
        let path = item?.path();
        if path.is_dir() {
            collect(corpus, &path, out)?;
            continue;
        }
        if path.extension().is_none_or(|e| e != "stf") {
            continue;
        }
        let p4 = path.with_extension("p4");
        // Other architectures have STF files too.
        let Ok(source) = std::fs::read_to_string(&p4) else {
            continue;
        };
        if !source.contains("v1model.p4") {
            continue;
        }
        let name = p4
            .strip_prefix(corpus)
            .expect("below the corpus")
            .with_extension("");
        let inline = name.starts_with("parser-inline");
        out.push(Test {
            name: name.display().to_string(),
            p4,
            stf: path,
            inline,
        });
    }
    Ok(())
}

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
    let source = std::fs::read(&test.p4).map_err(|e| format!("{}: {e}", test.p4.display()))?;
    let crc = v1model::externs::Hash::from_name("crc32", 0)
        .expect("known")
        .compute(&source);
    let json = cache.join(format!("{}-{crc:08x}.json", test.name.replace('/', "_")));
    let failure = json.with_extension("json.err");
    if let Ok(text) = std::fs::read(&json) {
        return Ok(text);
    }
    if let Ok(text) = std::fs::read_to_string(&failure) {
        return Err(text);
    }
    std::fs::create_dir_all(cache).map_err(|e| format!("{}: {e}", cache.display()))?;
    let partial = json.with_extension("json.tmp");
    let mut command = Command::new(compiler);
    command
        .arg("--Wdisable")
        .arg("-I")
        .arg(test.p4.parent().expect("a file"))
        .arg("-o")
        .arg(&partial);
    if test.inline {
        command.arg("--parser-inline-opt");
    }
    if source_calls_own_externs(&source) {
        command.arg("--emit-externs");
    }
    let output = command
        .arg(&test.p4)
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
