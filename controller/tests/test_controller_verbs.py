# SPDX-License-Identifier: Apache-2.0
"""The verbs of simple_switch_CLI without a switch: names by suffix, values by width, entries there and back, scripts' lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.errors import FairlaneError
from fairlane_controller.switch.updates import match_text
from fairlane_controller.switch.values import format_match, format_value, parse_match, parse_value
from fairlane_controller.verbs.catalog import CATALOG
from fairlane_controller.verbs.grammar import (
    PIVOT,
    arguments,
    entry_row,
    find_object,
    parse_action,
    parse_keys,
    resolve_name,
    split_priority,
)
from fairlane_controller.verbs.script import Line, read_lines
from finsy import P4Schema, P4TableAction, P4TableEntry, P4TableMatch
from finsy.p4schema import P4MatchType

ENTITIES = Path(__file__).resolve().parents[2] / "switch/crates/p4rt/tests/p4/entities.p4info.txtpb"


@pytest.fixture(scope="module")
def schema() -> P4Schema:
    """A program that is none of ours, with every kind of match."""
    return P4Schema(ENTITIES)


def table_of(schema: P4Schema, name: str) -> Any:
    """A table of it."""
    return find_object("table", name, schema.tables)


# ---- names -----------------------------------------------------------------------------------------------------------

NAMES = ["In.route.ipv4_lpm", "In.route.drop", "In.l2.drop", "Out.mark"]


def test_a_unique_suffix_is_a_name() -> None:
    assert resolve_name("table", "ipv4_lpm", NAMES) == "In.route.ipv4_lpm"
    assert resolve_name("table", "l2.drop", NAMES) == "In.l2.drop"
    assert resolve_name("table", "In.route.drop", NAMES) == "In.route.drop"
    assert resolve_name("action", "drop", ["drop", "In.drop"]) == "drop"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("drop", "table 'drop' is ambiguous: In.l2.drop, In.route.drop; write more of its name"),
        ("ipv4_lmp", "unknown table 'ipv4_lmp'; did you mean 'ipv4_lpm'?; valid: drop, ipv4_lpm, mark"),
        ("pv4_lpm", "did you mean 'ipv4_lpm'?"),
        ("zzz", "unknown table 'zzz'; valid: drop, ipv4_lpm"),
    ],
)
def test_other_names_get_the_candidates_or_the_nearest(name: str, message: str) -> None:
    with pytest.raises(FairlaneError) as caught:
        resolve_name("table", name, NAMES)
    assert message in caught.value.message
    assert caught.value.exit_code == 3


# ---- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "bits", "value"),
    [
        ("511", 9, 511), ("0x1ff", 9, 511), ("0b101", 9, 5), ("010", 9, 10), ("10.0.1.2", 32, 0x0A000102),
        ("08:00:00:00:01:11", 48, 0x080000000111), ("8:0:0:0:1:11", 48, 0x080000000111), ("2001:db8::1", 128, (0x20010DB8 << 96) | 1),
        ("any text", 0, "any text"),
    ],
)  # fmt: skip
def test_values_as_simple_switch_cli_takes_them(text: str, bits: int, value: Any) -> None:
    assert parse_value(text, bits, "x") == value


@pytest.mark.parametrize(
    ("text", "bits", "message"),
    [
        ("512", 9, "key port 512 is out of range: it must be between 0 and 511 (9 bits)"),
        ("-1", 9, "key port -1 is out of range"),
        ("10.0.1.256", 32, "key port: '10.0.1.256' is not a number (decimal or 0x…), an IPv4 address of 32 bits"),
        ("10.0.1.2", 9, "is not a number (decimal or 0x…) of 9 bits"),
        ("08:00:00:00:01", 48, "a MAC address of 48 bits"),
        ("2001:db8::1::", 128, "an IPv6 address of 128 bits"),
        ("0x1ffff", 16, "it must be between 0 and 65535 (16 bits)"),
    ],
)
def test_values_out_of_their_width(text: str, bits: int, message: str) -> None:
    with pytest.raises(FairlaneError) as caught:
        parse_value(text, bits, "key port")
    assert message in caught.value.message
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "kind", "bits", "value", "again"),
    [
        ("10.0.1.5/24", P4MatchType.LPM, 32, (0x0A000100, 24), "10.0.1.0/24"),
        ("10.0.1.5", P4MatchType.LPM, 32, (0x0A000105, 32), "10.0.1.5/32"),
        ("0/0", P4MatchType.LPM, 32, None, "*"),
        ("0x0a&&&0x0f", P4MatchType.TERNARY, 8, (10, 15), "0xa&&&0xf"),
        ("0xff&&&0x0f", P4MatchType.TERNARY, 8, (15, 15), "0xf&&&0xf"),
        ("7", P4MatchType.TERNARY, 8, (7, 255), "7"),
        ("10.0.0.0/8", P4MatchType.TERNARY, 32, (0x0A000000, 0xFF000000), "0xa000000&&&0xff000000"),
        ("5&&&0", P4MatchType.TERNARY, 8, None, "*"),
        ("1->5", P4MatchType.RANGE, 16, (1, 5), "1->5"),
        ("5", P4MatchType.RANGE, 16, (5, 5), "5->5"),
        ("0->65535", P4MatchType.RANGE, 16, None, "*"),
        ("*", P4MatchType.OPTIONAL, 16, None, "*"),
        ("3", P4MatchType.OPTIONAL, 16, 3, "3"),
    ],
)
def test_keys_by_kind_of_match_and_back(text: str, kind: Any, bits: int, value: Any, again: str) -> None:
    assert parse_match(text, kind, bits, "key") == value
    assert format_match(value, kind, bits, "dst") == again
    assert parse_match(again, kind, bits, "key") == value


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("10.0.1.0/33", P4MatchType.LPM, "prefix length 33 is out of range: it must be between 0 and 32"),
        ("10.0.1.0/x", P4MatchType.LPM, "is not VALUE/LENGTH, e.g. 10.0.1.0/24"),
        ("5->1", P4MatchType.RANGE, "LOW not above HIGH"),
        ("*", P4MatchType.EXACT, "'*' is not a number"),
    ],
)
def test_keys_that_cannot_be(text: str, kind: Any, message: str) -> None:
    with pytest.raises(FairlaneError) as caught:
        parse_match(text, kind, 32, "key")
    assert message in caught.value.message


def test_addresses_are_shown_where_width_and_name_say_so() -> None:
    assert format_value(0x0A000001, 32, "hdr.ipv4.dst_addr") == "10.0.0.1"
    assert format_value(0x0A000001, 32, "threshold") == "167772161"
    assert format_value(0x080000000111, 48, "dst_mac") == "08:00:00:00:01:11"
    assert format_value(5, 48, "timestamp") == "5"


def test_changes_show_values_as_the_verbs_do(schema: P4Schema) -> None:
    """What has no address's name is a number, however many bits it has."""
    entry = P4TableEntry("lpm_table", match=P4TableMatch(value=(70_000, 32)), action=P4TableAction("drop"))
    assert match_text(entry, schema) == "value=70000/32"
    entry = P4TableEntry("ternary_table", match=P4TableMatch(value=(0x10, 0xF0), small=(1, 5)), priority=7)
    assert match_text(entry, schema) == "value=0x10&&&0xf0 small=1->5 priority=7"


# ---- entries ---------------------------------------------------------------------------------------------------------


def test_an_entry_of_every_kind_of_match_there_and_back(schema: P4Schema) -> None:
    table = table_of(schema, "ternary_table")
    words = ["0x10&&&0xff", "1->5", "*", "3"]
    action = parse_action(table, table.actions[next(iter(table.actions)).id].alias, _arguments(table))
    rest, priority = split_priority(table, ["5", "10"])
    assert rest == ["5"]
    entry = P4TableEntry(table.alias, match=parse_keys(table, words), action=action, priority=priority)
    assert entry.priority == PIVOT - 10
    row = entry_row(P4TableEntry.decode_entry(entry.encode_entry(schema), schema), schema)
    assert list(row["match"].values()) == words
    assert row["priority"] == 10


def _arguments(table: Any) -> list[str]:
    return ["1" for _ in next(iter(table.actions)).params]


def test_words_that_make_no_entry(schema: P4Schema) -> None:
    table = table_of(schema, "ternary_table")
    with pytest.raises(FairlaneError, match="has 4 keys, not 1: value"):
        parse_keys(table, ["1"])
    with pytest.raises(FairlaneError, match="needs a priority as the last word"):
        split_priority(table, [])
    with pytest.raises(FairlaneError, match=f"must be between 0 and {PIVOT - 1}"):
        split_priority(table, [str(PIVOT)])
    exact = table_of(schema, "exact_table")
    assert split_priority(exact, ["5"]) == (["5"], 0)


def test_too_many_arguments(schema: P4Schema) -> None:
    table = table_of(schema, "exact_table")
    action = next(a for a in table.actions if len(a.params) == 1)
    (param,) = action.params
    assert parse_action(table, action.alias, ["3"]).args == {param.name: 3}
    with pytest.raises(FairlaneError, match=f"takes 1 argument, not 2: {param.name}"):
        parse_action(table, action.alias, ["1", "2"])
    with pytest.raises(FairlaneError, match=f"{action.alias}: argument {param.name}: 'x' is not a number"):
        parse_action(table, action.alias, ["x"])


# ---- lines -----------------------------------------------------------------------------------------------------------


def test_every_verb_has_somebody_who_does_it() -> None:
    for verb in CATALOG:
        assert callable(Line(0, [verb.name]).handler)


def test_lines_have_numbers_and_comments() -> None:
    lines = read_lines(["# all of it", "", "table_add t a 1 => 2 # why", "  show_tables"])
    assert [(line.number, line.words) for line in lines] == [
        (3, ["table_add", "t", "a", "1", "=>", "2"]),
        (4, ["show_tables"]),
    ]
    assert read_lines(["table_add t a 1#2 '=>' 2"])[0].words == ["table_add", "t", "a", "1#2", "=>", "2"]


def test_an_unknown_verb_gets_the_nearest_one(schema: P4Schema) -> None:
    with pytest.raises(FairlaneError, match=r"unknown verb 'table_ad'; did you mean 'table_add'\?"):
        arguments("table_ad", [], schema)


@pytest.mark.parametrize(
    "line",
    ["show_tables x", "table_info", "table_add t", "table_modify lpm_table", "table_delete", "counter_write c 1 2", "meter_set_rates m 1 2:3", "counter_read c 1 2", "mirroring_add 5"],
)  # fmt: skip
def test_too_few_or_too_many_words_get_the_usage(schema: P4Schema, line: str) -> None:
    verb, *words = line.split()
    with pytest.raises(FairlaneError, match=f"{verb} does not take {len(words)} words?; usage: {verb}"):
        arguments(verb, words, schema)


def test_words_become_what_the_p4info_has(schema: P4Schema) -> None:
    counter, index, *rest = arguments("counter_write", ["port_counter", "3", "5", "6"], schema)
    assert (counter.alias, index, rest) == ("port_counter", 3, [5, 6])
    (direct,) = arguments("counter_reset", ["exact_counter"], schema)
    assert direct.alias == "exact_counter"
    for verb, *words in (("counter_read", "1"), ("counter_write", "3", "5", "6")):
        with pytest.raises(FairlaneError, match="exact_counter is the direct counter of a table: it has no index"):
            arguments(verb, ["exact_counter", *words], schema)
    with pytest.raises(FairlaneError, match="index of port_counter 64 is out of range: it must be between 0 and 63"):
        arguments("counter_read", ["port_counter", "64"], schema)


def test_rates_of_meters(schema: P4Schema) -> None:
    """simple_switch_CLI's rates are units a microsecond, P4Runtime's units a second."""
    meter, index, *rates = arguments("meter_set_rates", ["port_meter", "3", "0.001:10", "2:15"], schema)
    assert (meter.alias, index, rates) == ("port_meter", 3, [(1_000, 10), (2_000_000, 15)])
    for word in ("0.25", "x:1", "inf:1", "nan:1", "-1:1", "1e30:1", "1:-1", "1:x", "1:2:3"):
        with pytest.raises(FairlaneError, match=r"RATE:BURST|burst"):
            arguments("meter_set_rates", ["port_meter", "3", word, "2:15"], schema)
