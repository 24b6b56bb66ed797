# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
"""Hostile inputs made from good ones: documents with parts replaced, removed, renamed and added, and texts with bytes changed. By seed.

A harness is a function `explore_…(examples, seed)` that raises on a finding: its input is in the error, as short as hypothesis
could make it. `fuzz.py` runs them by name; a test of each runs a few examples.
"""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st

T = TypeVar("T")
FEW = 60
"""Examples of a harness in the tests; `make fuzz` takes as many as the time allows."""

NASTY = ("", " ", "\x00", "/", "..", "../../etc/passwd", "%s%n", "-1", "1e999", "nan", "null", "\ud7ff\U0010ffff", "a" * 300, "s1", "h1", "s1-p3", "10.0.0.1/33", "08:00:00:00:00:zz", "${x}", "= 1/0", "$rate_bps", "*", "[", "10Gbit", "-5ms")  # fmt: skip
_scalars: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(-2, 70_000),
    st.floats(),
    st.sampled_from(NASTY),
    st.text(max_size=12),
)
JUNK: st.SearchStrategy[Any] = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
"""Any JSON value."""
KINDS = ("replace", "remove", "rename", "add", "double", "wrap", "move")
EDITS = st.lists(
    st.tuples(st.integers(0, 100_000), st.sampled_from(KINDS), JUNK, st.integers(0, 100_000)), min_size=1, max_size=4
)
BYTES = st.lists(
    st.tuples(
        st.integers(0, 1 << 20),
        st.sampled_from(("set", "cut", "insert", "end")),
        st.binary(min_size=1, max_size=6) | st.sampled_from([b"[" * 3000, b"{", b'"', b"\n", b"\xff", b"9" * 5000]),
    ),
    max_size=3,
)


def readable(message: str, names: str = "") -> None:
    """A refusal is a text that people can read, and says which file it is about."""
    message.encode()
    assert names in message, message
    assert 0 < len(message) < 6000, len(message)
    assert "Traceback" not in message, message


def explore(what: Callable[[T], None], inputs: st.SearchStrategy[T], examples: int, seed: int) -> None:
    """Try so many inputs; raises what the first one that fails raises, after it was made short."""
    settings = hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=False,
        print_blob=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
    )

    def one(given: T) -> None:
        what(given)

    hypothesis.seed(seed)(settings(hypothesis.given(given=inputs)(one)))()


def explore_file(
    what: Callable[[Path], None], name: str, inputs: st.SearchStrategy[bytes], examples: int, seed: int
) -> None:
    """As `explore`, with each input as the file `name` in a folder of its own."""

    def one(given: bytes) -> None:
        with tempfile.TemporaryDirectory(prefix="fairlane-fuzz-") as place:
            path = Path(place) / name
            path.write_bytes(given)
            what(path)

    explore(one, inputs, examples, seed)


def documents(*bases: Any) -> st.SearchStrategy[Any]:
    """One of the documents, edited."""
    return st.builds(edited, st.sampled_from(bases), EDITS)


def texts(*bases: Any, dump: Callable[[Any], str] = json.dumps) -> st.SearchStrategy[bytes]:
    """One of the documents, edited and written, its bytes then changed now and then."""

    def written(document: Any) -> bytes:
        return dump(document).encode("utf-8", "replace")

    plain = st.builds(written, documents(*bases))
    return st.builds(changed, plain | st.sampled_from([dump(base).encode() for base in bases]), st.just([]) | BYTES)


def edited(base: Any, edits: list[tuple[int, str, Any, int]]) -> Any:
    """The document after the edits, which name their places by number."""
    document = copy.deepcopy(base)
    for number, kind, value, other in edits:
        places = list(_places(document))
        if not places:
            return value
        holder, key = places[number % len(places)]
        if kind == "replace":
            holder[key] = value
        elif kind == "remove":
            del holder[key]
        elif kind == "wrap":
            holder[key] = [holder[key]]
        elif kind == "move":
            source, name = places[other % len(places)]
            holder[key] = copy.deepcopy(source[name])
        elif kind == "double" and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[key]))
        elif isinstance(holder, dict):
            name = value if isinstance(value, str) else f"k{other % 10}"
            holder[name] = holder.pop(key) if kind == "rename" else value
    return document


def _places(document: Any) -> list[tuple[Any, Any]]:
    """(holder, key) of everything in a document."""
    found: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting:
        holder = waiting.pop()
        keys: list[Any] = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        for key in keys:
            found.append((holder, key))
            if isinstance(holder[key], (dict, list)) and len(found) < 5000:
                waiting.append(holder[key])
    return found


def changed(text: bytes, changes: list[tuple[int, str, bytes]]) -> bytes:
    """The text with bytes set, cut and inserted."""
    data = bytearray(text)
    for at, kind, given in changes:
        place = at % (len(data) + 1)
        if kind == "set":
            data[place : place + len(given)] = given
        elif kind == "cut":
            del data[place : place + len(given)]
        elif kind == "insert":
            data[place:place] = given
        else:
            del data[place:]
    return bytes(data)


def toml(document: Any) -> str:
    """A document as TOML: its first level as keys, all below inline. What TOML has no word for is left out."""
    if not isinstance(document, dict):
        return f"value = {_toml(document)}\n"
    pairs = cast("dict[Any, Any]", document).items()
    return "".join(f"{_quoted(str(key))} = {_toml(value)}\n" for key, value in pairs if value is not None)


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value).items()
        return "{" + ", ".join(f"{_quoted(str(k))} = {_toml(v)}" for k, v in pairs if v is not None) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(one) for one in cast("list[Any]", value) if one is not None) + "]"
    if isinstance(value, str):
        return _quoted(value)
    return repr(value)


def _quoted(text: str) -> str:
    return json.dumps(text).replace("\\u007f", "\\u007F")
