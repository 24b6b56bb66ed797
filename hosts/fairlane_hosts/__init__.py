# SPDX-License-Identifier: Apache-2.0
"""fairlane's hosts: TCP variants on a stock kernel, per host and per socket, and the traffic to try them with.

Map: `variants` is the table of TCP variants; `build` compiles their BPF objects; `loader` registers them with the
kernel for as long as somebody uses them; `host` attaches programs to a host (`bpf` is libbpf, `registry` what processes
share); `apply` gives a host or a socket its variant and checks it; `tcpinfo` reads TCP_INFO; `traffic` sends, discards
and samples; `commands` is `fairlane hosts`.
"""
