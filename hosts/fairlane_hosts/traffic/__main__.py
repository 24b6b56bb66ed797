# SPDX-License-Identifier: Apache-2.0
"""`fairlane-traffic`: the command line of the two ends.

argparse and not typer: an experiment starts this in many namespaces at once, and it must be up in well under 0.1 s.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from ..errors import HostsError
from .options import ACK_POLICIES, SendOptions, SinkOptions, parse_endpoint


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "fairlane-traffic", description="TCP traffic with the variant and TCP_INFO on record"
    )
    ends = parser.add_subparsers(dest="end", required=True)

    send = ends.add_parser("send", help="send greedy flows or N bytes, sample TCP_INFO")
    send.add_argument("--to", required=True, metavar="ADDRESS:PORT")
    send.add_argument("--bytes", type=int, help="bytes of each flow (default: greedy)")
    send.add_argument("--seconds", type=float, help="end after this time from the start")
    send.add_argument("--flows", type=int, default=1)
    send.add_argument("--cc", default="", help="variant or kernel name; several with commas: one for each flow in turn")
    send.add_argument("--mss", type=int, help="payload bytes of a packet (TCP_MAXSEG)")
    send.add_argument("--sample-ms", type=int, default=100)
    send.add_argument("--out", default="-", help="file of JSON lines (default: standard output)")
    send.add_argument("--start-at", type=int, metavar="MONOTONIC_NS", help="CLOCK_MONOTONIC instant at which to start")
    send.add_argument("--stagger-ms", type=float, default=0.0, help="flow i starts i times this later")
    send.add_argument("--bind", metavar="ADDRESS")
    send.add_argument("--connect-timeout", type=float, default=15.0, metavar="SECONDS")
    send.add_argument("--no-sysctl-check", action="store_true", help="allow a variant on a host set for another")

    sink = ends.add_parser("sink", help="receive, discard and count")
    sink.add_argument("--port", type=int, required=True, help="0: any free one, see --ready-file")
    sink.add_argument("--bind", default="0.0.0.0", metavar="ADDRESS")
    sink.add_argument("--seconds", type=float)
    sink.add_argument("--connections", type=int, help="end after this many connections have ended")
    sink.add_argument("--sample-ms", type=int, default=100)
    sink.add_argument("--out", default="-", help="file of JSON lines (default: standard output)")
    sink.add_argument("--ack", choices=ACK_POLICIES, default="kernel", help="when to acknowledge (default: kernel)")
    sink.add_argument("--mss", type=int, help="the MSS to advertise")
    sink.add_argument("--ready-file", help="written with the port number when listening")
    return parser


def _run(arguments: argparse.Namespace) -> bool:
    """Run one end; true when nothing broke."""
    if arguments.end == "sink":
        from .sink import sink

        sink(
            SinkOptions(
                port=arguments.port,
                bind=arguments.bind,
                seconds=arguments.seconds,
                connections=arguments.connections,
                sample_ms=arguments.sample_ms,
                out=arguments.out,
                ack=arguments.ack,
                mss=arguments.mss,
                ready_file=arguments.ready_file,
            )
        )
        return True
    from .send import send

    address, port = parse_endpoint(arguments.to)
    summary = send(
        SendOptions(
            address=address,
            port=port,
            bytes=arguments.bytes,
            seconds=arguments.seconds,
            flows=arguments.flows,
            cc=tuple(name for name in arguments.cc.split(",") if name),
            mss=arguments.mss,
            sample_ms=arguments.sample_ms,
            out=arguments.out,
            start_at_ns=arguments.start_at,
            stagger_ms=arguments.stagger_ms,
            bind=arguments.bind,
            check_sysctls=not arguments.no_sysctl_check,
            connect_timeout_s=arguments.connect_timeout,
        )
    )
    return not any(flow["error"] for flow in summary["flows"])


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
