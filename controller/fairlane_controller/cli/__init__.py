# SPDX-License-Identifier: Apache-2.0
"""The command `fairlane`: one file a group of sub-commands, all of them thin."""
