// SPDX-License-Identifier: Apache-2.0
//! P4Runtime server over a device handle.
