# SPDX-License-Identifier: Apache-2.0
"""A scenario on real hosts: Mininet, Linux senders, our switch or BMv2, our links.

Map: `grouping` says which scenarios share a network, and numbers the networks;
`bed` is one running topology with its hosts' TCP and what happens in mid-run; `plan` turns a scenario's flows into processes;
`port_watch` samples ports and queues; `collect` makes a `Recording` of the files that the processes left. `runners/mininet.py` drives it all.
"""
