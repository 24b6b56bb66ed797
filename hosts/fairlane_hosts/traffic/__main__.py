# SPDX-License-Identifier: Apache-2.0
"""`fairlane-traffic`: the command line of the two ends.

argparse and not typer: an experiment starts this in many namespaces at once, and it must be up in well under 0.1 s.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ..errors import HostsError
from .options import ACK_POLICIES, DISTRIBUTIONS, SendOptions, SinkOptions, parse_endpoint
from .records import Record

T = TypeVar("T")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "fairlane-traffic", description="TCP traffic with the variant and TCP_INFO on record"
    )
    ends = parser.add_subparsers(dest="end", required=True)

    send = ends.add_parser("send", help="send greedy flows or N bytes, sample TCP_INFO")
    _tcp_source(send)
    send.add_argument("--bytes", type=int, help="bytes of each flow (default: greedy)")
    send.add_argument("--stagger-ms", type=float, default=0.0, help="flow i starts i times this later")

    transfer = ends.add_parser("transfer", help="N bytes a flow, on a connection that is opened at the start")
    _tcp_source(transfer)
    transfer.add_argument("--bytes", type=int, required=True)
    transfer.add_argument("--times", type=int, default=1, help="files of each flow, each on its own connection")
    transfer.add_argument("--interval-s", type=float, default=0.0, help="from asking for one to asking for the next")
    transfer.add_argument("--nodelay", action="store_true", help="set TCP_NODELAY")

    web = ends.add_parser("web", help="transfers at random, each on its own connection")
    _tcp_source(web)
    web.add_argument("--arrivals-per-s", type=float, required=True, help="of each flow; Poisson")
    web.add_argument("--mean-bytes", type=int, required=True)
    web.add_argument("--max-bytes", type=int, default=0, help="longest transfer (default: no limit)")
    _chance(web)

    onoff = ends.add_parser("onoff", help="greedy while on, silent while off")
    _tcp_source(onoff)
    length: dict[str, Any] = {"type": float, "required": True, "metavar": "SECONDS"}
    onoff.add_argument("--on-s", dest="on_mean_s", **length, help="mean length of on")
    onoff.add_argument("--off-s", dest="off_mean_s", **length, help="mean length of off")
    _chance(onoff)

    interactive = ends.add_parser("interactive", help="a message of N bytes at a fixed interval")
    _tcp_source(interactive)
    interactive.add_argument("--bytes", dest="message_bytes", type=int, required=True, help="of a message")
    interactive.add_argument("--interval-s", type=float, required=True, metavar="SECONDS")

    video = ends.add_parser("video", help="a video, segment by segment, at the rates that BBA-0 asks for")
    _tcp_source(video)
    ladder = "the ladder, rising, with commas"
    video.add_argument("--bitrates-bps", type=lambda text: tuple(map(int, _split(text))), required=True, help=ladder)
    for name, meaning in (
        ("segment", "play time of a segment"),
        ("buffer", "play time that the player holds at most"),
        ("reservoir", "with no more than this the lowest rate"),
        ("cushion", "with this more the highest"),
    ):
        video.add_argument(f"--{name}-s", type=float, required=True, metavar="SECONDS", help=meaning)

    udp = ends.add_parser("udp", help="datagrams at a constant rate")
    _source(udp)
    udp.add_argument("--rate-bps", type=int, required=True, help="of payload, each flow")
    udp.add_argument("--payload", dest="payload_bytes", type=int, required=True, metavar="BYTES")

    sink = ends.add_parser("sink", help="receive, discard and count")
    sink.add_argument("--port", type=int, required=True, help="0: any free one, see --ready-file")
    sink.add_argument("--bind", default="0.0.0.0", metavar="ADDRESS")
    sink.add_argument("--seconds", type=float)
    sink.add_argument("--connections", type=int, help="end after this many connections have ended")
    sink.add_argument("--sample-ms", type=int, default=100)
    sink.add_argument("--out", default="-", help="file of JSON lines (default: standard output)")
    sink.add_argument("--ack", choices=ACK_POLICIES, default="kernel", help="when to acknowledge (default: kernel)")
    sink.add_argument("--mss", type=int, help="the MSS to advertise")
    sink.add_argument("--window", type=int, metavar="BYTES", help="most bytes that it offers to take")
    sink.add_argument("--read-after-ms", type=float, default=0.0, help="let data wait so long (default: read at once)")
    sink.add_argument("--udp", action="store_true", help="count datagrams")
    sink.add_argument("--ready-file", help="written with the port number when listening")
    return parser


def _source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", required=True, metavar="ADDRESS:PORT")
    parser.add_argument("--seconds", type=float, help="end after this time from the start")
    parser.add_argument("--flows", type=int, default=1)
    parser.add_argument("--sample-ms", type=int, default=100)
    parser.add_argument("--out", default="-", help="file of JSON lines (default: standard output)")
    start = "CLOCK_MONOTONIC instant of the start"
    parser.add_argument("--start-at", dest="start_at_ns", type=int, metavar="MONOTONIC_NS", help=start)


def _tcp_source(parser: argparse.ArgumentParser) -> None:
    _source(parser)
    several = "variant or kernel name; several with commas: each flow's in turn"
    parser.add_argument("--cc", type=_split, default=(), help=several)
    parser.add_argument("--mss", type=int, help="payload bytes of a packet (TCP_MAXSEG)")
    parser.add_argument("--bind", metavar="ADDRESS")
    timeout: dict[str, Any] = {"type": float, "default": 15.0, "metavar": "SECONDS"}
    parser.add_argument("--connect-timeout", dest="connect_timeout_s", **timeout)
    allow = "allow a variant on a host set for another"
    parser.add_argument("--no-sysctl-check", dest="check_sysctls", action="store_false", help=allow)


def _chance(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--distribution", default="exponential", help=f"one of {', '.join(DISTRIBUTIONS)}")
    parser.add_argument("--shape", type=float, default=1.2, help="of pareto, above 1")
    parser.add_argument("--seed", type=int, default=1)
    names = "the flows' names, from which their chance follows too"
    parser.add_argument("--names", type=_split, default=("flow",), help=names)


def _split(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name)


def _make(kind: Callable[..., T], arguments: argparse.Namespace, **more: Any) -> T:
    """A dataclass from the arguments that have its fields' names."""
    found = {name: value for name, value in vars(arguments).items() if name in inspect.signature(kind).parameters}
    return kind(**found | more)


def _run_sink(arguments: argparse.Namespace) -> None:
    options = _make(SinkOptions, arguments)
    if options.udp:
        from .udp import udp_sink

        udp_sink(options)
    else:
        from .sink import sink

        sink(options)


def _run_source(arguments: argparse.Namespace) -> Record:
    address, port = parse_endpoint(arguments.to)
    options = _make(SendOptions, arguments, address=address, port=port)
    match arguments.end:
        case "send":
            from .send import send

            return send(options)
        case "transfer":
            from .transfers import FileOptions, transfers

            return transfers(options, None, _make(FileOptions, arguments))
        case "web":
            from .transfers import WebOptions, transfers

            return transfers(options, _make(WebOptions, arguments))
        case "onoff":
            from .onoff import UNSENT_BYTES, OnOffOptions, onoff

            options = replace(options, unsent_bytes=UNSENT_BYTES)
            return onoff(_make(OnOffOptions, arguments, send=options))
        case "interactive":
            from .interactive import InteractiveOptions, interactive

            return interactive(_make(InteractiveOptions, arguments, send=options))
        case "video":
            from .video import VideoOptions, video

            return video(_make(VideoOptions, arguments, send=options))
        case _:
            from .udp import UdpOptions, udp

            seconds = arguments.seconds or 0.0
            return udp(_make(UdpOptions, arguments, address=address, port=port, seconds=seconds))


def _run(arguments: argparse.Namespace) -> bool:
    """Run one end; true when nothing broke."""
    if arguments.end == "sink":
        _run_sink(arguments)
        return True
    summary = _run_source(arguments)
    return not summary.get("error") and not any(flow["error"] for flow in summary["flows"])


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0, 1 when a flow broke in mid-run, 2 on bad options or when it could not start."""
    arguments = _parser().parse_args(argv)
    try:
        return 0 if _run(arguments) else 1
    except HostsError as error:
        print(f"fairlane-traffic {arguments.end}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
