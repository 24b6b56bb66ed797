// SPDX-License-Identifier: Apache-2.0
//! The binary fairlane-wire: emulated links between interface pairs.

fn main() {}
