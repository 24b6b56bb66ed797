# SPDX-License-Identifier: Apache-2.0
"""The lab's part of program `packs` (docs/schemes.md)."""

from fairlane_lab.programs.ranks import RankPart as Part

__all__ = ["Part"]
