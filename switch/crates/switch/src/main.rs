// SPDX-License-Identifier: Apache-2.0
//! The binary fairlane-switch: options, start-up, signals.

fn main() {}
