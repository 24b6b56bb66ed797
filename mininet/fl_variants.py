# SPDX-License-Identifier: Apache-2.0
"""Gives each host of a running topology the TCP variant that the topology file names (`"variant": "vegas"`)."""

from __future__ import annotations

from collections.abc import Mapping

from fairlane_hosts import loader
from fairlane_hosts.apply import namespace_of, use_on_host
from fairlane_hosts.variants import find_variant
from fl_net import Network


def apply_variants(network: Network, instead: Mapping[str, str] | None = None) -> loader.Lease | None:
    """Set every host that has a variant; `instead` names other variants for some hosts.

    Returns the lease that keeps the congestion controls registered (None when no host has a variant): close it when the
    topology has ended. Raises HostsError; no host is left half set.
    """
    chosen = {name: spec.variant for name, spec in network.topology.hosts.items() if spec.variant} | dict(instead or {})
    variants = {name: find_variant(variant) for name, variant in chosen.items()}
    if not variants:
        return None
    lease = loader.acquire()
    try:
        for name, variant in variants.items():
            use_on_host(variant, namespace_of(pid=network.hosts[name].pid))
    except BaseException:
        lease.close()
        raise
    return lease
