# SPDX-License-Identifier: Apache-2.0
"""Values of keys and parameters: text as simple_switch_CLI takes it to numbers, checked by the width in the P4Info, and back."""

from __future__ import annotations

import ipaddress
import re
from typing import Any

from finsy.p4schema import P4MatchType

from fairlane_controller.errors import ErrorCode, FairlaneError, out_of_range

_MAC = re.compile(r"^([0-9A-Fa-f]{1,2}:){5}[0-9A-Fa-f]{1,2}$")
ANY = "*"
"""Says of a ternary, LPM, range or optional key that it does not matter."""
_MAC_NAME = re.compile(r"mac|eth|addr", re.IGNORECASE)
_IP_NAME = re.compile(r"ip|addr|nhop|next_?hop|src|dst|prefix", re.IGNORECASE)


def _bad(what: str, text: str, allowed: str) -> FairlaneError:
    return FairlaneError(ErrorCode.BAD_INPUT, f"{what}: {text!r} is not {allowed}")


def _kinds(bits: int) -> str:
    special = {32: ", an IPv4 address", 48: ", a MAC address", 128: ", an IPv6 address"}.get(bits, "")
    return f"a number (decimal or 0x…){special} of {bits} bits"


def parse_value(text: str, bits: int, what: str) -> int | str:
    """A number of `bits` bits: decimal, 0x…, 0b…, IPv4 (32), MAC (48) or IPv6 (128 bits); bits 0: any text (SdnString).

    Raises BAD_INPUT or OUT_OF_RANGE with the range; `what` names the key or parameter in them.
    """
    if bits == 0:
        return text
    value: int
    try:
        if bits == 32 and "." in text:
            value = int(ipaddress.IPv4Address(text))
        elif bits == 48 and _MAC.match(text):
            value = int("".join(part.zfill(2) for part in text.split(":")), 16)
        elif bits == 128 and ":" in text:
            value = int(ipaddress.IPv6Address(text))
        else:
            value = int(text, 10) if text.lstrip("-").isdecimal() else int(text, 0)
    except ValueError:
        raise _bad(what, text, _kinds(bits)) from None
    if not 0 <= value < 1 << bits:
        most = (1 << bits) - 1
        raise out_of_range(what, text, 0, most if bits <= 32 else f"0x{most:x}", f"({bits} bits)")
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
        case P4MatchType.LPM:
            return _parse_lpm(text, bits, what)
        case P4MatchType.TERNARY:
            if "/" in text and "&&&" not in text:
                prefix = _parse_lpm(text, bits, what)
                return None if prefix is None else (prefix[0], full ^ (full >> prefix[1]))
            value, found, mask = text.partition("&&&")
            number = parse_value(value.strip(), bits, what)
            if bits == 0 or isinstance(number, str):
                raise _bad(what, text, "a number with a mask")
            bitmask = parse_value(mask.strip(), bits, f"{what} (mask)") if found else full
            assert isinstance(bitmask, int)
            return (number & bitmask, bitmask) if bitmask else None
        case P4MatchType.RANGE:
            low, found, high = text.partition("->")
            first = parse_value(low.strip(), bits, what)
            last = parse_value(high.strip(), bits, what) if found else first
            if isinstance(first, int) and isinstance(last, int) and first > last:
                raise _bad(what, text, "a range LOW->HIGH with LOW not above HIGH")
            return None if (first, last) == (0, full) else (first, last)
        case P4MatchType.EXACT | P4MatchType.OPTIONAL:
            return parse_value(text, bits, what)
        case _:
            raise FairlaneError(ErrorCode.BAD_INPUT, f"{what}: match kind {kind} is not P4Runtime's")


def _parse_lpm(text: str, bits: int, what: str) -> tuple[int, int] | None:
    value, found, length = text.partition("/")
    number = parse_value(value, bits, what)
    if isinstance(number, str):
        raise _bad(what, text, "a prefix")
    if not found:
        return number, bits
    if not length.isdecimal():
        raise _bad(what, text, f"VALUE/LENGTH, e.g. {'10.0.1.0/24' if bits == 32 else '0x80/4'}")
    if int(length) > bits:
        raise out_of_range(f"{what}: prefix length", length, 0, bits)
    if int(length) == 0:
        return None
    mask = ((1 << bits) - 1) ^ ((1 << (bits - int(length))) - 1)
    return number & mask, int(length)


def format_value(value: Any, bits: int, name: str = "") -> str:
    """The value as `parse_value` reads it: an address where width and name say so, else decimal."""
    if not isinstance(value, (int, str)):
        return str(value)  # an address already (the P4Info's @format)
    if isinstance(value, str):
        return value
    if bits == 128:
        return str(ipaddress.IPv6Address(value))
    if bits == 48 and _MAC_NAME.search(name):
        digits = f"{value:012x}"
        return ":".join(digits[i : i + 2] for i in range(0, 12, 2))
    if bits == 32 and _IP_NAME.search(name):
        return str(ipaddress.IPv4Address(value))
    return str(value)


def format_match(value: Any, kind: Any, bits: int, name: str) -> str:
    """A key as `parse_match` reads it; `*` for None."""
    if value is None:
        return ANY
    match kind:
        case P4MatchType.LPM:
            if isinstance(value, (ipaddress.IPv4Network, ipaddress.IPv6Network)):
                return str(value)
            return f"{format_value(value[0], bits, name)}/{value[1]}"
        case P4MatchType.TERNARY:
            number, mask = int(value[0]), int(value[1])
            if mask == (1 << bits) - 1:
                return format_value(number, bits, name)
            return f"0x{number:x}&&&0x{mask:x}"
        case P4MatchType.RANGE:
            return f"{format_value(int(value[0]), bits, name)}->{format_value(int(value[1]), bits, name)}"
        case _:
            return format_value(int(value) if not isinstance(value, str) else value, bits, name)
