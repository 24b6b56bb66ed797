# SPDX-License-Identifier: Apache-2.0
"""Texts that are no document, or one that nobody could work on: each is one error with its place."""

from __future__ import annotations

import pytest
from fairlane_controller.documents import MAX_DEPTH, DocumentError, parse_json, parse_toml


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: Expecting value"),
        ('{"a": 1,\n "b" 2}', "line 2, column 6: Expecting ':' delimiter"),
        ('{"a": NaN}', "NaN is no JSON number"),
        ("[-Infinity]", "-Infinity is no JSON number"),
        ("1e999", "a number is too large for a double"),
        ("9" * 5000, "Exceeds the limit"),
        (f"[{1 << 1000}]", "a number of 1001 bits is too large: at most 1000"),
        (r'"\ud800"', r"'\\ud800' is no text: it has half of a surrogate pair"),
        (r'{"\ud800": 1}', "half of a surrogate pair"),
        (nested(MAX_DEPTH + 1), "nested more than 64 levels deep"),
        ('{"a":' * 1000 + "1" + "}" * 1000, "nested more than 64 levels deep"),
        (nested(200_000), "nested more than 64 levels deep"),
    ],
)
def test_what_is_no_json(text: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message.replace("[", r"\[")):
        parse_json(text)


def test_a_byte_order_mark_is_skipped() -> None:
    assert parse_json('\ufeff{"a": 1}') == parse_toml("\ufeffa = 1\n") == {"a": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = b\n", "line 1, column 5: Invalid value"),
        ("a = 1\na = 2\n", "line 2, column 6: Cannot overwrite a value"),
        (f"a = {nested(5000)}", "nested more than 64 levels deep"),
        (f"a = {nested(MAX_DEPTH)}", "nested more than 64 levels deep"),
        (".".join("a" * 100) + " = 1", "nested more than 64 levels deep"),
        ("[" + ".".join("a" * 5000) + "]", "nested more than 64 levels deep"),
        (f"a = {'9' * 5000}", "Exceeds the limit"),
        ("a = 9223372036854775808", "a number of 64 bits is too large: at most 63"),
        ("a = 2026-02-30", "Invalid date"),
    ],
)
def test_what_is_no_toml(text: str, message: str) -> None:
    with pytest.raises(DocumentError, match=message):
        parse_toml(text)


def test_what_is_a_document() -> None:
    assert parse_json(nested(MAX_DEPTH)) is not None
    assert parse_json('{"a": [1, 2.5, null, "é\\ud83d\\ude00"]}') == {"a": [1, 2.5, None, "é😀"]}
    assert parse_toml("a.b = [inf, 1979-05-27]")["a"]["b"][0] == float("inf")
