# SPDX-License-Identifier: Apache-2.0
"""Time series of snapshots as files: `rows.py` says what the columns are, `writers.py` writes CSV, Parquet or JSON lines."""
