# SPDX-License-Identifier: Apache-2.0
"""ENA: the switch names corrupted segments for receivers that cannot."""
