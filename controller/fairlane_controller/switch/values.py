# SPDX-License-Identifier: Apache-2.0
"""Values of keys and parameters: text as simple_switch_CLI takes it to numbers, checked by the width in the P4Info, and back."""

from __future__ import annotations

import ipaddress
import re
from typing import Any, cast

from finsy import MACAddress
from finsy.p4schema import P4MatchType
from finsy.p4values import encode_exact

from fairlane_controller.errors import bad_input, out_of_range

ANY = "*"
"""Says of a ternary, LPM, range or optional key that it does not matter."""
_ADDRESSES = {
    32: ("an IPv4 address", re.compile(r"ip|addr|nhop|next_?hop|src|dst|prefix", re.IGNORECASE), ipaddress.IPv4Address),
    48: ("a MAC address", re.compile(r"mac|eth|addr", re.IGNORECASE), MACAddress),
    128: ("an IPv6 address", re.compile(""), ipaddress.IPv6Address),
}
"""By width: which address a value may be, the names of keys and parameters that are shown as one, and its type."""


def parse_value(text: str, bits: int, what: str) -> Any:
    """A number of `bits` bits: decimal, 0x…, 0b…, IPv4 (32), MAC (48) or IPv6 (128 bits); bits 0: any text (SdnString).

    Raises BAD_INPUT or OUT_OF_RANGE with the range; `what` names the key or parameter in them.
    """
    if bits == 0:
        return text
    try:
        is_address = bits in _ADDRESSES and any(sign in text for sign in ".:")
        decimal = text.lstrip("-").isdecimal()
        value = int.from_bytes(encode_exact(text, bits), "big") if is_address else int(text, 10 if decimal else 0)
    except ValueError:
        address = f", {_ADDRESSES[bits][0]}" if bits in _ADDRESSES else ""
        raise bad_input(f"{what}: {text!r} is not a number (decimal or 0x…){address} of {bits} bits") from None
    if not 0 <= value < 1 << bits:
        highest = (1 << bits) - 1
        raise out_of_range(what, text, 0, highest if bits <= 32 else f"0x{highest:x}", f"({bits} bits)")
    return value


def parse_number(text: str, what: str, low: int, high: int) -> int:
    """A number of 64 bits within a range."""
    value = parse_value(text, 64, what)
    if not low <= value <= high:
        raise out_of_range(what, text, low, high)
    return value


def parse_match(text: str, kind: Any, bits: int, what: str) -> Any:
    """A key as finsy takes it, None when it does not matter.

    exact `5`; LPM `10.0.1.0/24` (without a length: the whole value); ternary `0x0a&&&0xff` (without a mask: exact, `/8` is a
    prefix); range `1->5` (or one value); optional as exact; `*` anything but exact. Bits outside a mask are dropped.
    """
    if text == ANY and kind is not P4MatchType.EXACT:
        return None
    full = (1 << bits) - 1
    match kind:
        case P4MatchType.LPM | P4MatchType.TERNARY:
            masked = kind is P4MatchType.TERNARY and "&&&" in text
            value, found, rest = text.partition("&&&" if masked else "/")
            number, length = parse_value(value.strip(), bits, what), bits
            if found and not masked:
                length = _parse_length(text, rest, bits, what)
            mask = parse_value(rest.strip(), bits, f"{what} (mask)") if masked else full ^ (full >> length)
            return (number & mask, length if kind is P4MatchType.LPM else mask) if mask else None
        case P4MatchType.RANGE:
            low, found, high = text.partition("->")
            first = parse_value(low.strip(), bits, what)
            last = parse_value(high.strip(), bits, what) if found else first
            if first > last:
                raise bad_input(f"{what}: {text!r} is not a range LOW->HIGH with LOW not above HIGH")
            return None if (first, last) == (0, full) else (first, last)
        case P4MatchType.EXACT | P4MatchType.OPTIONAL:
            return parse_value(text, bits, what)
        case _:
            raise bad_input(f"{what}: match kind {kind} is not P4Runtime's")


def _parse_length(text: str, length: str, bits: int, what: str) -> int:
    if not length.isdecimal():
        example = "10.0.1.0/24" if bits == 32 else "0x80/4"
        raise bad_input(f"{what}: {text!r} is not VALUE/LENGTH, e.g. {example}")
    if int(length) > bits:
        raise out_of_range(f"{what}: prefix length", length, 0, bits)
    return int(length)


def format_value(value: Any, bits: int, name: str = "") -> str:
    """The value as `parse_value` reads it: an address where width and name say so, else decimal."""
    if isinstance(value, int) and bits in _ADDRESSES:
        _, names, address = _ADDRESSES[bits]
        return str(address(value) if names.search(name) else value)
    return str(value)


def format_match(value: Any, kind: Any, bits: int, name: str) -> str:
    """A key as `parse_match` reads it; `*` for None."""
    if value is None:
        return ANY
    if not isinstance(value, tuple):
        return format_value(value, bits, name)  # an LPM's network too
    first, second = cast("tuple[Any, Any]", value)
    text = format_value(first, bits, name)
    match kind:
        case P4MatchType.LPM:
            return f"{text}/{second}"
        case P4MatchType.TERNARY:
            return text if int(second) == (1 << bits) - 1 else f"0x{int(first):x}&&&0x{int(second):x}"
        case _:
            return f"{text}->{format_value(second, bits, name)}"
