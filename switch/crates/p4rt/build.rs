// SPDX-License-Identifier: Apache-2.0
//! Makes the Rust message types and services from the descriptors that finsy's Python wheel carries.

use std::path::{Path, PathBuf};
use std::process::Command;

use prost::Message;

/// Names a file that already holds the descriptor set; then no Python is needed.
const FDS_ENV: &str = "FAIRLANE_P4RUNTIME_FDS";
/// Names the Python that has finsy; without it the repository's `.venv` is tried.
const PYTHON_ENV: &str = "FAIRLANE_PYTHON";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=descriptors.py");
    println!("cargo::rerun-if-env-changed={FDS_ENV}");
    println!("cargo::rerun-if-env-changed={PYTHON_ENV}");
    if let Err(error) = generate() {
        println!("cargo::error={error}");
        std::process::exit(1);
    }
}

fn generate() -> Result<(), String> {
    let out_dir = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let path = match std::env::var_os(FDS_ENV) {
        Some(path) => {
            println!("cargo::rerun-if-changed={}", path.to_string_lossy());
            PathBuf::from(path)
        }
        None => dump(&out_dir)?,
    };
    let bytes = std::fs::read(&path)
        .map_err(|e| format!("cannot read the descriptor set {}: {e}", path.display()))?;
    let set = prost_types::FileDescriptorSet::decode(bytes.as_slice())
        .map_err(|e| format!("{} is not a FileDescriptorSet: {e}", path.display()))?;
    std::fs::write(out_dir.join("descriptors.fds"), &bytes)
        .map_err(|e| format!("cannot write into {}: {e}", out_dir.display()))?;
    tonic_prost_build::configure()
        .bytes(".p4")
        .include_file("protocols.rs")
        .compile_fds(set)
        .map_err(|e| format!("cannot make Rust types from {}: {e}", path.display()))?;
    own_service();
    Ok(())
}

/// `fairlane.v1.Switch`, whose messages are `google.protobuf.Struct`: it needs no .proto file.
fn own_service() {
    let method = |name: &str, route: &str| {
        tonic_build::manual::Method::builder()
            .name(name)
            .route_name(route)
            .input_type("::prost_types::Struct")
            .output_type("::prost_types::Struct")
            .codec_path("::tonic_prost::ProstCodec")
    };
    let service = tonic_build::manual::Service::builder()
        .name("Switch")
        .package("fairlane.v1")
        .comment("What P4Runtime and gNMI have no word for.")
        .method(
            method("trace", "Trace")
                .comment("One packet's way.")
                .build(),
        )
        .method(
            method("trace_live", "TraceLive")
                .comment("The next packets that match.")
                .server_streaming()
                .build(),
        )
        .build();
    tonic_build::manual::Builder::new().compile(&[service]);
}

/// Runs `descriptors.py`; its output goes into the build's own folder.
fn dump(out_dir: &Path) -> Result<PathBuf, String> {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").ok_or("no manifest folder")?);
    let root = here.join("../../..");
    let python = match std::env::var_os(PYTHON_ENV) {
        Some(path) => PathBuf::from(path),
        None => root.join(".venv/bin/python"),
    };
    let help = format!(
        "the P4Runtime message types are made from finsy's Python wheel: run `make setup` (or make a .venv with \
         finsy in the repository's root), or name a Python that has finsy in {PYTHON_ENV}, or a ready descriptor set \
         in {FDS_ENV}"
    );
    let output = out_dir.join("finsy.fds");
    let run = Command::new(&python)
        .arg(here.join("descriptors.py"))
        .arg(&output)
        .output()
        .map_err(|e| format!("cannot run {}: {e}; {help}", python.display()))?;
    if !run.status.success() {
        let text = String::from_utf8_lossy(&run.stderr);
        let last = text.trim().lines().last().unwrap_or("no message");
        return Err(format!("{} failed ({last}); {help}", python.display()));
    }
    Ok(output)
}
