# SPDX-License-Identifier: Apache-2.0
"""What each exercise of p4lang/tutorials shows when it is solved, by its README: typed at Mininet's prompt as a user types it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from place import Log, Place, Session, expect

Check = Callable[[Place], None]
PINGALL = "pingall 5"
LONG_S = 120.0
MESSAGES = 16
"""So that hashing sends them all to one of two hosts in one of 32,768 runs."""


def reaches_everybody(session: Session) -> None:
    said = session.do(PINGALL, LONG_S)
    expect("*** Results: 0% dropped" in said, f"pingall: {said}")


def rates(session: Session, client: str, server: str) -> list[str]:
    """What Mininet's iperf reports: the server's rate and the client's; empty where nothing arrived."""
    said = session.do(f"iperf {client} {server}", LONG_S)
    found = re.search(r"\*\*\* Results: \[(.*)\]", said)
    expect(found, f"iperf {client} {server}: {said}")
    return re.findall(r"'([^']*)'", found.group(1) if found else "")


def basic(place: Place) -> None:
    """All hosts reach each other, in both topologies."""
    for folder in ("pod-topo", "triangle-topo"):
        with place.network(f"{folder}/topology.json") as session:
            reaches_everybody(session)


def basic_tunnel(place: Place) -> None:
    """Without a tunnel the address decides, in a tunnel its number."""
    with place.network() as session:
        logs = {host: place.listen(session, host) for host in ("h2", "h3")}

        def send(words: str) -> Callable[[], str]:
            return lambda: session.do(f"h1 ./send.py {words}")

        logs["h2"].wait_for("b'plain2'", meanwhile=send("10.0.2.2 plain2"))
        logs["h3"].wait_for("b'plain3'", meanwhile=send("10.0.3.3 plain3"))
        logs["h2"].wait_for("MyTunnel", "b'tunnel2'", meanwhile=send("10.0.2.2 tunnel2 --dst_id 2"))
        logs["h2"].wait_for("b'tunnel3'", meanwhile=send("10.0.3.3 tunnel3 --dst_id 2"))
        expect("tunnel" not in logs["h3"].text(), f"h3 got what was tunnelled to h2: {logs['h3'].tail()}")


def calc(place: Place) -> None:
    """The switch answers with the result."""
    with place.network() as session:
        session.type("h1 python3 calc.py")
        session.wait(until="> ")
        for sum_, result in (("1+1", 2), ("7-9", 2**32 - 2), ("12&10", 8), ("12|3", 15), ("5^3", 6)):
            session.type(sum_)
            said = session.wait(until="> ")
            expect(re.search(rf"^{result}$", said, re.MULTILINE), f"{sum_}: {said}")
        session.type("quit")
        session.wait()


@contextmanager
def congested(place: Place, session: Session) -> Generator[Log]:
    """h2 listens to h1's packets, one a second, while h11 fills the bottleneck for some of the time; h2's log."""
    log = place.listen(session, "h2")
    session.do("h22 iperf -s -u > /dev/null 2>&1 &")
    session.do("h1 ./send.py 10.0.2.2 'P4 is cool' 600 > /dev/null 2>&1 &")
    log.wait_for("P4 is cool")
    session.do("h11 iperf -c 10.0.2.22 -t 10 -u > /dev/null 2>&1 &")
    yield log


def ecn(place: Place) -> None:
    """The mark goes from 1 to 3 as the queue builds up."""
    with place.network() as session, congested(place, session) as log:
        marks = re.findall(r"tos\s+= (0x\w+)", log.wait_for("tos       = 0x3"))
        expect(marks[0] == "0x1", f"the marks are {marks}")


def mri(place: Place) -> None:
    """Each packet lists its switches; the queue of the first one is long while the bottleneck is full."""
    with place.network() as session, congested(place, session) as log:
        deadline = time.monotonic() + 40
        depths: list[int] = []
        while max(depths, default=0) < 2:
            expect(time.monotonic() < deadline, f"s1's queue depths are {depths}: {log.tail()}")
            time.sleep(0.5)
            traces = re.findall(
                r"count     = 2\n.*?swid      = (\d+)\n.*?swid      = (\d+)\n.*?qdepth    = (\d+)",
                log.text(),
                re.DOTALL,
            )
            expect(all(trace[:2] == ("2", "1") for trace in traces), f"the switches are {traces}")
            depths = [int(trace[2]) for trace in traces]


def qos(place: Place) -> None:
    """UDP and TCP have classes of their own."""
    with place.network() as session:
        log = place.listen(session, "h2")
        for protocol, tos in (("UDP", "0xb9"), ("TCP", "0xb1")):
            send = f"h1 ./send.py --p={protocol} --des=10.0.2.2 --m='P4 is cool' --dur=1"
            log.wait_for(f"tos       = {tos}", meanwhile=lambda send=send: session.do(send))


def load_balance(place: Place) -> None:
    """Messages to the balanced address reach h2 or h3, each of them one of the two."""
    with place.network() as session:
        logs = [place.listen(session, host) for host in ("h2", "h3")]

        def received(message: str) -> int:
            return sum(message in log.text() for log in logs)

        for number in range(MESSAGES):
            message = f"message{number}."
            for _ in range(10 if number == 0 else 1):  # the first one until they listen
                session.do(f"h1 ./send.py 10.0.0.1 {message}")
                deadline = time.monotonic() + 3
                while not received(message) and time.monotonic() < deadline:
                    time.sleep(0.1)
                if received(message):
                    break
            expect(received(message), f"{message} has reached neither h2 nor h3")
        others = [sum(f"message{number}." in log.text() for number in range(1, MESSAGES)) for log in logs]
        expect(sum(others) == MESSAGES - 1 and all(others), f"h2 and h3 got {others} of {MESSAGES - 1} messages")


def source_routing(place: Place) -> None:
    """The packet goes the way that its sender wrote into it: five hops, each of which takes one from the TTL."""
    with place.network() as session:
        log = place.listen(session, "h2")
        session.type("h1 ./send.py 10.0.2.2")
        session.wait(until='"q" to quit: ')

        def send() -> None:
            session.type("2 3 2 2 1")
            session.wait(until='"q" to quit: ')

        log.wait_for("got a packet", "ttl       = 59", meanwhile=send)
        session.type("q")
        session.wait()


def multicast(place: Place) -> None:
    """A packet to an unknown address (ARP's broadcast) reaches every other host, one to a known address its owner."""
    with place.network("sig-topo/topology.json") as session:
        reaches_everybody(session)
        neighbours = session.do("h1 ip neigh")
        for mac in ("08:00:00:00:02:22", "08:00:00:00:03:33", "08:00:00:00:04:44"):
            expect(mac in neighbours, f"h1's neighbours: {neighbours}")


def firewall(place: Place) -> None:
    """TCP works within and from within; nobody outside can begin."""
    with place.network("pod-topo/topology.json") as session:
        for client, server, passes in (("h1", "h2", True), ("h1", "h3", True), ("h3", "h1", False)):
            measured = rates(session, client, server)
            expect(
                len(measured) == 2 and all(bool(rate) == passes for rate in measured),
                f"iperf {client} {server}: {measured}",
            )


def link_monitor(place: Place) -> None:
    """Probes measure what iperf reports, at the two switches of its way (s1, s4) where they take the same port."""
    scale = {"K": 1e-3, "M": 1.0, "G": 1e3}
    with place.network("pod-topo/topology.json") as session:
        log = place.listen(session, "h1")
        session.do("h1 ./send.py > /dev/null 2>&1 &")
        log.wait_for("Switch 1 - Port", "Switch 2 - Port")
        measured = rates(session, "h1", "h4")
        expect(all(measured), f"iperf h1 h4: {measured}")
        number, unit = measured[0].split()
        reported = float(number) * scale[unit[0]]
        time.sleep(1.5)  # a probe behind its end
        seen: dict[tuple[int, int], float] = {}
        for switch, port, rate in re.findall(r"Switch (\d+) - Port (\d+): ([\d.e+-]+) Mbps", log.text()):
            place_ = (int(switch), int(port))
            seen[place_] = max(seen.get(place_, 0.0), float(rate))
        busy = sorted(place_ for place_, rate in seen.items() if rate > reported / 2)
        expect({switch for switch, _ in busy} >= {1, 4}, f"iperf says {reported:g} Mbps, the probes at most {seen}")


def p4runtime(place: Place) -> None:
    """The controller makes the tunnel between h1 and h2, and reads its counters."""
    with place.network("topology.json", "--no-controller") as session:
        expect("100% packet loss" in session.do("h1 ping -c 1 -W 1 h2"), "h1 reaches h2 without a controller")
        with place.controller() as log:
            log.wait_for("Reading tunnel counters")
            said = session.do("h1 ping -c 5 -i 0.2 -W 5 h2")
            expect("5 packets transmitted, 5 received" in said, said)
            for counter in ("s1 MyIngress.ingressTunnelCounter 100", "s2 MyIngress.egressTunnelCounter 100"):
                log.wait_for(f"{counter}: 5 packets")
            for counter in ("s2 MyIngress.ingressTunnelCounter 200", "s1 MyIngress.egressTunnelCounter 200"):
                log.wait_for(f"{counter}: 5 packets")


def flowcache(place: Place) -> None:
    """Unknown flows go to the controller and by packet-out to their destination; their entries age out."""
    with place.network("topology.json", "--no-controller") as session, place.controller() as log:
        log.wait_for("'SEND_TO_PORT_IN_OPERAND0': 1")
        deadline = time.monotonic() + 40
        while "3 packets transmitted, 3 received" not in (said := session.do("h1 ping -c 3 -W 5 h2")):
            expect(time.monotonic() < deadline, f"{said}\n{log.tail()}")
        log.wait_for("For switch s1 flow (SA=10.0.1.1, DA=10.0.2.2, proto=1) added table entry")
        log.wait_for("For switch s2 flow (SA=10.0.2.2, DA=10.0.1.1, proto=1) added table entry")
        for switch in ("s1", "s2"):
            log.wait_for(f"Deleted flow_cache entry on {switch}.")
        text = log.text()
        expect("Error" not in text and "Traceback" not in text, log.tail())


EXERCISES: dict[str, Check] = {
    check.__name__: check
    for check in (
        basic,
        basic_tunnel,
        calc,
        ecn,
        firewall,
        flowcache,
        link_monitor,
        load_balance,
        mri,
        multicast,
        p4runtime,
        qos,
        source_routing,
    )
}
