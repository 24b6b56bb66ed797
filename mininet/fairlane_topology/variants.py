# SPDX-License-Identifier: Apache-2.0
"""Gives each host of a running topology the TCP variant that the topology file names (`"variant": "vegas"`), and its programs."""

from __future__ import annotations

from collections.abc import Mapping

from fairlane_hosts import loader
from fairlane_hosts.apply import namespace_of, use_on_host
from fairlane_hosts.host import attach, host_of
from fairlane_hosts.variants import Variant, find_variant

from fairlane_topology.network import Network


def apply_variants(network: Network, instead: Mapping[str, str] | None = None) -> loader.Lease | None:
    """Set every host that has a variant; `instead` names other variants for some hosts.

    Returns the lease that keeps the congestion controls and host programs (None when no host has a variant): close it
    when the topology has ended. Where a sender needs a program at its receivers, every host gets it: each may be one. Raises HostsError; no host is left half set.
    """
    chosen = {name: spec.variant for name, spec in network.topology.hosts.items() if spec.variant} | dict(instead or {})
    variants = {name: find_variant(variant) for name, variant in chosen.items()}
    if not variants:
        return None
    lease = loader.acquire()
    try:
        for name, host in network.hosts.items():
            namespace, wanted = namespace_of(pid=host.pid), programs_of(name, variants)
            attach(host_of(f"{network.options.name}/{name}", namespace), wanted, lease)
            if name in variants:
                use_on_host(variants[name], namespace)
    except BaseException:
        lease.close()
        raise
    return lease


def programs_of(host: str, variants: Mapping[str, Variant]) -> tuple[str, ...]:
    """The programs that a host needs, where each host of `variants` sends with its own."""
    own = variants[host].programs if host in variants else ()
    received = (name for variant in variants.values() for name in variant.receiver_programs)
    return tuple(dict.fromkeys((*own, *received)))
