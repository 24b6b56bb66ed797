# SPDX-License-Identifier: Apache-2.0
"""A P4Runtime client with time limits over finsy: connects, becomes primary or stays a reader, reads and writes.

The same on every target: it needs table entries, counters and digests, and no register (it shows what one says where it can).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from finsy import (
    GRPCStatusCode,
    P4ClientError,
    P4CounterData,
    P4DigestEntry,
    P4MeterConfig,
    P4Schema,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
    SwitchEvent,
    SwitchOptions,
)
from google.protobuf.empty_pb2 import Empty

from fairlane_controller.errors import ErrorCode, FairlaneError, bad_file, bad_input, unknown_name
from fairlane_controller.logs import warn
from fairlane_controller.state.run_state import SwitchState
from fairlane_controller.switch.bounded import BoundedSwitch
from fairlane_controller.switch.faults import Refusal, no_pipeline, refusals, refused, translate
from fairlane_controller.switch.security import OBSERVER_ROLE, tls_of_environment
from fairlane_controller.switch.security import Endpoint as Endpoint
from fairlane_controller.switch.shared import ACTION_FORWARD, TABLE_ROUTE

CONNECT_TIMEOUT_S = 2.0
"Until somebody listens."
HANDSHAKE_TIMEOUT_S = 10.0
"Until the handshake is over and the program is loaded: a busy machine takes its time."
RETRY_INTERVAL_S = 0.2
DIGEST_LIST_MAX, DIGEST_LIST_S = 64, 0.02
"""Values of a digest's list, and how long they wait for it, where nobody says otherwise."""
DIGEST_ACK_NS = 10**9
"A list that is not acknowledged for so long is sent again."
DIGEST_QUEUE_LISTS = 128
"Lists of a digest that may wait for their listener; what comes then is counted in `digests_lost`."
CELLS_A_READ = 4096
"Cells of counters and registers that one request asks for."
READER_IDS = 2**31
"""Readers bid below this."""
FIRST_WRITER_ID = 2**32
"""Writers bid this, or one more than the primary that is there: so the newest writer wins, whatever any clock says."""
MAX_WRITER_ID = 2**48
"""Above it are controllers that want to stay the primary: they are not outbid."""
LISTENER_ID = 1
"""Of a client that is the primary where nobody else is, and takes the role from nobody."""
_OUTBIDS = 5
"Attempts to outbid others that do the same."

_E = TypeVar("_E")

logging.getLogger("finsy").addHandler(logging.NullHandler())
logging.getLogger("finsy").propagate = False

_CHECKOUT_S = 2.0
"""Files that a checkout or a copy writes differ by less."""


@dataclass(frozen=True)
class PipelineFiles:
    """The compiled program that a switch should run."""

    json: Path
    p4info: Path

    def check(self) -> None:
        """BAD_FILE unless both are there."""
        for path in (self.json, self.p4info):
            if not path.is_file():
                raise bad_file(f"the compiled program {path} does not exist")

    def warn_if_outdated(self) -> None:
        """Warn where the P4 source beside them was changed after they were made."""
        source = self.json.with_suffix(".p4")
        both = source.is_file() and self.json.is_file()
        if both and source.stat().st_mtime - self.json.stat().st_mtime > _CHECKOUT_S:
            made = f"{self.json.name} was made, which runs: `fairlane p4 compile {source.parent}/`"
            warn(f"{source} was changed after {made}")

    def cookie(self) -> int:
        """What says whether a switch runs this program. Raises BAD_FILE."""
        with self.parsing():
            return P4Schema(self.p4info, self.json).p4cookie

    @contextmanager
    def parsing(self) -> Generator[None]:
        """Inside, finsy parses the files: BAD_FILE when they are not there, or when it cannot."""
        self.check()
        try:
            yield
        except Exception as ex:  # what the parsers raise
            raise bad_file(f"{self.p4info}: not a P4Info text file: {ex}") from None


def backup_election_id() -> int:
    """Above every reader's and below every writer's."""
    return READER_IDS + secrets.randbelow(READER_IDS)


class SwitchClient:
    """`async with SwitchClient(endpoint) as client:`; raises FairlaneError only."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        write: bool = False,
        election_id: int | None = None,
        pipeline: PipelineFiles | None = None,
        timeout_s: float | None = None,
        require_primary: bool = True,
    ) -> None:
        """Connect to nothing yet.

        Args:
            endpoint: the switch.
            write: be its primary controller.
            election_id: what is bid; None: above the primary's for a writer, below every writer's for a reader.
            pipeline: the program that is loaded when the switch has another one (by its cookie); the same program goes on with all
                its entries. None: the switch's own P4Info is used.
            timeout_s: until the switch has answered.
            require_primary: raise NOT_PRIMARY where another client is the primary, instead of waiting as a backup.
        """
        self.drops_entries = False
        "A dry run's: table entries and registers are checked and not written; digests and packets are its business."
        self.endpoint = endpoint
        self._write = write
        self._pipeline = pipeline
        self._connect_timeout_s = timeout_s or CONNECT_TIMEOUT_S
        self._handshake_timeout_s = timeout_s or HANDSHAKE_TIMEOUT_S
        self._require_primary = require_primary and write
        self._outbids = write and election_id is None
        self._election_id = election_id or (FIRST_WRITER_ID if write else 1 + secrets.randbelow(READER_IDS - 1))
        self._switch: BoundedSwitch | None = None
        self._stream_lock = asyncio.Lock()  # grpc.aio refuses two writes to one stream at a time
        self.disconnected = asyncio.Event()
        "Set when the connection is lost."
        self.down = asyncio.Event()
        "Set when the connection, or the role of the primary, is lost."
        self.promoted = asyncio.Event()
        "Set when this client became the primary after it connected as a backup."

    # ---- life ------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> SwitchClient:
        loop = asyncio.get_running_loop()
        start = loop.time()
        while True:
            try:
                await self._connect(max(0.05, start + self._handshake_timeout_s - loop.time()))
                break
            except FairlaneError as ex:
                left = start + self._connect_timeout_s - loop.time()
                if ex.code is not ErrorCode.SWITCH_UNREACHABLE or left <= RETRY_INTERVAL_S:
                    raise
                await asyncio.sleep(RETRY_INTERVAL_S)
        if self._require_primary and not self.is_primary:
            primary_id, own_id = self.switch.primary_id, self.switch.election_id
            await self.close()
            raise ErrorCode.NOT_PRIMARY(
                f"{self.endpoint}: another client is primary, with the election id {primary_id}; {own_id} is not above it, so "
                "nothing can be written: stop that client, or connect it with a lower election id",
            )
        return self

    async def __aexit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection; what the switch has stays."""
        switch, self._switch = self._switch, None
        if switch is not None:
            await switch.__aexit__(None, None, None)

    async def _connect(self, timeout_s: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_s
        await self.endpoint.check(min(timeout_s, self._connect_timeout_s), timeout_s)
        await self._open(timeout_s)
        for _ in range(_OUTBIDS if self._outbids else 0):
            primary_id = self.switch.primary_id
            if self.is_primary or not self._election_id <= primary_id < MAX_WRITER_ID:
                break
            await self.close()
            self._election_id = primary_id + 1
            await self._open(max(0.05, deadline - loop.time()))

    async def _open(self, timeout_s: float) -> None:
        role = "" if self._write else OBSERVER_ROLE
        options = SwitchOptions(
            role_name=role,
            role_config=Empty() if role else None,  # finsy sends none without; it restricts nothing
            channel_credentials=self.endpoint.credentials,
            p4info=self._pipeline.p4info if self._pipeline else None,
            p4blob=self._pipeline.json if self._pipeline else None,
            device_id=self.endpoint.device_id,
            initial_election_id=self._election_id,
        )
        with self._pipeline.parsing() if self._pipeline else nullcontext():
            switch = BoundedSwitch(self.endpoint.name, self.endpoint.grpc, options)
        try:
            await asyncio.wait_for(switch.__aenter__(), timeout_s)
        except P4ClientError as ex:
            raise translate(ex, str(self.endpoint)) from None
        except asyncio.TimeoutError:
            raise self.endpoint.unreachable(f"does not answer within {self._handshake_timeout_s:g} s") from None
        except (RuntimeError, ValueError, AssertionError) as ex:  # finsy's words for a broken handshake
            raise self.endpoint.unreachable(f"has broken the handshake: {ex}") from None
        self._switch = switch
        for event, flags in (
            (SwitchEvent.CHANNEL_DOWN, (self.disconnected, self.down)),
            (SwitchEvent.BECOME_BACKUP, (self.down,)),
            (SwitchEvent.BECOME_PRIMARY, (self.promoted,)),
        ):
            for flag in flags:
                flag.clear()
                switch.ee.add_listener(event, partial(_set, flag))  # pyright: ignore[reportUnknownMemberType]

    # ---- what it is --------------------------------------------------------------------------------------------

    @property
    def switch(self) -> BoundedSwitch:
        """finsy's object, for what this class does not offer."""
        if self._switch is None:
            raise self.endpoint.unreachable("is not connected")
        return self._switch

    @contextmanager
    def _translated(self) -> Generator[None]:
        """Inside, errors of finsy are ours."""
        try:
            yield
        except P4ClientError as ex:
            raise translate(ex, str(self.endpoint)) from None
        except (ValueError, KeyError) as ex:
            raise bad_input(f"{self.endpoint}: {ex}") from None

    @property
    def election_id(self) -> int:
        """What it bids; the primary's when it is the primary."""
        return self.switch.primary_id if self.is_primary else self._election_id

    @property
    def is_primary(self) -> bool:
        """Whether this client may write."""
        return self._write and self.switch.is_primary

    @property
    def writes(self) -> bool:
        """Whether it was made to write."""
        return self._write

    @property
    def has_pipeline(self) -> bool:
        """Whether the switch runs a program."""
        return self.switch.p4info.exists

    @property
    def program(self) -> str:
        """The name in the P4Info, or what stands for it."""
        return self.switch.p4info.pkg_info.name or "unnamed" if self.has_pipeline else "-"

    async def ping(self, timeout_s: float) -> None:
        """One small request; raises SWITCH_UNREACHABLE when it is not answered in time."""
        with self._translated():
            await self.switch.ping(timeout_s)

    async def cookie(self) -> int | None:
        """The cookie of the program that the switch runs; None without a program, or where it has none."""
        try:
            with self._translated():
                return await self.switch.cookie()
        except FairlaneError as ex:
            if ex.code is ErrorCode.NO_PIPELINE:
                return None
            raise

    def digests_lost(self, name: str) -> int:
        """Values of a digest that came on this connection while the listener had no room for more."""
        return self._switch.digests_lost[name] if isinstance(self._switch, BoundedSwitch) else 0

    def table_names(self) -> list[str]:
        """Short names of all tables, sorted; NO_PIPELINE without a program."""
        self.need_pipeline()
        return sorted(table.alias for table in self.switch.p4info.tables)

    def check_table(self, name: str) -> str:
        """The short name of the table called `name` (short or full); UNKNOWN_NAME with the nearest one otherwise."""
        self.need_pipeline()
        for table in self.switch.p4info.tables:
            if name in (table.alias, table.name):
                return table.alias
        raise unknown_name("table", name, self.table_names())

    def has_meter(self, table: str) -> bool:
        """Whether a table's entries have direct meters."""
        return self.switch.p4info.tables[self.check_table(table)].direct_meter is not None

    def need_pipeline(self) -> None:
        """NO_PIPELINE without a program."""
        if not self.has_pipeline:
            raise no_pipeline(str(self.endpoint))

    # ---- reads -------------------------------------------------------------------------------------------------

    async def read_table(
        self, name: str, *, counters: bool = False, idle: bool = False, meters: bool = False
    ) -> list[P4TableEntry]:
        """All entries of a table, with direct counters, the time since the last hit, or direct meters where asked."""
        pattern = P4TableEntry(
            self.check_table(name),
            counter_data=P4CounterData() if counters else None,
            time_since_last_hit=0 if idle else None,
            meter_config=P4MeterConfig(cir=0, cburst=0, pir=0, pburst=0) if meters else None,
        )
        return await self.read_entities([pattern])

    async def read_tables(self, names: Sequence[str]) -> list[P4TableEntry]:
        """All entries of several tables, in one request."""
        return await self.read_entities([P4TableEntry(self.check_table(name)) for name in names])

    async def read_all(self, entities: Sequence[Any], on_progress: Callable[[], None] = lambda: None) -> list[Any]:
        """All that is found, with at most CELLS_A_READ entities in a request, as `BoundedSwitch.read_all`; raises finsy's P4ClientError, for callers who need its code."""
        starts = range(0, len(entities), CELLS_A_READ)
        parts = [await self.switch.read_all(entities[at : at + CELLS_A_READ], on_progress) for at in starts]
        return [one for part in parts for one in part]

    async def read_entities(self, entities: Sequence[Any]) -> list[Any]:
        """What the switch answers; nothing where it says NOT_FOUND only."""
        self.need_pipeline()
        with self._translated():
            try:
                return await self.read_all(entities)
            except P4ClientError as ex:
                found = refusals(ex).values() or [Refusal(ex.code, "")]
                if {refusal.code for refusal in found} == {GRPCStatusCode.NOT_FOUND}:
                    return []
                raise

    # ---- writes ------------------------------------------------------------------------------------------------

    async def write(self, updates: Sequence[Any]) -> None:
        """One batch of finsy updates (`+entry`, `~entry`, `-entry`); raises REFUSED with the switch's error text."""
        found = await self.write_each_with_reasons(updates)
        if found:
            raise refused(found, str(self.endpoint))

    async def write_each_with_reasons(self, updates: Sequence[Any]) -> dict[int, Refusal]:
        """As `write`, but says which updates the switch refused, by index, instead of raising for them."""
        self._need_writer()
        if self.drops_entries:
            updates = [update for update in updates if isinstance(update, P4DigestEntry)]
        if not updates:
            return {}
        with self._translated():
            try:
                await self.switch.write(updates)
            except P4ClientError as ex:
                if not ex.details:
                    raise
                return refusals(ex)
        return {}

    def _need_writer(self) -> None:
        """A reader may happen to be the primary when nobody else is there; it writes nothing all the same."""
        self.need_pipeline()
        if not self._write:
            raise ErrorCode.NOT_PRIMARY(f"{self.endpoint}: this client was opened for reading only")

    def canonical(self, entity: _E) -> _E:
        """The entity as the switch would return it (numbers, masked prefixes); BAD_INPUT when the P4Info refuses it."""
        self.need_pipeline()
        if not isinstance(entity, P4TableEntry):
            return entity
        self.check_table(entity.table_id)
        schema = self.switch.p4info
        with self._translated():
            return type(entity).decode(entity.encode(schema), schema)

    async def enable_digest(
        self, name: str, *, max_list: int = DIGEST_LIST_MAX, max_timeout_s: float = DIGEST_LIST_S
    ) -> None:
        """Configure a digest, whether or not it was configured before."""
        times_ns = {"max_timeout_ns": int(max_timeout_s * 1e9), "ack_timeout_ns": DIGEST_ACK_NS}
        entry = partial(P4DigestEntry, name, max_list_size=max_list, **times_ns)  # finsy's + and ~ mark the object
        found = await self.write_each_with_reasons([+entry()])
        if found and found[0].code is GRPCStatusCode.ALREADY_EXISTS:
            await self.write([~entry()])
        elif found:
            raise refused(found, f"{self.endpoint}, digest {name!r}:")

    async def send(self, messages: Sequence[Any]) -> None:
        """Stream messages (packet-outs, acknowledgements) in their order; two callers never write at a time."""
        with self._translated():
            async with self._stream_lock:
                await self.switch.write(messages)

    async def digests(self, name: str) -> AsyncIterator[list[dict[str, Any]]]:
        """Lists of one digest's values as they come; each list is acknowledged before it is handed on."""
        async for message in self.switch.read_digests(name, queue_size=DIGEST_QUEUE_LISTS):
            await self.send([message.ack()])
            yield [value for value in message if isinstance(value, dict)]


def _set(flag: asyncio.Event, *_: Any) -> None:
    flag.set()


# ---- what a run state says of a switch: where it is, its program, its routes ---------------------------------------------


def endpoint_of(state: SwitchState) -> Endpoint:
    """Where the switch of a run state is."""
    return Endpoint(state.name, state.grpc, state.device_id, tls_of_environment() or state.tls)


def pipeline_of(state: SwitchState) -> PipelineFiles:
    """The compiled program of a run state; BAD_FILE when it names none."""
    if state.json_file is None or state.p4info is None:
        raise bad_file(f"the run state names no compiled program for switch {state.name} (json, p4info)")
    return PipelineFiles(state.json_file, state.p4info)


def route_entries(client: SwitchClient, state: SwitchState) -> list[P4TableEntry]:
    """The routes' entries."""
    entries: list[P4TableEntry] = []
    for route in state.routes:
        table = TABLE_ROUTE[route.network.version]
        (field,) = client.switch.p4info.tables[client.check_table(table)].match_fields
        action = P4TableAction(ACTION_FORWARD, dst_mac=route.mac, port=route.port)
        entries.append(P4TableEntry(table, match=P4TableMatch({field.alias: str(route.network)}), action=action))
    return entries
