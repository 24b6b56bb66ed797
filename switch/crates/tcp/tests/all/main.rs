// SPDX-License-Identifier: Apache-2.0
//! Behaviour of the TCP endpoint: packet scripts for each RFC's rules, and a property test over a bad network.

mod harness;

mod bottleneck;
mod close;
mod configuration;
mod controls;
mod delayed_ack;
mod ecn;
mod ena_mixture;
mod ena_receiver;
mod ena_sender;
mod erto;
mod fast;
mod frto;
mod handshake;
mod pacing;
mod pipe;
mod recovery_newreno;
mod recovery_prr;
mod recovery_rack;
mod recovery_sack;
mod recovery_sack_tail;
mod recovery_tahoe_reno;
mod sack_limit;
mod segments;
mod ticks;
mod timeout;
mod undo;
mod westwood;
mod window;
mod wrap;
