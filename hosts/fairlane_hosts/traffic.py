# SPDX-License-Identifier: Apache-2.0
"""`fairlane-traffic`: the binary of switch/crates/generator, for which a variant of the table becomes its kernel name."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from fairlane_switch.process import BinaryNotFoundError, become_binary

from . import apply
from .errors import HostsError
from .variants import VARIANTS


def main() -> None:
    """Become the binary; exit code 2 when that cannot be."""
    try:
        become_binary("fairlane-traffic", _with_kernel_names(sys.argv[1:]))
    except (HostsError, BinaryNotFoundError) as error:
        print(f"fairlane-traffic: {error}", file=sys.stderr)
        sys.exit(2)


def _with_kernel_names(words: Sequence[str]) -> list[str]:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--cc")
    parser.add_argument("--no-sysctl-check", action="store_true")
    options, others = parser.parse_known_args(words)
    if not options.cc:
        return others
    names = [_kernel_name(name, check=not options.no_sysctl_check) for name in options.cc.split(",")]
    return [*others, "--cc", ",".join(names)]


def _kernel_name(name: str, *, check: bool) -> str:
    """Of a variant, whose sysctls must be this host's; another name is the kernel's own. Raises HostsError `sysctl`."""
    variant = VARIANTS.get(name)
    if variant is None:
        return name
    wrong = apply.differing(variant, apply.read_host().sysctls) if check else {}
    if wrong:
        listed = ", ".join(f"{sysctl} is {found}, not {want}" for sysctl, (found, want) in wrong.items())
        hint = f"`fairlane hosts use HOST {name}` (or --no-sysctl-check)"
        raise HostsError("sysctl", f"this host is not set for variant {name}: {listed}", hint)
    return variant.congestion_control


if __name__ == "__main__":
    main()
