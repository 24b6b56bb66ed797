// SPDX-License-Identifier: Apache-2.0
//! Finds packet tests: STF files in a folder, and the v1model program of each, which p4c-bm2-ss compiles once: results are kept
//! by a hash of its path and source.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, ensure, Context, Result};

/// Which language a program is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    P4_16,
    P4_14,
    /// BMv2 JSON: it is compiled already.
    Json,
}

/// A packet test.
#[derive(Clone, Debug)]
pub struct Test {
    /// Path relative to the folder (in p4c's tree: to its testdata), without its end.
    pub name: String,
    pub program: PathBuf,
    pub language: Language,
    /// None for a program without a test, when those are wanted too.
    pub stf: Option<PathBuf>,
    /// Compiled with `--parser-inline-opt`.
    pub inline: bool,
}

/// What a folder holds.
#[derive(Default, Debug)]
pub struct Corpus {
    /// In order of name.
    pub tests: Vec<Test>,
    /// STF files without a program beside them.
    pub orphans: Vec<String>,
}

/// Where the tests of a source tree of p4c are.
const P4C: [&str; 2] = ["testdata/p4_16_samples", "testdata/p4_14_samples"];

/// All tests below `folder`, a source tree of p4c or any folder. The program of `x.stf` is `x.p4` or `x.json` beside it,
/// or in one of `programs`; that of `x_7.stf`, as P4Testgen names its files, also `x.p4` or `x.json`. `untested`: P4
/// programs without an STF file as well.
///
/// # Errors
/// When the folder cannot be read or has no STF file.
pub fn find(folder: &Path, programs: &[PathBuf], untested: bool) -> Result<Corpus> {
    let mut roots: Vec<PathBuf> = P4C.iter().map(|p| folder.join(p)).collect();
    roots.retain(|r| r.is_dir());
    let mut base = folder.join("testdata");
    if roots.is_empty() {
        base = folder.to_path_buf();
        roots.push(base.clone());
    }
    let mut out = Corpus::default();
    let mut alone = Vec::new();
    for root in &roots {
        collect(&base, root, programs, &mut out, &mut alone)
            .with_context(|| root.display().to_string())?;
    }
    if untested {
        let tested: BTreeSet<PathBuf> = out.tests.iter().map(|t| t.program.clone()).collect();
        alone.retain(|t| !tested.contains(&t.program));
        out.tests.append(&mut alone);
    }
    ensure!(
        !out.tests.is_empty(),
        "{}: no STF file with a v1model program beside it; name p4c's source tree, or any folder of x.stf and x.p4",
        folder.display()
    );
    out.tests.sort_by(|a, b| a.name.cmp(&b.name));
    out.orphans.sort();
    Ok(out)
}

fn collect(
    base: &Path,
    folder: &Path,
    programs: &[PathBuf],
    out: &mut Corpus,
    alone: &mut Vec<Test>,
) -> std::io::Result<()> {
    for item in std::fs::read_dir(folder)? {
        let path = item?.path();
        if path.is_dir() {
            collect(base, &path, programs, out, alone)?;
            continue;
        }
        let name = path.strip_prefix(base).expect("below the base");
        let name = name.with_extension("").display().to_string();
        match path.extension().and_then(|e| e.to_str()) {
            Some("stf") => match program(&path, folder, programs) {
                Some(program) => out.tests.extend(test(name, program, Some(path))),
                None => out.orphans.push(name),
            },
            Some("p4") => alone.extend(test(name, path, None)),
            _ => {}
        }
    }
    Ok(())
}

/// None for a program of another architecture.
fn test(name: String, program: PathBuf, stf: Option<PathBuf>) -> Option<Test> {
    Some(Test {
        inline: name.contains("parser-inline/"),
        name,
        language: language(&program)?,
        program,
        stf,
    })
}

fn program(stf: &Path, folder: &Path, programs: &[PathBuf]) -> Option<PathBuf> {
    let stem = stf.file_stem()?.to_str()?;
    let numbered = stem.rsplit_once('_');
    let numbered = numbered.filter(|(_, n)| n.bytes().all(|b| b.is_ascii_digit()));
    let stems = std::iter::once(stem).chain(numbered.map(|(stem, _)| stem));
    for stem in stems {
        for folder in std::iter::once(folder).chain(programs.iter().map(PathBuf::as_path)) {
            for extension in ["p4", "json"] {
                let file = folder.join(format!("{stem}.{extension}"));
                if file.is_file() {
                    return Some(file);
                }
            }
        }
    }
    None
}

fn language(program: &Path) -> Option<Language> {
    if program.extension().is_some_and(|e| e == "json") {
        return Some(Language::Json);
    }
    let source = String::from_utf8_lossy(&std::fs::read(program).ok()?).into_owned();
    if source.contains("v1model.p4") || source.contains("V1Switch") {
        return Some(Language::P4_16);
    }
    let is_p4_14 = |line: &str| {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("header_type") => true,
            Some("parser") => words.next() == Some("start"),
            _ => false,
        }
    };
    source.lines().any(is_p4_14).then_some(Language::P4_14)
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
pub fn compile(test: &Test, compiler: &Path, cache: &Path) -> Result<Vec<u8>> {
    let place = |path: &Path| path.display().to_string();
    let source = fs::read(&test.program).with_context(|| place(&test.program))?;
    if test.language == Language::Json {
        return Ok(source);
    }
    let mut hasher = DefaultHasher::new();
    (&test.program, &source).hash(&mut hasher);
    let stem = test.program.file_stem().unwrap_or_default().display();
    let json = cache.join(format!("{stem}-{:016x}.json", hasher.finish()));
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
    command.args(["--Wdisable", "-I"]);
    command.arg(test.program.parent().expect("a file"));
    if test.language == Language::P4_14 {
        command.args(["--std", "p4-14"]);
    }
    if test.inline {
        command.arg("--parser-inline-opt");
    }
    if source_calls_own_externs(&source) {
        command.arg("--emit-externs");
    }
    let output = command.arg("-o").arg(&partial).arg(&test.program).output();
    let output = output.with_context(|| place(compiler))?;
    if output.status.success() {
        fs::rename(&partial, &json).with_context(|| place(&json))?;
        return Ok(fs::read(&json)?);
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    fs::write(&failure, &text)?;
    bail!(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str, files: &[(&str, &str)]) -> Folder {
            let folder = std::env::temp_dir().join(format!("corpus-{name}-{}", std::process::id()));
            for (path, text) in files {
                let path = folder.join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
            Folder(folder)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn any_folder_is_a_corpus_and_numbered_tests_share_a_program() {
        let v1 = "#include <v1model.p4>";
        let folder = Folder::new(
            "any",
            &[
                ("a.p4", v1),
                ("a.stf", ""),
                ("a_1.stf", ""),
                ("sub/b.json", "{}"),
                ("sub/b.stf", ""),
                ("psa.p4", "#include <psa.p4>"),
                ("psa.stf", ""),
                ("old.p4", "header_type h_t {"),
                ("old.stf", ""),
                ("alone.stf", ""),
                ("untested.p4", v1),
            ],
        );
        let corpus = find(&folder.0, &[], false).unwrap();
        let found: Vec<(&str, Language)> = corpus
            .tests
            .iter()
            .map(|t| (t.name.as_str(), t.language))
            .collect();
        assert_eq!(
            found,
            [
                ("a", Language::P4_16),
                ("a_1", Language::P4_16),
                ("old", Language::P4_14),
                ("sub/b", Language::Json)
            ]
        );
        assert_eq!(corpus.tests[1].program, folder.0.join("a.p4"));
        assert_eq!(corpus.orphans, ["alone"]);
        let more = find(&folder.0, &[], true).unwrap();
        assert_eq!(more.tests.len(), 5);
        let untested = more.tests.iter().find(|t| t.stf.is_none()).unwrap();
        assert_eq!(untested.name, "untested");
    }

    #[test]
    fn programs_may_be_in_another_folder() {
        let programs = Folder::new("programs", &[("a.p4", "#include <v1model.p4>")]);
        let tests = Folder::new("tests", &[("a_12.stf", "")]);
        assert!(find(&tests.0, &[], false)
            .unwrap_err()
            .to_string()
            .contains("no STF file"));
        let corpus = find(&tests.0, std::slice::from_ref(&programs.0), false).unwrap();
        assert_eq!(corpus.tests[0].program, programs.0.join("a.p4"));
    }

    #[test]
    fn in_a_tree_of_p4c_only_the_samples_are_read() {
        let folder = Folder::new(
            "p4c",
            &[
                ("testdata/p4_16_samples/a-bmv2.p4", "#include <v1model.p4>"),
                ("testdata/p4_16_samples/a-bmv2.stf", ""),
                ("other/b.p4", "#include <v1model.p4>"),
                ("other/b.stf", ""),
            ],
        );
        let corpus = find(&folder.0, &[], false).unwrap();
        assert_eq!(corpus.tests.len(), 1);
        assert_eq!(corpus.tests[0].name, "p4_16_samples/a-bmv2");
    }
}
