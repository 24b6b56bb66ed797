// SPDX-License-Identifier: Apache-2.0
//! Behaviour of the TCP endpoint: packet scripts for each RFC's rules, and a property test over a bad network.

mod harness;

mod handshake;
mod pipe;
mod recovery_newreno;
