"""The documentation site: it builds without a warning, its links lead somewhere, and its reference has everything."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path

tree = Path(__file__).resolve().parents[3]
stepop = Path(os.environ["STEPOP_BUILD"]) / "stepop"
sys.path.insert(0, str(tree / "cmake/site"))

try:
    import material  # noqa: F401
    import mkdocstrings  # noqa: F401
except ImportError as error:
    sys.exit(f"{error}: run `make deps-docs`")
if shutil.which("doxygen") is None:
    sys.exit("doxygen is not installed: run `make deps-docs`")
if not (tree / ".git").exists():
    sys.exit(f"{tree} is no repository of git, which says what the pages are")

from build_site import Pages, navigation_of  # noqa: E402
from check_site import problems_of  # noqa: E402
from reference import plain  # noqa: E402


class Ids(HTMLParser):
    def __init__(self, file):
        super().__init__()
        self.ids = set()
        self.feed(file.read_text())

    def handle_starttag(self, tag, attributes):
        self.ids.update(value for name, value in attributes if name == "id")


def ids_of(folder):
    return {id for file in folder.rglob("*.html") for id in Ids(file).ids}


def said_by(*words):
    return subprocess.run([stepop, *words], check=True, capture_output=True, text=True).stdout


class TheSite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.site = Path(folder.name) / "site"
        words = [sys.executable, "-B", tree / "cmake/site/build_site.py", tree, stepop, cls.site]
        cls.built = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert cls.built.returncode == 0, cls.built.stdout

    def test_it_is_built_without_a_warning_and_every_link_leads_somewhere(self):
        self.assertEqual(self.built.stdout, f"the documentation is {self.site}/index.html\n")

    def test_every_readme_is_a_page_of_the_navigation(self):
        listed = subprocess.run(["git", "-C", tree, "ls-files", "*.md"], check=True, capture_output=True, text=True)
        pages = [re.sub(r"README\.md$", "index.html", file).replace(".md", ".html") for file in listed.stdout.split()]
        # The page's own place in the navigation is marked.
        self.assertEqual([page for page in pages if "md-nav__link--active" not in (self.site / page).read_text()], [])

    def test_every_component_of_the_schema_has_its_place_and_its_keys(self):
        definitions = json.loads(said_by("config", "--schema"))["definitions"]
        components = [name for name in definitions if ":" in name]
        self.assertGreater(len(components), 200)
        kinds = {component["role"].replace(" ", "_"): kind
                 for kind, listed in json.loads(said_by("list", "--json"))["components"].items() for component in listed}
        missing = []
        for name in components:
            role, _, component = name.partition(":")
            text = (self.site / f"reference/components/{kinds[role]}.html").read_text()
            _, heading, part = text.partition(f'">{component}<a class="headerlink"')
            part = part.partition("<h2")[0]
            keys = [key for key, schema in definitions[name].get("properties", {}).items() if schema is not True]
            if name.startswith("hook:"):
                keys.remove("when")  # of every hook: one of the runtime's own keys
            missing += [] if heading else [name]
            missing += [f"{name}: {key}" for key in keys
                        if not re.search(rf"<code>{re.escape(key)}(/[^<]*)?</code>", part)]
        self.assertEqual(missing, [])

    def test_every_key_of_the_runtime_has_its_place(self):
        rows = (tree / "runtime/train/keys/own_key_table.cpp").read_text()
        keys = re.findall(r'^    \{"([^"]+)",', rows, re.M)
        self.assertGreater(len(keys), 100)
        page = self.site / "reference/keys.html"
        text, ids = page.read_text(), Ids(page).ids
        self.assertEqual([key for key in keys if f"<td><code>{key}</code></td>" not in text], [])
        self.assertEqual([key for key in keys if key.partition("/")[0] not in ids], [])
        # What style.css lays out anew on narrow screens: each table of the page.
        self.assertEqual(text.count('<div class="keys">\n<table>'), text.count("<table>"))

    def test_every_command_of_the_help_has_its_place_with_its_own_help(self):
        commands = re.findall(r"^  ([a-z]+) {2,}\S", said_by("help"), re.M)
        self.assertGreater(len(commands), 15)
        page = self.site / "reference/commands.html"
        self.assertEqual({f"stepop-{command}" for command in commands} - Ids(page).ids, set())
        self.assertTrue("stepop sweep sweep.yaml --jobs 2" in re.sub(r"<[^>]+>", "", page.read_text()))

    def test_every_class_and_registration_of_a_public_header_has_its_place(self):
        ids = ids_of(self.site / "reference/cpp")
        missing, count = [], 0
        for file in [*tree.glob("runtime/include/stepop/*.h"), *tree.glob("iterators/include/stepop/*.h")]:
            for header in re.findall(r'#include "(.+)"', file.read_text()):
                pattern = r"^(?:class|struct) (?:\w+ )?(\w+)(?:[^;\n]*)\{|^#define (STEPOP_REGISTER_\w+)"
                for name in map("".join, re.findall(pattern, (tree / header).read_text(), re.M)):
                    count += 1
                    missing += [] if any(id.endswith(name.lower()) for id in ids) else [f"{header}: {name}"]
        self.assertEqual(missing, [])
        self.assertGreater(count, 80)

    def test_a_member_has_its_signature_and_the_comment_of_its_header(self):
        text = re.sub(r"<[^>]+>", "", (self.site / "reference/cpp/optimizer_and_schedule.html").read_text())
        self.assertTrue("void share(World&amp; world, bool shards = false);" in text)
        self.assertTrue("gradients are summed over the processes of world, which must outlive this," in text)

    def test_every_name_that_the_python_packages_export_has_its_place(self):
        ids = ids_of(self.site / "reference/python")
        for package, count in (("stepop", 17), ("stepop.eval", 15)):
            source = (tree / "eval_out/python" / package.replace(".", "/") / "__init__.py").read_text()
            names = re.findall(r'^    "(\w+)",$', source.partition("\n]")[0], re.M)
            self.assertGreaterEqual(len(names), count)
            self.assertEqual({f"{package}.{name}" for name in names} - ids, set())


class ItsParts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def write(self, **files):
        for name, text in files.items():
            (self.folder / f"{name}.html").write_text(text)

    def test_a_link_that_leads_nowhere_is_named_with_its_page(self):
        self.write(a='<a href="b.html#here">x</a><a href="b.html#there">x</a><img src="c.png">'
                     '<a href="https://d.e">x</a>',
                   b='<h2 id="here">x</h2>')
        self.assertEqual(problems_of(self.folder), ["a.html: b.html#there: no such place in b.html",
                                                    "a.html: c.png: no such file"])

    def test_links_to_sources_become_pages_and_code_stays(self):
        subprocess.run(["git", "init", "-q", self.folder], check=True)
        (self.folder / "a").mkdir()
        (self.folder / "a/x.cpp").write_text("int x;\n")
        subprocess.run(["git", "-C", self.folder, "add", "."], check=True)
        pages = Pages(self.folder, self.folder / "pages")
        pages.write("docs/README.md", "[x](../a/x.cpp) `[x](../a/x.cpp)` [all](../a)\n\n| `a\\|b` |\n"
                                      "```py y.py\n[y](y.cpp)\n```\n")
        self.assertEqual((self.folder / "pages/docs/README.md").read_text(),
                         "[x](../source/a/x.cpp.md) `[x](../a/x.cpp)` [all](../source/a.md)\n\n| `a|b` |\n"
                         '```py title="y.py"\n[y](y.cpp)\n```\n')
        self.assertIn("int x;", (self.folder / "pages/source/a/x.cpp.md").read_text())
        self.assertIn("(a/x.cpp.md)", (self.folder / "pages/source/a.md").read_text())

    def test_a_folder_that_is_no_repository_is_an_error(self):
        with self.assertRaisesRegex(SystemExit, "make docs: the pages are the files that git tracks: .*not a git rep"):
            Pages(self.folder, self.folder / "pages")

    def test_the_navigation_leaves_out_what_is_not_there_and_takes_the_rest(self):
        for name in ("a", "b", "c/README"):
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / f"{name}.md").write_text("# x\n")
        entries = [{"A": [{"a": "a.md"}, {"gone": "gone.md"}]}, {"Gone": [{"gone": "gone.md"}]}, {"Rest": "..."}]
        self.assertEqual(navigation_of(entries, self.folder),
                         [{"A": [{"a": "a.md"}]}, {"Rest": [{"b.md": "b.md"}, {"c": "c/README.md"}]}])

    def test_a_text_means_nothing_in_markdown_but_its_code(self):
        self.assertEqual(plain("a_b <c> [d](e) `f_<g>`"), r"a\_b &lt;c\> \[d\](e) `f_<g>`")


if __name__ == "__main__":
    unittest.main()
