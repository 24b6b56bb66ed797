# SPDX-License-Identifier: Apache-2.0
"""The simulator (crate netsim) and the P4Runtime server's code (crate p4rt) without gRPC; see docs/architecture.md."""

def number_of(setting: str, form: str) -> float:
    """The number that stands for a function of time, given as JSON, of a setting of a link, such as `delay_us`: its least delay, its largest
    jitter, its mean rate or loss. Raises ValueError with what is wrong and what is allowed."""

def link_problem(settings: str) -> tuple[str, str] | None:
    """A key and what is wrong with it, alone or beside the others, in the settings of a link's direction, given as JSON by the keys of
    `LinkOptions`. None: the process that has the links takes them. Raises ValueError for what is no JSON object."""

class P4RuntimeError(RuntimeError):
    """A refused call: `code` is the gRPC status code's number, `details` a serialized google.rpc.Status."""

    code: int
    message: str
    details: bytes

class P4Runtime:
    """P4Runtime of one simulated switch; messages are serialized protobufs of p4.v1.

    The caller is the only client and always primary: device id, role and election id of requests are not looked at. Calls take
    no virtual time. Bytes that are no such message raise ValueError, refused calls P4RuntimeError with the server's words.
    """

    def set_pipeline(self, request: bytes) -> None:
        """A SetForwardingPipelineConfigRequest."""

    def write(self, request: bytes) -> None:
        """A WriteRequest; the updates that are good are applied, `details` has one p4.v1.Error for each."""

    def read(self, request: bytes) -> list[bytes]:
        """A ReadRequest; the ReadResponses to it."""

    def messages(self) -> list[bytes]:
        """The StreamMessageResponses since the last call: digest lists, packet-ins, idle timeouts, errors; `timestamp` is virtual time."""

    def send(self, request: bytes) -> None:
        """A StreamMessageRequest: packet-out, digest acknowledgement; what is wrong with it comes back in `messages`."""

class Simulation:
    """A network in virtual time. Not for use by two threads at once (RuntimeError).

    A panic in the simulator, which is a bug, is a RuntimeError too; the simulation is of no use then. While it waits for the machine
    of real hosts, signals are handled: what a handler raises (KeyboardInterrupt) ends the call.
    """

    def __init__(self, config: str) -> None:
        """`config` is the JSON of crate netsim (src/config). Raises ValueError with the path of what is wrong and what is allowed."""

    @property
    def now_ns(self) -> int: ...
    def run_until(self, t_ns: int, stop_on_messages: bool = False) -> int:
        """Let virtual time pass, the GIL released; returns the new now.

        With `stop_on_messages` it is earlier than `t_ns` as soon as a switch whose `p4rt` was asked for has messages (at once, when
        some were not taken). Without, what does not fit into a switch's buffers is lost, as on a real one.
        """

    def set_link(self, link: str, direction: str, changes: str) -> None:
        """`changes`: the JSON object of "set" in the configuration; `direction`: a_to_b, b_to_a or both. Raises ValueError."""

    def set_port(
        self,
        switch: str,
        port: int,
        rate_bps: int | None = None,
        queue_packets: int | None = None,
        *,
        queue_bytes: int | None = None,
        queue_cells: int | None = None,
        port_packets: int | None = None,
        port_bytes: int | None = None,
        port_cells: int | None = None,
        queues: int | None = None,
        scheduler: str | None = None,
        link_layer: str | None = None,
    ) -> None:
        """None: stays as it is; keys and values as in docs/switch.md. Packets that wait stay. Raises ValueError."""

    def port_rates(self, switch: str, port: int, until_ns: int) -> list[tuple[int, float]] | None:
        """(t_ns, bit/s) from which on a switch port has a rate that is a function of time; a delivery trace's mean over each 100 ms. None:
        the rate is a number. Raises ValueError."""

    def spike(self, link: str, direction: str, duration_ns: int, blocks: str = "delivery") -> None:
        """Nothing is delivered for so long, then all that is due at once; `blocks` line: nothing starts on the link's own line, and
        frames wait in its queue. Raises ValueError."""

    def spike_port(self, switch: str, port: int, duration_ns: int) -> None:
        """Nothing starts on a switch port's line for so long; packets wait in its queues. Raises ValueError."""

    def outage(self, link: str, direction: str, duration_ns: int) -> None:
        """What enters the link for so long is lost. Raises ValueError."""

    def flows(self) -> str:
        """Cumulative counts of each flow; as all reports a JSON list of objects (crate netsim)."""

    def ports(self) -> str: ...
    def links(self) -> str: ...
    def switches(self) -> str: ...
    def hosts(self) -> str: ...
    def captures(self) -> str:
        """What the captures have come to; their files have all of that."""
    def transfers(self) -> str:
        """Finished transfers, in the order in which they finished."""
    def unfinished_transfers(self) -> str:
        """Files (`bytes` applications) that are under way: `end_ns` is now, `bytes` are those acknowledged."""

    def series(self) -> dict[str, bytes]:
        """Columns of samples by name, little-endian u64; empty when the configuration has no "sample"."""

    def p4rt(self, switch: str) -> P4Runtime:
        """P4Runtime of a switch, the same for each call. Raises ValueError with the switches that there are."""
