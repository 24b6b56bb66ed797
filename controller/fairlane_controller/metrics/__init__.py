# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics of a running topology: `exporter` makes families of snapshots, and serves them on its own or beside the control loop."""
