"""The docstrings of the Python packages as Markdown, for mkdocstrings."""

import re

import griffe


class PlainDocstrings(griffe.Extension):
    """Names in <> and lines of a session mean nothing in Markdown."""

    def on_object(self, *, obj, **_):
        if obj.docstring:
            text = re.sub(r"(`[^`]+`)|<", lambda m: m[1] or "&lt;", obj.docstring.value)
            obj.docstring.value = re.sub(r"(?m)^>>> (?:.+\n?)+", lambda m: f"```pycon\n{m[0].strip()}\n```\n", text)
