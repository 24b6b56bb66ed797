# SPDX-License-Identifier: Apache-2.0
"""DualPI2 (RFC 9332): a queue of its own for L4S, its marks coupled to the drops of the Classic queue."""
