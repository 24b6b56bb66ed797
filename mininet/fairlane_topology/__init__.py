# SPDX-License-Identifier: Apache-2.0
"""Topologies: what a file may say, and the network that is made of it in Mininet and removed again.

topology, links, changes, qdisc
                              the file and its links: values only, nothing is started
runtime_json                  p4lang/tutorials' files of entries
network, nodes, interfaces    the running network; emulation has Mininet's own, with an iperf that ends
processes, ports, signals     processes of a run: started, restarted, stopped
state, stop                   what was made, and its removal
control, variants             the controller's loop; the hosts' TCP senders
run, cli                      `make run`

Only network, nodes, interfaces, emulation, cli and run need Mininet.
"""
