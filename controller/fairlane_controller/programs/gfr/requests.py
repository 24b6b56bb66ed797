# SPDX-License-Identifier: Apache-2.0
"""The requests of the control socket: edits of ports and VCs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fairlane_controller.program.requests import MAX_UPDATES, Name, Plain, Request


class _Edit(Request):
    """An edit of the VCs; what is in it is checked with the configuration that it makes."""

    source: Annotated[str, Field(max_length=4096)] | None = None


class _VcAdd(_Edit):
    vc: Plain


class _VcSet(_Edit):
    name: Name
    changes: Plain


class _VcDel(_Edit):
    names: Annotated[list[Name], Field(max_length=MAX_UPDATES)]


class _GfrSet(_Edit):
    switch: Name | None = None
    port: int | None = None
    changes: Plain


class _GfrApply(_Edit):
    config: Plain


REQUESTS: dict[str, type[Request]] = {
    "vc_add": _VcAdd,
    "vc_set": _VcSet,
    "vc_del": _VcDel,
    "gfr_set": _GfrSet,
    "gfr_apply": _GfrApply,
}
