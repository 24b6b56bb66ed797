# SPDX-License-Identifier: Apache-2.0
"""Where in a TOML text each key stands: `policies[0].scheme` to line and column, for errors that editors can jump to.

The text has been parsed by a real parser before: this one only keeps count, and needs to be right for valid TOML only.
"""

from __future__ import annotations

import re

Position = tuple[int, int]
"""Line and column, from 1."""

_BARE = re.compile(r"[A-Za-z0-9_-]+")


class _Scanner:
    """Walks over the text once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.found: dict[str, Position] = {}
        self._counts: dict[str, int] = {}

    def run(self) -> None:
        """Every table header and every key."""
        prefix = ""
        while self._skip(newlines=True):
            if self._text.startswith("[[", self._at):
                start = self._at
                self._at += 2
                prefix = self._resolve(self._key())
                number = self._counts.get(prefix, 0)
                self._counts[prefix] = number + 1
                self.found.setdefault(prefix, self._position(start))
                prefix = f"{prefix}[{number}]"
                self._note(prefix, start)
                self._to_line_end()
            elif self._text[self._at] == "[":
                start = self._at
                self._at += 1
                prefix = self._resolve(self._key())
                self._note(prefix, start)
                self._to_line_end()
            else:
                self._pair(prefix)

    def _resolve(self, parts: list[str]) -> str:
        """A header's path: arrays of tables on the way mean their last element."""
        path = ""
        for position, part in enumerate(parts):
            path = f"{path}.{part}" if path else part
            if position < len(parts) - 1 and path in self._counts:
                path = f"{path}[{self._counts[path] - 1}]"
        return path

    def _pair(self, prefix: str) -> None:
        start = self._at
        path = prefix
        for part in self._key():
            path = f"{path}.{part}" if path else part
            self._note(path, start)
        self._skip(newlines=False)
        self._at += 1  # the equals sign
        self._value(path)

    def _value(self, path: str) -> None:
        self._skip(newlines=True)
        if self._at >= len(self._text):
            return
        match self._text[self._at]:
            case "[":
                self._at += 1
                number = 0
                while self._skip(newlines=True) and self._text[self._at] != "]":
                    self._note(f"{path}[{number}]", self._at)
                    self._value(f"{path}[{number}]")
                    number += 1
                    self._comma()
                self._at += 1
            case "{":
                self._at += 1
                while self._skip(newlines=True) and self._text[self._at] != "}":
                    self._pair(path)
                    self._comma()
                self._at += 1
            case '"' | "'":
                self._string()
            case _:
                while self._at < len(self._text) and self._text[self._at] not in ",]}#\n":
                    self._at += 1

    def _comma(self) -> None:
        if self._skip(newlines=True) and self._text[self._at] == ",":
            self._at += 1

    def _key(self) -> list[str]:
        """The parts of a dotted key; stops behind it."""
        parts: list[str] = []
        while True:
            self._skip(newlines=False)
            if self._at < len(self._text) and self._text[self._at] in "\"'":
                start = self._at + 1
                self._string()
                parts.append(self._text[start : self._at - 1])
            else:
                bare = _BARE.match(self._text, self._at)
                parts.append(bare.group() if bare else "")
                self._at = bare.end() if bare else self._at + 1
            self._skip(newlines=False)
            if self._at < len(self._text) and self._text[self._at] == ".":
                self._at += 1
                continue
            return parts

    def _string(self) -> None:
        quote = self._text[self._at]
        long = self._text.startswith(quote * 3, self._at)
        end = quote * 3 if long else quote
        self._at += len(end)
        while self._at < len(self._text) and not self._text.startswith(end, self._at):
            self._at += 2 if quote == '"' and self._text[self._at] == "\\" else 1
        self._at += len(end)
        while long and self._at < len(self._text) and self._text[self._at] == quote:
            self._at += 1

    def _skip(self, *, newlines: bool) -> bool:
        """Over blanks, comments and, where they mean nothing, line ends; False at the end of the text."""
        while self._at < len(self._text):
            here = self._text[self._at]
            if here == "#":
                self._to_line_end()
            elif here in " \t" or (newlines and here in "\r\n"):
                self._at += 1
            else:
                return True
        return False

    def _to_line_end(self) -> None:
        while self._at < len(self._text) and self._text[self._at] != "\n":
            self._at += 1

    def _note(self, path: str, at: int) -> None:
        self.found.setdefault(path, self._position(at))

    def _position(self, at: int) -> Position:
        before = self._text.count("\n", 0, at)
        return before + 1, at - (self._text.rfind("\n", 0, at) + 1) + 1


def positions(text: str) -> dict[str, Position]:
    """Line and column of every key of a valid TOML text."""
    scanner = _Scanner(text)
    scanner.run()
    return scanner.found


def nearest(found: dict[str, Position], path: str) -> Position | None:
    """The position of a key, or of the nearest thing around it that has one."""
    while path:
        if path in found:
            return found[path]
        cut = max(path.rfind("."), path.rfind("["))
        path = path[: max(cut, 0)]
    return None
