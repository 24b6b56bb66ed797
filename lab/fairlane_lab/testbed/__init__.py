# SPDX-License-Identifier: Apache-2.0
"""A scenario on real hosts: Mininet, Linux senders, our switch or BMv2, our links.

Map: `grouping` says which scenarios share a network; `claims` numbers the networks;
`bed` is one running topology; `plan` turns a scenario's flows into processes; `host_settings`
sets the hosts' TCP and attaches their programs; `port_watch` samples ports and queues;
`changes` is what happens in mid-run; `collect` makes a `Recording` of the files that the processes left. `runners/mininet.py` drives it all.
"""
