// SPDX-License-Identifier: Apache-2.0
//! BMv2 JSON of a v1model program, compiled to a pipeline: no I/O, no clock, no threads.
