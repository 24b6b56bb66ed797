# SPDX-License-Identifier: Apache-2.0
"""Gives each host of a running topology the TCP variant that the topology file names (`"variant": "vegas"`), and its programs."""

from __future__ import annotations

from fairlane_hosts import loader
from fairlane_hosts.apply import namespace_of, use_on_host
from fairlane_hosts.host import attach, host_of
from fairlane_hosts.variants import find_variant

from fairlane_topology.network import Network


def apply_variants(network: Network) -> loader.Lease | None:
    """Set every host that has a variant. Where a sender needs a program at its receivers, every host gets it: each may be one.

    Returns:
        The lease that holds the congestion controls and host programs (None when no host has a variant): close it when the
        topology has ended.

    Raises:
        HostsError: no host is left half set.
    """
    specs = network.topology.hosts.items()
    variants = {name: find_variant(spec.variant) for name, spec in specs if spec.variant}
    if not variants:
        return None
    received = [program for variant in variants.values() for program in variant.receiver_programs]
    lease = loader.acquire()
    try:
        for name, host in network.hosts.items():
            namespace, own = namespace_of(pid=host.pid), variants.get(name)
            wanted = tuple(dict.fromkeys([*(own.programs if own else ()), *received]))
            attach(host_of(f"{network.options.name}/{name}", namespace), wanted, lease)
            if own:
                use_on_host(own, namespace)
    except BaseException:
        lease.close()
        raise
    return lease
