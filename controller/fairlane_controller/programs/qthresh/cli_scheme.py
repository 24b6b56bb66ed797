# SPDX-License-Identifier: Apache-2.0
"""`fairlane scheme set|show`: drop-tail or Qthresh on an egress port."""

from __future__ import annotations

from typing import Annotated

import typer

from fairlane_controller.cli.dry import DryRunOption
from fairlane_controller.cli.targets import ClassOption, JsonOption, PortOption, StateOption, SwitchOption, resolve
from fairlane_controller.errors import unknown_name
from fairlane_controller.programs.qthresh.cli_threshold import make, show
from fairlane_controller.programs.qthresh.policies import Scheme

scheme_app = typer.Typer(help="Queue scheme of (egress port, class): drop_tail or qthresh.", no_args_is_help=True)
scheme_app.command("show")(show)


@scheme_app.command("set")
def set_(
    scheme: Annotated[str, typer.Argument(help="drop_tail or qthresh.")],
    port: PortOption = None,
    traffic_class: ClassOption = 0,
    dry_run: DryRunOption = False,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    """Choose the scheme of a class; all managed ports unless one is named.

    Examples: `fairlane scheme set qthresh`, `fairlane scheme set drop_tail -s s1 -p 3`
    """
    names = [s.value for s in Scheme]
    if scheme not in names:
        raise unknown_name("scheme", scheme, names)
    request = {"op": "scheme_set", "class": traffic_class, "scheme": scheme}
    make(resolve(state, switch), port, request, every=True, dry_run=dry_run, as_json=as_json)
