// SPDX-License-Identifier: Apache-2.0
//! Real time: packet sockets and the loop that drives a device.
