// SPDX-License-Identifier: Apache-2.0
//! Queues, schedulers, shared buffer and link models: no I/O, the clock is an argument.
