# SPDX-License-Identifier: Apache-2.0
"""Lets the tests of this room use the oracle of the PTF tests."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "ptf_tests"))
