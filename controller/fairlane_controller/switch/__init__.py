# SPDX-License-Identifier: Apache-2.0
"""Everything that speaks P4Runtime: the client with its time limits and the contract of the P4 program."""
