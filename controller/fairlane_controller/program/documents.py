# SPDX-License-Identifier: Apache-2.0
"""What is stored of a program's objects: documents of the state file, each with a model."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from fairlane_controller.errors import FairlaneError
from fairlane_controller.problems import bad_config, describe
from fairlane_controller.state.store import Store

M = TypeVar("M", bound=BaseModel)


class Documents(Generic[M]):
    """Documents whose names are `prefix` and a key. Other processes change the file too: what is newer there counts."""

    def __init__(self, folder: Path | None, prefix: str, model: type[M], title: str) -> None:
        """Read them.

        Args:
            folder: The run-state folder; None: the documents are in memory only.
            prefix: The beginning of their names.
            model: The model of each; one that is not there has the model's defaults.
            title: What they are called in errors.

        Raises:
            FairlaneError: BAD_FILE, where they cannot be understood.
        """
        self.store = Store(folder)
        self._prefix, self._model, self._title = prefix, model, title
        self._found: dict[str, tuple[Any, M]] = {}
        "By key: the stamp of all documents when this one was read, and the document."
        for key in self.store.all(prefix):
            self._read(key)

    def get(self, key: str = "") -> M:
        """The document of a key; the last one that could be understood. It is parsed again only after a change of the documents."""
        with suppress(FairlaneError):
            self._read(key)
        return self._found[key][1] if key in self._found else self._model()

    def _read(self, key: str) -> None:
        stamp = self.store.stamp(self._prefix)
        if key not in self._found or self._found[key][0] != stamp:
            self._found[key] = stamp, self._parsed(self.store.get(self._prefix + key))

    def plain(self, documents: Mapping[str, M]) -> dict[str, Any]:
        """Documents by key as the state file has them."""
        return {self._prefix + key: one.model_dump(mode="json") for key, one in documents.items()}

    def write(self, documents: Mapping[str, M]) -> None:
        """Replace documents.

        Args:
            documents: The new ones, by key.

        Raises:
            FairlaneError: BAD_FILE, with the old ones in force, where they cannot be written.
        """
        self.store.put(self.plain(documents))

    def _parsed(self, document: Any) -> M:
        try:
            return self._model() if document is None else self._model.model_validate(document)
        except ValidationError as ex:
            raise bad_config(f"{self.store.path}: {self._title}", describe(ex, self._model)) from None
