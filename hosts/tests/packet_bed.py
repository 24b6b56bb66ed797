# SPDX-License-Identifier: Apache-2.0
"""The packet bed: one sender, one receiver and a forwarder between them that does what a script says and keeps every segment.

The network is the self-test's (fairlane_hosts.check.bed).

    with PacketBed(rate_bps=10_000_000, delay_s=0.02, queue_packets=100) as bed:
        bed.use("tahoe")
        trace = bed.transfer(600_000, mss=1000, script=Script(drop=[60, 62, 64]))
        trace.retransmissions, trace.dupacks(59_000), trace.after(trace.sent(60, 1)), trace.dump()

Real kernels on both ends, offloads off; the forwarder is packet_bed_forwarder.py, the script packet_bed_script.py, the trace
packet_bed_trace.py. Needs root. The namespaces are this process's, and end with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path as FilePath
from types import TracebackType

from fairlane_hosts import apply, build, loader
from fairlane_hosts.check.bed import RECEIVER_ADDRESS, SENDER_ADDRESS, Network
from fairlane_hosts.host import Attachment, Host, attach, host_of
from fairlane_hosts.variants import find_variant
from hosts_bed import HOSTS_ROOT, finish, wait_until
from packet_bed_forwarder import Path, ScriptedForwarder
from packet_bed_script import Script, Span, Which
from packet_bed_trace import DATA, Options, Segment, Trace
from traffic_records import read_records, read_summary

__all__ = ["RECEIVER_ADDRESS", "SENDER_ADDRESS", "Options", "PacketBed", "Script", "Segment", "Span", "Trace", "Which"]

PORT = 5001


class PacketBed(contextlib.AbstractContextManager["PacketBed"]):
    """Builds the namespaces on entry. `delay_s` is one way; the way back has no rate limit unless `back_rate_bps` says one."""

    def __init__(
        self,
        rate_bps: int | None = 10_000_000,
        delay_s: float = 0.02,
        queue_packets: int = 100,
        *,
        back_rate_bps: int | None = None,
        back_delay_s: float | None = None,
        mtu: int = 1500,
    ) -> None:
        self.sender, self.receiver = "sender", "receiver"
        self.forward = Path(rate_bps, round(delay_s * 1e9), queue_packets)
        back_s = delay_s if back_delay_s is None else back_delay_s
        self.back = Path(back_rate_bps, round(back_s * 1e9), 1000)
        self.mtu = mtu
        self._stack = contextlib.ExitStack()
        self._network: Network | None = None
        self._forwarder: ScriptedForwarder | None = None
        self._lease: loader.Lease | None = None
        self._attachments: dict[str, list[Attachment]] = {}
        self._sink: tuple[list[str], subprocess.Popen[str]] | None = None

    # --- building and taking down ---------------------------------------------------------------------------------

    def __enter__(self) -> PacketBed:
        try:
            self._network = self._stack.enter_context(Network(self.mtu))
            self._forwarder = ScriptedForwarder(*self._network.sides(), self.forward, self.back)
            self._stack.callback(self._forwarder.close)
            self._stack.callback(self._end_sink)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    # --- settings -----------------------------------------------------------------------------------------------------

    def netns(self, name: str) -> FilePath:
        """The namespace's path, as `fairlane_hosts.apply` and `fairlane_hosts.host.Host` take it."""
        return self.network.netns[name]

    @property
    def network(self) -> Network:
        """Of a bed that was entered."""
        assert self._network is not None
        return self._network

    def use(self, name: str) -> None:
        """Make a variant the sender's default, with its host programs (on the sender; the receiver's own: `attach`).

        What it needs is built, loaded and held as long as the bed is there; programs of the variant before it go.
        """
        variant = find_variant(name)
        if not variant.builtin:
            self.lease()
        self.detach(self.sender)
        if variant.programs:
            self.attach(self.sender, *variant.programs)
        apply.use_on_host(variant, self.netns(self.sender))

    def lease(self) -> loader.Lease:
        """The lease that holds the congestion controls, made when first asked for."""
        if self._lease is None:
            build.build_all()
            self._lease = self._stack.enter_context(loader.acquire())
        return self._lease

    def host(self, netns: str) -> Host:
        """`bed.sender` or `bed.receiver` as `fairlane_hosts.host` takes it."""
        return host_of(f"{self.network.name}/{netns}", self.netns(netns))

    def attach(self, netns: str, *programs: str) -> Attachment:
        """Host programs on one end, for transfers from now on; `.counters()` reads them."""
        self._forget_sink(netns)
        attachment = self._stack.enter_context(attach(self.host(netns), programs, self.lease()))
        self._attachments.setdefault(netns, []).append(attachment)
        return attachment

    def detach(self, netns: str) -> None:
        """Take the programs of one end away."""
        self._forget_sink(netns)
        for attachment in self._attachments.pop(netns, []):
            attachment.close()

    def counters(self, netns: str) -> dict[str, int]:
        """The counters of one end's programs."""
        return {name: value for one in self._attachments.get(netns, []) for name, value in one.counters().items()}

    def sysctl(self, netns: str, name: str, value: int | str) -> None:
        """`net.ipv4.NAME` of `bed.sender` or `bed.receiver`, beside what the variant sets."""
        self._forget_sink(netns)
        apply.run_in_namespace(self.netns(netns), lambda: apply.write_sysctls({name: value}))

    def _forget_sink(self, netns: str) -> None:
        if netns == self.receiver:
            self._end_sink()

    def route(self, *words: str) -> None:
        """Attributes of the sender's route to the receiver, in ip-route(8)'s words."""
        self.network.run(self.sender, f"ip route replace {RECEIVER_ADDRESS}/32 dev eth0 {' '.join(words)}")

    def set_path(
        self, rate_bps: int | None = None, delay_s: float | None = None, queue_packets: int | None = None
    ) -> None:
        """Change the way to the receiver from now on, while a transfer runs too."""
        old = self.forward
        self.forward = Path(
            old.rate_bps if rate_bps is None else rate_bps,
            old.delay_ns if delay_s is None else round(delay_s * 1e9),
            old.queue_packets if queue_packets is None else queue_packets,
        )
        assert self._forwarder is not None
        self._forwarder.set_path(DATA, self.forward)

    @property
    def rtt_s(self) -> float:
        """Without queues and transmission times."""
        return (self.forward.delay_ns + self.back.delay_ns) / 1e9

    # --- transfers ----------------------------------------------------------------------------------------------------

    def start(self, netns: str, *arguments: str) -> subprocess.Popen[str]:
        """Start the traffic tool in a namespace (and its cgroup)."""
        command = ["nsenter", f"--net={self.netns(netns)}", sys.executable, "-m", "fairlane_hosts.traffic", *arguments]
        if self._attachments.get(netns):
            command = self.host(netns).entering(command)
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(HOSTS_ROOT)},
        )

    def transfer(
        self,
        bytes: int | None = None,
        *,
        seconds: float | None = None,
        mss: int = 1000,
        script: Script | None = None,
        ack: str = "every",
        window_bytes: int | None = None,
        cc: str = "",
        sample_ms: int = 50,
        timeout_s: float = 60,
        more: Sequence[str] = (),
    ) -> Trace:
        """Send `bytes`, or greedily for `seconds`, over one connection, and return everything that was seen.

        `ack` and `window_bytes` are the receiver's (`fairlane-traffic sink`); `cc` is for one socket, instead of the
        host's default. A transfer that is not complete after `timeout_s` is ended: `complete` is false then.
        """
        assert (bytes is None) != (seconds is None), "say either bytes or seconds"
        assert self._forwarder is not None
        self._forwarder.record(script or Script())
        self._need_sink(ack, window_bytes, mss)
        with tempfile.TemporaryDirectory(prefix="packet_bed") as folder:
            out = FilePath(folder) / "send"
            much = ["--bytes", str(bytes)] if bytes is not None else ["--seconds", str(seconds)]
            words = ["--to", f"{RECEIVER_ADDRESS}:{PORT}", *much, "--mss", str(mss), "--sample-ms", str(sample_ms)]
            words += ["--cc", cc, "--no-sysctl-check"] if cc else []
            sender = self.start(self.sender, "send", *words, "--out", str(out), *more)
            try:
                said = self._wait(sender, timeout_s)
                assert out.exists(), f"the sender did not start:\n{said}"
            finally:
                if sender.poll() is None:
                    sender.kill()
                    sender.communicate(timeout=5)
            (flow,) = read_summary(out)["flows"]
            samples = [record for record in read_records(out) if "cwnd" in record]
        return Trace(
            segments=self._forwarder.recorded(),
            complete=bool(flow["complete"]),
            elapsed_s=float(flow["elapsed_s"]),
            cc=str(flow["cc"]),
            flow=flow,
            samples=samples,
            late_s=self._forwarder.late_s,
        )

    def _need_sink(self, ack: str, window_bytes: int | None, mss: int) -> None:
        """Have a sink of this kind; it serves one transfer after the other."""
        words = ["--ack", ack]
        if window_bytes is not None:  # the SYN-ACK offers whole segments of the receiver's own MSS
            words += ["--window", str(window_bytes), "--mss", str(mss)]
        if self._sink is not None and self._sink[0] == words and self._sink[1].poll() is None:
            return
        self._end_sink()
        with tempfile.TemporaryDirectory(prefix="packet_bed") as folder:
            ready = FilePath(folder) / "ready"
            always = ["--port", str(PORT), "--ready-file", str(ready), "--out", os.devnull]
            process = self.start(self.receiver, "sink", *always, *words)
            self._sink = (words, process)
            wait_until(lambda: ready.exists() or process.poll() is not None, 15, "the sink to listen")
            assert process.poll() is None, process.stderr and process.stderr.read()

    def _end_sink(self) -> None:
        """Before the receiver's settings change (a listener keeps what it was made with), and at the end."""
        if self._sink is not None:
            process, self._sink = self._sink[1], None
            process.send_signal(signal.SIGTERM)
            try:
                finish(process, 15)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.communicate(timeout=5)

    def _wait(self, sender: subprocess.Popen[str], timeout_s: float) -> str:
        """What it said on standard error."""
        try:
            _, said = sender.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            sender.send_signal(signal.SIGTERM)
            _, said = sender.communicate(timeout=15)
        assert sender.returncode in (0, 1), said
        return said

    def segments(self) -> list[Segment]:
        """What the forwarder has seen so far: for tests that start transfers themselves (see `record`)."""
        assert self._forwarder is not None
        return self._forwarder.recorded()

    def record(self, script: Script | None = None) -> None:
        """Start a new trace and script: for tests that start transfers themselves."""
        assert self._forwarder is not None
        self._forwarder.record(script or Script())
