"""The reference of commands, keys and components, from `stepop list --json` and `stepop help`."""

import json
import re
import subprocess

# Where each kind of component is explained.
GUIDES = {
    "augmentation": "runtime/data/views/README.md#augment",
    "callback": "eval_out/README.md",
    "dataset": "runtime/data/datasets/README.md",
    "hook": "runtime/train/hooks/README.md",
    "injector": "iterators/extensible/README.md",
    "integration": "runtime/core/log/README.md",
    "iterator": "iterators/README.md",
    "loss": "iterators/losses/README.md",
    "metric": "iterators/metrics/README.md",
    "model": "models/README.md",
    "optimizer": "runtime/train/optim/README.md",
    "sampler": "runtime/data/README.md",
    "schedule": "runtime/train/optim/README.md",
}


def plain(text):
    """`text` in Markdown, of which only the code in backquotes means something."""
    parts = re.split(r"(`[^`]+`)", text)
    parts[::2] = [re.sub(r"([\\*_{}\[\]>|#])", r"\\\1", part.replace("&", "&amp;").replace("<", "&lt;"))
                  for part in parts[::2]]
    return "".join(parts)


def code(text):
    return f"`{text}`" if text else ""


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines) + "\n"


def key_table(heads, rows):
    """A table of keys, which style.css lays out anew on narrow screens."""
    return f'<div class="keys" markdown="1">\n\n{table(heads, rows)}</div>\n\n'


def component_pages(pages, names):
    for kind, components in names["components"].items():
        roles = {f"component {component['role']}" for component in components}
        places = [key["path"] for key in names["keys"] if roles & set(key["type"].split(" | "))]
        guide = GUIDES.get(kind)
        text = f"# Components: {kind}\n\n"
        if places:
            text += f"In a config at {', '.join(map(code, places))}. "
        text += f"The same in a terminal: `stepop list {kind}`.\n\n"
        if guide:
            text += f"The guide: [{guide.partition('/README')[0]}]({guide}).\n\n"
        for component in sorted(components, key=lambda component: component["name"]):
            role = f"*{component['role']}*: " if component["role"] != kind else ""
            text += f"## {plain(component['name'])}\n\n{role}{plain(component['about'])}\n\n"
            rows = [[code(key["name"]), code(key["default"]) if "default" in key else "required", plain(key["about"])]
                    for key in component["parameters"]]
            text += key_table(["key", "default", "meaning"], rows) if rows else ""
        pages.write(f"reference/components/{kind.replace(' ', '_')}.md", text, "")


def key_page(pages, names):
    text = ("# Keys of a config\n\nThe keys of the runtime itself. All others belong to "
            "[components](../reference/components/iterator.md); what a config is: [configs](README.md).\n\n")
    top = {}
    for key in names["keys"]:
        top.setdefault(key["path"].partition("/")[0], []).append(key)
    for name, keys in top.items():
        rows = [[code(key["path"]), plain(key["type"]), "" if key["default"] == "-" else plain(key["default"]),
                 key["about"].replace("](#", "](README.md#").replace("|", r"\|")] for key in keys]
        text += f"## {plain(name)}\n\n" + key_table(["key", "type", "default", "meaning"], rows)
    pages.write("reference/keys.md", text, "configs")  # whose README has these texts too, with their links


def command_page(pages, names, stepop):
    def help_of(*words):
        return subprocess.run([stepop, "help", *words], check=True, capture_output=True, text=True).stdout

    text = f"# Commands\n\n## stepop\n\n```{{ .text .help }}\n{help_of()}```\n\n"
    for command in names["commands"]:
        text += f"## stepop {command['name']}\n\n```{{ .text .help }}\n{help_of(command['name'])}```\n\n"
    pages.write("reference/commands.md", text)


def write_reference(pages, stepop):
    listed = subprocess.run([stepop, "list", "--json"], check=True, capture_output=True, text=True).stdout
    names = json.loads(listed)
    component_pages(pages, names)
    key_page(pages, names)
    command_page(pages, names, stepop)
    for package in ("stepop", "stepop.eval"):
        source = (pages.tree / "eval_out/python" / package.replace(".", "/") / "__init__.py").read_text()
        exported = re.search(r"__all__ = \[(.*?)\]", source, re.S)[1]
        text = f"# Python: {package}\n\nThe guide: [eval_out/python](eval_out/python/README.md).\n\n"
        for name in re.findall(r'"(\w+)"', exported):
            text += f"::: {package}.{name}\n\n"
        pages.write(f"reference/python/{package}.md", text, "")
