# SPDX-License-Identifier: Apache-2.0
"""TLS and the read-only role against the real switch: who gets in, who gets no data, and what a refusal says."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import stat
import subprocess
from collections.abc import Generator, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
import unused_ports
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.switch.certificates import make_certificates
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_controller.switch.security import OBSERVER_ROLE, TlsFiles, context_of
from finsy.proto import gnmi, p4r
from live_switch import COMPILED, LiveSwitch, binary

Call = tuple[str, Any]
CALLS: tuple[Call, ...] = (
    ("/p4.v1.P4Runtime/Capabilities", p4r.CapabilitiesRequest()),
    ("/p4.v1.P4Runtime/GetForwardingPipelineConfig", p4r.GetForwardingPipelineConfigRequest(device_id=1)),
    ("/p4.v1.P4Runtime/Write", p4r.WriteRequest(device_id=1)),
    ("/gnmi.gNMI/Capabilities", gnmi.CapabilityRequest()),
    ("/gnmi.gNMI/Get", gnmi.GetRequest()),
    ("/fairlane.v1.Switch/Trace", p4r.CapabilitiesRequest()),
)


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`mine`; `other`, of another CA; `old`, which has expired."""
    folder = tmp_path_factory.mktemp("certs")
    make_certificates(folder / "mine")
    make_certificates(folder / "other")
    make_certificates(folder / "old", days=1, now=datetime.now(timezone.utc) - timedelta(days=3))
    return folder


def files(certs: Path, ca: str, who: str | None, of: str = "mine") -> TlsFiles:
    """Trusts the CA `ca`, and is `who` of the folder `of`."""
    mine = certs / of
    if who is None:
        return TlsFiles(certs / ca / "ca.pem")
    return TlsFiles(certs / ca / "ca.pem", mine / f"{who}.pem", mine / f"{who}.key")


class TlsSwitch(LiveSwitch):
    """The embedded switch with its program and other options on its command line."""

    def launch(self, *options: str) -> None:
        """Start with these options, and wait until it serves."""
        path = binary("embedded")
        assert path is not None
        program = ["--pipeline", str(COMPILED / "qthresh.json"), "--p4info", str(COMPILED / "qthresh.p4info.txtpb")]
        with (self.folder / "switch.log").open("wb") as log:
            command = [path, "--grpc", f"127.0.0.1:{self.grpc_port}", *program, *options]
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        assert ready, (self.folder / "switch.log").read_text()

    def endpoint(self, tls: TlsFiles | None) -> Endpoint:
        """Where it is."""
        return Endpoint("s1", f"127.0.0.1:{self.grpc_port}", 1, tls)


@contextlib.contextmanager
def running(folder: Path, *options: str) -> Generator[TlsSwitch, None, None]:
    """A switch with these options."""
    switch = TlsSwitch("embedded", folder, grpc_port=unused_ports.unused())
    switch.launch(*options)
    try:
        yield switch
    finally:
        switch.kill()


def server(certs: Path, of: str = "mine") -> list[str]:
    """The switch's own certificate."""
    return ["--tls-cert", str(certs / of / "server.pem"), "--tls-key", str(certs / of / "server.key")]


@pytest.fixture(scope="module")
def switch(certs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsSwitch]:
    """A switch with mutual TLS and a program."""
    if binary("embedded") is None:
        pytest.skip("the embedded switch is not on this machine (build it, or set FAIRLANE_BIN_DIR)")
    ca = ["--tls-client-ca", str(certs / "mine" / "ca.pem")]
    with running(tmp_path_factory.mktemp("switch"), *server(certs), *ca) as found:
        yield found


def refused(endpoint: Endpoint, *, write: bool = False) -> str:
    """What a client gets; its code must be that of TLS."""

    async def connect() -> None:
        async with SwitchClient(endpoint, write=write):
            pass

    with pytest.raises(FairlaneError) as caught:
        asyncio.run(connect())
    assert caught.value.code is ErrorCode.TLS_FAILED
    assert caught.value.exit_code == 4
    return caught.value.message


def channel(address: str, tls: TlsFiles | None) -> grpc.Channel:
    """As plain as it gets, without our client."""
    if tls is None:
        return grpc.insecure_channel(address)
    cert, key = (path.read_bytes() if path else None for path in (tls.cert, tls.key))
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(tls.ca.read_bytes(), key, cert))


def encode(message: Any) -> bytes:
    """A request on the wire."""
    return message.SerializeToString()


def status(found: grpc.Channel, call: Call) -> tuple[grpc.StatusCode, str]:
    """The status of one call, whatever it answers."""
    name, request = call
    method = cast("Any", found).unary_unary(name, request_serializer=encode)
    try:
        method(request, timeout=10)
    except grpc.RpcError as ex:
        error: Any = ex
        return error.code(), error.details() or ""
    return grpc.StatusCode.OK, ""


@pytest.mark.parametrize(
    ("ca", "who", "of", "said"),
    [
        (
            "mine",
            None,
            "mine",
            "certificate required), whose certificate is missing: name one of its CA in FAIRLANE_TLS_CERT and _KEY",
        ),
        ("mine", "controller", "other", "other/controller.pem: name one of its CA"),
        ("mine", "controller", "old", "certificate expired), whose certificate is"),
        ("mine", "server", "mine", "it refuses this client"),
    ],
)
def test_a_wrong_client_is_refused_and_gets_no_data(
    switch: TlsSwitch, certs: Path, ca: str, who: str | None, of: str, said: str
) -> None:
    tls = files(certs, ca, who, of)
    assert said in refused(switch.endpoint(tls))
    with channel(switch.endpoint(tls).grpc, tls) as found:
        for call in CALLS:
            assert status(found, call)[0] is grpc.StatusCode.UNAVAILABLE, call[0]
    # The one that is right still gets in: nobody else was cut off.
    tls = files(certs, "mine", "controller")
    with channel(switch.endpoint(tls).grpc, tls) as found:
        assert status(found, CALLS[0])[0] is grpc.StatusCode.OK


def test_a_plain_client_is_refused_and_gets_no_data(switch: TlsSwitch) -> None:
    assert "speaks TLS only: name the CA that signed it in FAIRLANE_TLS_CA" in refused(switch.endpoint(None))
    with channel(switch.endpoint(None).grpc, None) as found:
        for call in CALLS:
            assert status(found, call)[0] is grpc.StatusCode.UNAVAILABLE, call[0]


def test_a_client_does_not_talk_to_a_switch_of_another_ca(switch: TlsSwitch, certs: Path) -> None:
    message = refused(switch.endpoint(files(certs, "other", "controller")))
    assert f"cannot be trusted with the CA {certs / 'other' / 'ca.pem'} (FAIRLANE_TLS_CA): unable to get" in message


def test_a_switch_that_is_expired_or_somebody_else_is_not_trusted(certs: Path, tmp_path: Path) -> None:
    with running(tmp_path, *server(certs, "old")) as old:
        assert "certificate has expired" in refused(old.endpoint(files(certs, "old", None)))
    # A controller's certificate is for no host at all.
    wrong = ["--tls-cert", str(certs / "mine" / "controller.pem"), "--tls-key", str(certs / "mine" / "controller.key")]
    with running(tmp_path, *wrong) as other:
        assert "its certificate" in refused(other.endpoint(files(certs, "mine", None)))


def test_tls_to_a_switch_without_it(certs: Path, tmp_path: Path) -> None:
    with running(tmp_path) as plain:
        assert "it speaks no TLS: unset FAIRLANE_TLS_CA" in refused(plain.endpoint(files(certs, "mine", "controller")))


def test_without_a_client_ca_everybody_is_served(certs: Path, tmp_path: Path) -> None:
    with running(tmp_path, *server(certs)) as open_to_all:

        async def read() -> list[str]:
            async with SwitchClient(open_to_all.endpoint(files(certs, "mine", None))) as client:
                return client.table_names()

        assert "ipv4_lpm" in asyncio.run(read())


def test_files_that_cannot_be_used_are_named(certs: Path, tmp_path: Path) -> None:
    mine = certs / "mine"
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("nothing\n")
    for tls, said in (
        (TlsFiles(tmp_path / "no.pem"), "no.pem cannot be used: no such file"),
        (TlsFiles(nothing), f"the CA {nothing} cannot be used"),
        (TlsFiles(mine / "ca.pem", mine / "controller.pem"), "controller.pem with the key None cannot be used"),
        (TlsFiles(mine / "ca.pem", None, mine / "controller.key"), "the certificate None with the key"),
        (TlsFiles(mine / "ca.pem", mine / "controller.pem", mine / "observer.key"), "key values mismatch"),
    ):
        with pytest.raises(FairlaneError, match="TLS: ") as caught:
            context_of(tls)
        assert said in caught.value.message


# ---- the role ------------------------------------------------------------------------------------------------------


def test_an_observers_certificate_reads_and_writes_nothing(switch: TlsSwitch, certs: Path) -> None:
    tls = files(certs, "mine", "observer")

    async def work() -> str:
        controller = switch.endpoint(files(certs, "mine", "controller"))
        async with SwitchClient(controller, write=True, election_id=5) as primary:
            # It asks for the controllers' role with a higher id, and becomes nobody's primary.
            async with SwitchClient(switch.endpoint(tls), write=True, election_id=2**40) as observer:
                assert primary.is_primary
                assert len(observer.table_names()) > 3
                with pytest.raises(FairlaneError) as caught:
                    await observer.enable_digest("port_report_t", max_list=1, max_timeout_s=0.1)
                assert not primary.down.is_set()
            return caught.value.message

    assert "this client may only read: Read-only: the client's certificate" in asyncio.run(work())
    with channel(switch.endpoint(tls).grpc, tls) as found:
        for name, request in (
            ("/p4.v1.P4Runtime/Write", p4r.WriteRequest(device_id=1)),
            ("/p4.v1.P4Runtime/SetForwardingPipelineConfig", p4r.SetForwardingPipelineConfigRequest(device_id=1)),
            ("/gnmi.gNMI/Set", gnmi.SetRequest()),
        ):
            assert status(found, (name, request))[0] is grpc.StatusCode.PERMISSION_DENIED, name
        for call in (CALLS[0], CALLS[1], CALLS[3]):
            assert status(found, call) == (grpc.StatusCode.OK, ""), call[0]


def test_a_reader_takes_the_observers_role_by_itself(switch: TlsSwitch, certs: Path) -> None:
    async def work() -> tuple[str, bool]:
        async with SwitchClient(switch.endpoint(files(certs, "mine", "controller"))) as reader:
            request = p4r.WriteRequest(device_id=1, role=OBSERVER_ROLE)
            with channel(switch.endpoint(None).grpc, files(certs, "mine", "controller")) as found:
                code, message = status(found, ("/p4.v1.P4Runtime/Write", request))
            assert code is grpc.StatusCode.PERMISSION_DENIED
            return message, reader.is_primary

    assert asyncio.run(work()) == (
        'Read-only: the role "fairlane.observer" writes nothing; the election id of this request is none',
        False,
    )


# ---- certificates --------------------------------------------------------------------------------------------------


def test_keys_are_private_and_nothing_is_overwritten(tmp_path: Path) -> None:
    made = make_certificates(tmp_path / "c")
    assert {one["for"] for one in made} == {"ca", "server", "controller", "observer"}
    before = {path: path.read_bytes() for path in (tmp_path / "c").iterdir()}
    assert len(before) == 8
    assert all(stat.S_IMODE(Path(one["key"]).stat().st_mode) == 0o600 for one in made)
    with pytest.raises(FairlaneError, match=r"c: File exists \(.*ca.pem\): name another folder"):
        make_certificates(tmp_path / "c")
    (tmp_path / "c" / "ca.pem").rename(tmp_path / "c" / "mine.pem")
    with pytest.raises(FairlaneError, match=r"File exists \(.*ca.key\)"):
        make_certificates(tmp_path / "c")
    (tmp_path / "c" / "mine.pem").rename(tmp_path / "c" / "ca.pem")
    assert {path: path.read_bytes() for path in (tmp_path / "c").iterdir()} == before


def test_a_full_disk_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(number: int, *_: object) -> None:
        os.close(number)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("fairlane_controller.switch.certificates.os.fdopen", full)
    with pytest.raises(FairlaneError, match=r"cannot write into .*: No space left on device"):
        make_certificates(tmp_path)
    assert not [*tmp_path.iterdir()]


def test_bad_days_and_hosts_make_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from fairlane_controller.cli.main import main

    with pytest.raises(SystemExit, match="2"):
        main(["setup", "certs", str(tmp_path / "c"), "--days", "0"])
    assert "invalid value for '--days': must be greater than or equal to 1" in capsys.readouterr().err
    with pytest.raises(FairlaneError, match="must be a name or an address"):
        make_certificates(tmp_path / "c", hosts=["not a host"])
    assert not (tmp_path / "c").exists()


@pytest.mark.usefixtures("switch")
def test_the_commands_of_the_document_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from fairlane_controller.cli.main import main

    monkeypatch.chdir(tmp_path)
    text = (Path(__file__).resolve().parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
    lines = [line.split(" #")[0].split() for line in text.splitlines() if line.startswith(("fairlane ", "export "))]
    makes = [words for words in lines if words[1:3] == ["setup", "certs"]]
    uses = [words for words in lines if words not in makes]
    assert len(makes) == 2
    assert [words[0] for words in uses] == ["export", "fairlane"] * 2
    for words in makes:
        main_ok(main, words[1:])
    with running(tmp_path, *server(tmp_path, "certs"), "--tls-client-ca", str(tmp_path / "certs" / "ca.pem")) as mine:
        for first, *words in uses:
            if first == "export":
                for name, _, value in (word.partition("=") for word in words):
                    monkeypatch.setenv(name, value)
            else:
                main_ok(main, [*words, "--switch", f"s1=127.0.0.1:{mine.grpc_port}"])
    assert "s1" in capsys.readouterr().out


def main_ok(main: Any, words: list[str]) -> None:
    """Run a command; it must end well."""
    ended: int | str | None = 0
    try:
        main(words)
    except SystemExit as end:
        ended = end.code
    assert ended in (0, None), words
