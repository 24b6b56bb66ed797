# SPDX-License-Identifier: Apache-2.0
"""What the drop reasons of our programs, of queues and of links mean, in words (`p4src/README.md`)."""

from __future__ import annotations

_PACKET = {
    "short": "the frame ends inside a header",
    "bad_version": "EtherType and IP version disagree",
    "bad_ihl": "IPv4 header length below 20 bytes",
    "bad_length": "the IP or TCP length does not fit header or frame",
    "bad_checksum": "IPv4 header checksum wrong",
    "ttl": "TTL or hop limit used up",
    "non_ip": "not IP, and no entry in table l2",
    "no_route": "no route to the destination",
    "route_drop": "a table entry says drop",
    "parser": "the parser rejected it",
    "corrupted": "TCP checksum wrong, and nobody to tell",
}
_QUEUE = {
    "qthresh": "the flow had its threshold of packets waiting",
    "port_full": "the port's queue was full",
    "gfr": "refused by the port's GFR scheme",
}
_VERDICT = {
    "qmax": "the buffer was full (QT at QMAX)",
    "case_1": "CLP 1 below LBO: the VC has more than its share waiting and is faster than w_i",
    "case_2": "CLP 1 between LBO and HBO: the VC has more than its share waiting",
    "case_3": "CLP 1 above HBO",
    "case_5": "CLP 0 between LBO and HBO: more than its share waiting, and faster than w_i",
    "case_6": "CLP 0 above HBO",
    "hbo": "QT above HBO",
    "threshold": "the scheme's threshold for the VC was reached",
    "chance": "DFBA's chance hit it",
    "pcr": "above the VC's peak rate, at its edge",
    "mfs": "longer than the VC's longest frame, at its edge",
}
_ELSEWHERE = {
    "queue": "the queue had no room (packets, bytes, cells, or the shared buffer)",
    "link": "lost at the interface",
}


def meaning(reason: str, by: str = "program") -> str:
    """One short sentence; `by` is `program`, `queue` or `link`, whose reasons are the target's own."""
    for known in (_PACKET, _QUEUE, _VERDICT):
        if reason in known:
            return known[reason]
    return _ELSEWHERE.get(by, "a reason of the program's own")
