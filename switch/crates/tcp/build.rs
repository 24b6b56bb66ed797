// SPDX-License-Identifier: Apache-2.0
//! Compiles the congestion controls of `hosts/cc/`, the same headers as the BPF programs, into the crate.

fn main() {
    let headers = "../../../hosts/cc";
    println!("cargo::rerun-if-changed=src/cc/controls.c");
    println!("cargo::rerun-if-changed={headers}");
    cc::Build::new()
        .file("src/cc/controls.c")
        .include(headers)
        .opt_level(2)
        .warnings_into_errors(true)
        .compile("fairlane_cc");
}
