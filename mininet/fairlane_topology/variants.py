# SPDX-License-Identifier: Apache-2.0
"""Gives each host of a running topology the TCP variant that the topology file names (`"variant": "vegas"`), and its programs."""

from __future__ import annotations

from fairlane_hosts import loader
from fairlane_hosts.host import use_on_hosts
from fairlane_hosts.variants import find_variant

from fairlane_topology.network import Network


def apply_variants(network: Network) -> loader.Lease | None:
    """Set every host that has a variant; see `use_on_hosts`.

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
    lease = loader.acquire()
    try:
        use_on_hosts(variants, {name: host.pid for name, host in network.hosts.items()}, network.options.name, lease)
    except BaseException:
        lease.close()
        raise
    return lease
