# SPDX-License-Identifier: Apache-2.0
"""Finds, starts and stops the binaries of the Rust workspace."""
