# SPDX-License-Identifier: Apache-2.0
"""Which packets are a VC's: an entry's values and masks, how precise it is, and whether two of them meet the same packet."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

IpNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

WIDTHS = {"ingress_port": 9, "vid": 12, "dscp": 6}


def parse_prefix(text: str) -> IpNetwork | None:
    """`10.0.1.0/24`, `2001:db8::/32`, an address, or "" (any, None). Raises ValueError; host bits must be 0."""
    if not text.strip():
        return None
    try:
        return ipaddress.ip_network(text.strip())
    except ValueError as ex:
        raise ValueError(f"{text!r} is no IP prefix ({ex}); examples: 10.0.1.0/24, 2001:db8:1::/48") from None


@dataclass(frozen=True)
class Ternary:
    """One entry of `vc_classify` (version 4) or `vc_classify_v6` (6): field → (value, mask); a missing field matches all."""

    version: int
    fields: tuple[tuple[str, int, int], ...]
    "(name, value, mask) in the table's order."

    @property
    def precision(self) -> int:
        """Bits that are looked at: of two entries that match a packet the more precise one decides."""
        return sum(mask.bit_count() for _, _, mask in self.fields)

    @property
    def masks(self) -> tuple[tuple[str, int], ...]:
        """What is looked at, without the values."""
        return tuple((name, mask) for name, _, mask in self.fields)

    @property
    def priority(self) -> int:
        """The priority of its entry: greater is matched first (P4Runtime 1.5 §9.1.1); never 0."""
        return 1 + self.precision

    def masked_values(self, masks: dict[str, int]) -> tuple[int, ...]:
        """Its values with only the bits of `masks` left, in the order of `masks`."""
        mine = {name: value for name, value, _ in self.fields}
        return tuple(mine.get(name, 0) & mask for name, mask in masks.items())


def ternaries(
    ingress_port: int, vlan: int, dscp: int | None, src: IpNetwork | None, dst: IpNetwork | None
) -> list[Ternary]:
    """The entries of one match; two (IPv4 and IPv6) where no address says which. Raises ValueError for a mix of both."""
    versions = {network.version for network in (src, dst) if network is not None}
    if len(versions) > 1:
        raise ValueError(f"src {src} and dst {dst} are of different IP versions: no packet has both")
    common: list[tuple[str, int, int]] = []
    if ingress_port:
        common.append(("ingress_port", ingress_port, _ones("ingress_port")))
    if vlan:
        common.append(("vid", vlan, _ones("vid")))
    if dscp is not None:
        common.append(("dscp", dscp, _ones("dscp")))
    made: list[Ternary] = []
    for version in sorted(versions) or (4, 6):
        fields = list(common)
        for name, network in (("src", src), ("dst", dst)):
            if network is not None and network.prefixlen:
                fields.append((name, int(network.network_address), int(network.netmask)))
        made.append(Ternary(version, tuple(fields)))
    return made


def _ones(field: str) -> int:
    return (1 << WIDTHS[field]) - 1


def first_clash(entries: list[tuple[Ternary, str]]) -> tuple[int, int] | None:
    """Two entries of different owners that are equally precise and meet one packet: their places, or None.

    Which of the two a switch would choose is not defined. Groups of equal masks are compared by their common bits, so the
    work grows with entries times kinds of masks, not with pairs of entries.
    """
    groups: dict[tuple[int, int], dict[tuple[tuple[str, int], ...], list[int]]] = {}
    for place, (entry, _) in enumerate(entries):
        kinds = groups.setdefault((entry.version, entry.precision), {})
        kinds.setdefault(entry.masks, []).append(place)
    for kinds in groups.values():
        lists = list(kinds.items())
        for number, (masks, places) in enumerate(lists):
            for other_masks, other_places in lists[number:]:
                other = dict(other_masks)
                common = {name: mask & other[name] for name, mask in masks if name in other}
                clash = _meeting(entries, common, places, other_places)
                if clash is not None:
                    return clash
    return None


def _meeting(
    entries: list[tuple[Ternary, str]], common: dict[str, int], places: list[int], other_places: list[int]
) -> tuple[int, int] | None:
    seen: dict[tuple[int, ...], list[int]] = {}
    for place in places:
        seen.setdefault(entries[place][0].masked_values(common), []).append(place)
    for place in other_places:
        for before in seen.get(entries[place][0].masked_values(common), ()):
            if entries[before][1] != entries[place][1]:
                return min(before, place), max(before, place)
    return None
