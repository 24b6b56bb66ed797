// SPDX-License-Identifier: Apache-2.0
//! Prints the model of a link: `cargo run -p traffic --example link_schema > fairlane_switch/link.schema.json`.

use traffic::link::{schema, Unit};

fn main() {
    println!("{:#}", schema(Unit::Us));
}
