"""Checks the links of a built site."""

from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    def __init__(self, file):
        super().__init__()
        self.ids, self.targets = {"", "__"}, []
        self.feed(file.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id" or (tag == "a" and name == "name"):
                self.ids.add(value)
            elif name in ("href", "src") and value is not None:
                self.targets.append(value)


def problems_of(site):
    """A line for each link, picture and anchor that leads nowhere inside of the site."""
    pages = {file: _Page(file) for file in site.rglob("*.html")}
    problems = []
    for file, page in pages.items():
        for target in page.targets if file.name != "404.html" else []:  # which is shown at any address
            url = urlsplit(target)
            if url.scheme or url.netloc:
                continue
            to = (file.parent / unquote(url.path)).resolve() if url.path else file
            to = to / "index.html" if to.is_dir() else to
            if not to.is_file():
                problems.append(f"{file.relative_to(site)}: {target}: no such file")
            elif to in pages and unquote(url.fragment) not in pages[to].ids:
                problems.append(f"{file.relative_to(site)}: {target}: no such place in {to.relative_to(site)}")
    return problems
