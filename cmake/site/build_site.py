"""Builds the documentation site: build_site.py TREE STEPOP SITE

The pages are the tree's Markdown files as they lie, and a reference that is made of what the program STEPOP, the public
headers and the Python packages say. They are laid out in SITE_pages; MkDocs turns them into the folder SITE.
"""

import json
import logging
import os
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

from check_site import problems_of
from headers import write_headers
from mkdocs.commands.build import build
from mkdocs.config import load_config
from reference import write_reference

here = Path(__file__).parent
# A block of code, code in a line, or a link.
PARTS = re.compile(
    r"^ *(?P<fence>`{3,}|~{3,}).*?^ *(?P=fence) *$|(?P<code>(?P<quotes>`+)[^`].*?(?P=quotes))"
    r"|(?P<label>\[(?:[^][]|\[[^][]*\])*\])\((?P<target>[^)\s]+)\)",
    re.M | re.S,
)


class Pages:
    """Writes pages, and sends their links to files of the tree to pages that show them."""

    def __init__(self, tree, folder):
        self.tree, self.folder = tree, folder
        self.shown = set()
        listed = subprocess.run(["git", "-C", tree, "ls-files", "-z"], capture_output=True, text=True)
        if listed.returncode:
            sys.exit(f"make docs: the pages are the files that git tracks: {listed.stderr.strip()}")
        self.files = sorted(file for file in listed.stdout.split("\0") if (tree / file).is_file())

    def write(self, name, text, base=None):
        """Writes page `name`. Its links are from the folder `base`, by default from its own."""
        own = posixpath.dirname(name)
        base = own if base is None else base

        def changed(match):
            if match["fence"]:  # ```python look.py
                return re.sub(r"\A( *[`~]{3,}\w+) ([\w./-]+)$", r'\1 title="\2"', match[0], flags=re.M)
            if match["code"]:  # GitHub reads \| in a table's code as |, Python-Markdown as it stands
                in_table = text.startswith("|", text.rfind("\n", 0, match.start()) + 1)
                return match[0].replace(r"\|", "|") if in_table else match[0]
            target, hash, anchor = (match["target"] or "").partition("#")
            if not target or re.match(r"\w+:", target):
                return match[0]
            page = self.page_of(posixpath.normpath(posixpath.join(base, target)))
            return f"{match['label']}({posixpath.relpath(page, own or '.')}{hash}{anchor})"

        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(PARTS.sub(changed, text))

    def page_of(self, path):
        """The page, or picture, for a file or a folder of the tree."""
        inside = [file for file in self.files if file.startswith(path + "/")]
        if path.endswith((".md", ".png", ".svg", ".jpg")) or path.startswith("reference/"):
            return path
        if path.endswith(".ipynb") and path in self.files:
            return path + ".md"
        if path + "/README.md" in inside:
            return path + "/README.md"
        page = f"source/{path}.md"
        if (path in self.files or inside) and path not in self.shown:
            self.shown.add(path)
            head = f"---\nsearch: {{exclude: true}}\n---\n\n# `{path}`\n\n"
            if inside:
                text = "".join(f"- [{file[len(path) + 1 :]}]({posixpath.relpath(file, path)})\n" for file in inside)
                self.write(page, head + text, path)
            else:
                text = (self.tree / path).read_text()
                language = {".h": "cpp", ".cpp": "cpp", ".py": "python", ".yaml": "yaml"}.get(Path(path).suffix, "text")
                self.write(page, f"{head}~~~~~{language}\n{text}\n~~~~~\n")
        return page

    def write_tree(self):
        for file in self.files:
            if file.endswith(".md"):
                self.write(file, (self.tree / file).read_text())
            elif file.endswith((".png", ".svg", ".jpg")) and not file.startswith("tests/data/"):
                (self.folder / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.tree / file, self.folder / file)
        for file in filter(lambda file: file.endswith(".ipynb"), self.files):
            cells = json.loads((self.tree / file).read_text())["cells"]
            texts = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
            self.write(file + ".md", "\n\n".join(f"```python\n{text}\n```" if kind == "code" else text
                                                 for kind, text in texts))


def navigation_of(entries, pages):
    """The navigation without the pages that are not there, and with all that have no other place."""
    used = set()

    def title(page):
        found = re.search(r"^# (.+)", (pages / page).read_text(), re.M)
        return found[1].rpartition(": ")[2]

    def there(entries):
        found = []
        for entry in entries:
            (name, target), = entry.items()
            if isinstance(target, list):
                target = there(target)
            elif target.endswith("/"):
                target = [{title(page): page} for page in sorted(
                    str(file.relative_to(pages)) for file in pages.glob(target + "*.md"))]
                used.update(page for item in target for page in item.values())
            elif target != "...":
                target += ".md" if target.endswith(".ipynb") else ""
                used.add(target)
                target = (pages / target).is_file() and target
            if target:
                found.append({name: target})
        return found

    def fill(entries):
        for entry in entries:
            (name, target), = entry.items()
            if target == "...":
                rest = {str(file.relative_to(pages)) for file in pages.rglob("*.md")} - used
                rest = sorted(page for page in rest if not page.startswith("source/"))
                entry[name] = [{page.removesuffix("/README.md"): page} for page in rest]
            elif isinstance(target, list):
                fill(target)
        return entries

    return fill(there(entries))


def main():
    tree, stepop, site = (Path(word).resolve() for word in sys.argv[1:])
    os.chdir(tree)
    folder = site.with_name(site.name + "_pages")
    shutil.rmtree(folder, ignore_errors=True)
    pages = Pages(tree, folder)
    pages.write_tree()
    for file in ("style.css", "iframe-worker.js"):
        shutil.copyfile(here / file, folder / file)
    write_reference(pages, stepop)
    write_headers(pages, folder.with_name(site.name + "_doxygen"))
    logging.basicConfig(level=logging.WARNING, format="%(message)s")  # of MkDocs, which fails after a warning
    repository = os.environ.get("GITHUB_REPOSITORY")
    url = f"{os.environ.get('GITHUB_SERVER_URL')}/{repository}" if repository else None
    config = load_config(str(here / "mkdocs.yml"), docs_dir=str(folder), site_dir=str(site), strict=True, repo_url=url)
    config["nav"] = navigation_of(config["nav"], folder)
    build(config)
    problems = problems_of(site)
    print("\n".join(problems[:50]) or f"the documentation is {site}/index.html")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
