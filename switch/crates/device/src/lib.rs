// SPDX-License-Identifier: Apache-2.0
//! One v1model switch: pipeline, traffic manager, replication and packet I/O; the clock is an argument.
