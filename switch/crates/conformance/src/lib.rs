// SPDX-License-Identifier: Apache-2.0
//! Packet tests of v1model programs: p4c's own, P4Testgen's, anybody's, through the embedded switch; and the same
//! programs and more packets through it and through BMv2.
//!
//! | file | idea |
//! |---|---|
//! | `corpus` | finds the tests of a folder and their programs, and compiles these, once |
//! | `stf` | the packet-test language |
//! | `tables` | its names and values as table entries |
//! | `control` | a `Device` in virtual time, also for the fuzz targets: the switch under test, and what statements change of it |
//! | `run` | one test, and whether what left is what its file expects |
//! | `mutate` | more packets from a test's own, by fixed seeds; frames changed, also for the fuzz targets |
//! | `bmv2` | simple_switch without root: its process, its packet port, its commands |
//! | `differ` | one program on both: what is not the same, and what of that is right |
//! | `main` | the program fairlane-conformance |

#![forbid(unsafe_code)]

pub mod bmv2;
pub mod control;
pub mod corpus;
pub mod differ;
pub mod mutate;
pub mod run;
pub mod stf;
mod tables;
