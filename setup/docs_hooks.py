# SPDX-License-Identifier: Apache-2.0
"""What the documentation site (mkdocs.yml) does beyond plain MkDocs: pages from outside docs/, pages made from the code, equations.

- A pattern in the navigation stands for the files that match it.
- The READMEs of the rooms are pages. Other files of the repository that a page links to are copied into the site.
- Equations (`$…$`, as on GitHub) become MathML when the site is built: nothing is loaded when a page is read.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docs_reference
import docs_tables
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
ROOMS = {
    **{f"rooms/{name}.md": ROOT / name / "README.md" for name in ("controller", "hosts", "lab", "p4src", "ptf_tests", "switch")},
    "rooms/differences.md": ROOT / "switch" / "crates" / "conformance" / "differences.md",
    **{f"project/{name}.md": ROOT / f"{name.upper()}.md" for name in ("changelog", "contributing", "security", "specification")},
}  # fmt: skip
"""Pages of the site that lie outside docs/."""
_LINK = re.compile(r"(?P<text>!?\[(?:[^][]|\[[^]]*\])*\])\((?P<link>[^()\s#]+)(?P<anchor>#[^()\s]*)?\)")
_CODE = re.compile(r"(^ *```.*?^ *```|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
_log = get_plugin_logger("fairlane")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Patterns of the navigation."""
    config.nav = list(_expanded(config.nav or [], Path(config.docs_dir)))
    return config


def _expanded(entries: list[Any], docs: Path) -> Iterator[Any]:
    named = {entry for entry in entries if isinstance(entry, str)}
    for entry in entries:
        if isinstance(entry, dict):
            yield {title: list(_expanded(below, docs)) if isinstance(below, list) else below for title, below in entry.items()}  # fmt: skip
        elif "*" in entry:
            found = sorted(path.relative_to(docs).as_posix() for path in docs.glob(entry))
            yield from (name for name in found if name not in named)
        else:
            yield entry


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Pages from outside docs/, and pages made from the code."""
    for uri, path in ROOMS.items():
        files.append(File.generated(config, uri, abs_src_path=str(path)))
    for uri, text in {**docs_reference.pages(), **docs_tables.pages()}.items():
        files.append(File.generated(config, uri, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links between the repository's files as links between the site's; tables within <details>."""
    source = Path(page.file.abs_src_path or config.docs_dir)
    markdown = re.sub(r"\A<!--.*?-->\n", "", markdown, flags=re.DOTALL)  # before its title, which would not be found
    if page.file.src_uri.startswith("results/"):
        page.meta["hide"] = ["toc"]  # room for wide tables
    parts = _CODE.split(markdown.replace("<details>", '<details markdown="1">'))
    # `[`name`](file)`: code within a link's text is put back before links are looked for.
    text = "".join(
        part if index % 2 == 0 or not part.lstrip().startswith("```") else "\0" for index, part in enumerate(parts)
    )
    blocks = iter([part for index, part in enumerate(parts) if index % 2 and part.lstrip().startswith("```")])
    text = _LINK.sub(lambda found: _linked(found, source, page, config, files), text)
    return re.sub("\0", lambda _found: next(blocks), text)


def _linked(found: re.Match[str], source: Path, page: Page, config: MkDocsConfig, files: Files) -> str:
    text, link, anchor = found["text"], found["link"], found["anchor"] or ""
    if re.match(r"[a-z]+:", link) or page.file.src_uri.startswith("reference/"):
        return found[0]
    target = Path(os.path.normpath(source.parent / link))
    if (target / "README.md").is_file():
        target /= "README.md"
    if target.is_dir():
        return text[1:-1]
    uri = _uri(target, config, files)
    if uri is None:
        _log.warning(f"{page.file.src_uri}: the link {link} leads nowhere")
        return found[0]
    if re.fullmatch(r"\[[\w/.-]+\.md\]", text) and (
        title := re.search(r"^# (.+)", target.read_text(encoding="utf-8"), re.MULTILINE)
    ):
        text = f"[{title[1]}]"  # a reader of the site knows pages by their titles
    return f"{text}({os.path.relpath(uri, Path(page.file.src_uri).parent)}{anchor})"


def _uri(target: Path, config: MkDocsConfig, files: Files) -> str | None:
    """Where a file of the repository is in the site; a file that is not there yet is added."""
    if target == ROOT / "README.md":
        return "index.md"
    for uri, path in ROOMS.items():
        if path == target:
            return uri
    if not target.is_file() or not target.is_relative_to(ROOT):
        return None
    if target.is_relative_to(config.docs_dir):
        return target.relative_to(config.docs_dir).as_posix()
    uri = f"files/{target.relative_to(ROOT).as_posix()}"
    if files.get_file_from_path(uri) is None:
        files.append(File.generated(config, uri, abs_src_path=str(target)))
    return uri


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Equations as MathML; `\\|` of code in a table, which GitHub needs, as `|`."""
    del page, config, files
    content = re.sub(r"<td.*?</td>", lambda found: found[0].replace("\\|", "|"), content, flags=re.DOTALL)
    content = re.sub(
        r'<span class="arithmatex">\\\((.*?)\\\)</span>',
        lambda found: _mathml(found[1], "inline"),
        content,
        flags=re.DOTALL,
    )
    return re.sub(
        r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>',
        lambda found: _mathml(found[1], "block"),
        content,
        flags=re.DOTALL,
    )


def _mathml(latex: str, display: str) -> str:
    # Adjacent letters are one name (BW, the "res" of T_res), not a product.
    named = re.sub(r"(?<![\\A-Za-z])([A-Za-z]{2,})", r"\\text{\1}", html.unescape(latex).strip())
    return convert(named, display=display)
