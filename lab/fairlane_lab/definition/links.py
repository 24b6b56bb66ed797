# SPDX-License-Identifier: Apache-2.0
"""What an experiment file says of links: values that differ from the topology file's, and what changes while it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from fairlane_controller.documents import is_file
from fairlane_switch.link_model import LinkSettings
from fairlane_topology.links import NO_TRACE, TOPOLOGIES, Direction, LinkChange, PresetName, Rate
from pydantic import AfterValidator, Field, ValidationInfo

DIRECTION_KEYS = frozenset(
    name for field, info in Direction.model_fields.items() for name in (field, info.validation_alias) if name
)
"""Keys of a topology file's link that a preset replaces."""


def _trace(name: str, info: ValidationInfo) -> str:
    """Beside the experiment or below mininet/topologies, unless it is absolute."""
    if name == NO_TRACE:
        return name
    beside: tuple[Path, ...] = info.context.folders if info.context else ()
    for folder in (*beside, TOPOLOGIES):
        if is_file(folder / name):
            return str(folder / name)
    raise ValueError(f"there is no file {name!r}; a relative name is beside the experiment or below mininet/topologies")


Trace = Annotated[str, AfterValidator(_trace)]


class LinkChanges(LinkSettings):
    """Values of a topology file's link, both directions alike."""

    preset: PresetName | None = None
    """Instead of all that the file says of its directions and its rate; what stands beside it here wins."""
    rate_bps: Rate | None = None
    """Of the switch ports at its ends, and of the wire in the direction that leaves a host (the file's `bandwidth`)."""
    trace: Trace | None = None
    """File in Mahimahi's format, `none` for no trace."""

    def apply_to(self, link: dict[str, Any]) -> None:
        """Change a link of a topology document."""
        values = {name: value for name, value in self.model_dump().items() if value is not None}
        if self.preset is not None:
            for key in [key for key in link if key in DIRECTION_KEYS or key in ("bandwidth", "a_to_b", "b_to_a")]:
                del link[key]
        if "rate_bps" in values:
            link["bandwidth"] = values.pop("rate_bps")
        for name in ("delay", "jitter"):
            if f"{name}_ms" in values:
                link[name] = round(values.pop(f"{name}_ms") * 1000)  # µs
        if values.get("trace") == NO_TRACE:
            link.pop("trace", None)
            del values["trace"]
        link.update(values)


class ChangeSpec(LinkChange):
    """`scenario.Change`: something that changes while it runs."""

    at_s: Annotated[float, Field(ge=0)]
    trace: Trace | None = None
