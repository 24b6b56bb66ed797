# SPDX-License-Identifier: Apache-2.0
"""Prometheus metrics of running topologies: `names` the one table of what there is; `collect` a snapshot as metric families;
`exporter` the endpoint, on its own or beside the control loop."""
