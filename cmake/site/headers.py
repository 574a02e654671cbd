"""The reference of the public headers <stepop/...>, from Doxygen's XML."""

import functools
import re
import subprocess
import textwrap
from pathlib import Path
from xml.etree import ElementTree

from reference import plain

# Pages by what a user writes. A header that a public one includes and that is not here goes to the last page.
PAGES = {
    "Iterator": "runtime/train/iterator/iterator.h runtime/train/iterator/step_ops.h runtime/core/log/logs.h "
                "eval_out/eval_outputs.h runtime/data/batch.h runtime/train/iterator/context.h "
                "runtime/train/iterator/splits.h runtime/train/iterator/eval_functor.h",
    "Dataset": "runtime/data/dataset.h runtime/data/sampler.h runtime/data/views/example_function.h "
               "runtime/data/views/standardization.h runtime/data/streams/record_filter.h "
               "runtime/data/augmentations/augmentation.h runtime/data/augmentations/geometry.h "
               "runtime/data/text/tokenizer.h",
    "Network": "runtime/train/networks/network.h runtime/train/networks/networks.h "
               "runtime/train/networks/module_templates.h runtime/train/networks/evaluation_mode.h "
               "runtime/train/networks/checkpoint_modules.h runtime/train/networks/load_network.h",
    "Optimizer and schedule": "runtime/train/optim/update.h runtime/train/optim/optimizer.h "
                              "runtime/train/optim/schedule.h",
    "Loss": "iterators/losses/image_losses.h iterators/losses/adversarial.h iterators/losses/perceptual.h "
            "iterators/losses/loss_manager.h",
    "Metric": "iterators/metrics/metric.h iterators/metrics/running_metrics.h iterators/metrics/similarity.h",
    "Callback": "eval_out/callbacks/callback.h eval_out/read/eval_reader.h",
    "Hook": "runtime/train/iterator/hook.h",
    "Models that return their loss": "iterators/trainer/loss_model.h iterators/trainer/model_sampler.h",
    "ExtensibleTrainer": "iterators/extensible/step/injector.h iterators/extensible/step/loss.h "
                         "iterators/extensible/step/evaluator.h iterators/extensible/step/network_hooks.h",
    "Audio": "iterators/audio/mel.h runtime/data/datasets/resample.h",
    "Configs and registration": "runtime/core/config/config.h runtime/core/value/value.h "
                                "runtime/core/components/registry.h runtime/core/base/error.h",
    "Files and the rest": "runtime/train/checkpoint/checkpoint.h runtime/core/formats/safetensors.h "
                          "runtime/core/log/sink.h runtime/core/base/random.h",
}
DOXYGEN = """
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
MARKDOWN_SUPPORT = NO
EXTRACT_ALL = YES
QUIET = YES
WARNINGS = NO
WARN_IF_DOC_ERROR = NO
PREDEFINED = "requires(x)="
"""


@functools.lru_cache(maxsize=None)
def _lines(path):
    return Path(path).read_text().split("\n")


class Declaration:
    """A class, member, function or macro: Doxygen says where it is, its text and comment are the header's."""

    def __init__(self, element):
        place = element.find("location")
        self.kind, self.path, self.line = element.get("kind"), place.get("file"), int(place.get("line"))
        self.name = (element.findtext("name") or element.findtext("compoundname")).removeprefix("stepop::")
        lines, self.begin = _lines(self.path), self.line - 1
        # It may begin on a line before its name.
        while re.search(r"[^;{}:,\\\s]$", lines[self.begin - 1].partition("//")[0]) and lines[self.begin - 1][0] != "#":
            self.begin -= 1

    def text(self):
        text = textwrap.dedent("\n".join(re.sub(r" *//.*", "", line) for line in _lines(self.path)[self.begin :]))
        if self.kind == "define":
            return re.match(r"#define (\w+(\([^)]*\))?)", text)[1]
        depth, has_arguments = 0, False
        for i, letter in enumerate(text):
            depth += {"(": 1, ")": -1}.get(letter, 0)
            has_arguments = has_arguments or letter == ")" and self.kind == "function"
            ends = has_arguments and (letter == "{" or re.match(r":(?!:)", text[i:]) and text[i - 1] != ":")
            if depth == 0 and (letter == ";" or ends or letter == "{" and self.kind in ("class", "struct")):
                return text[:i].strip() + ("" if self.kind in ("class", "struct") else ";")

    def about(self):
        """The comment, which is Markdown; Doxygen's reading of it loses some."""
        lines, at = _lines(self.path), self.line - 1
        inside = re.search(r"///< ?(.*)", lines[at])
        found = [inside[1]] if inside else []
        while inside and lines[at + 1].strip().startswith("///<"):
            at += 1
            found.append(lines[at].strip()[4:].strip())
        above = self.begin
        while not inside and lines[above - 1].strip().startswith("///"):
            above -= 1
            found.insert(0, lines[above].strip()[3:].removeprefix(" "))
        text = re.sub(r"(`[^`]+`)|[<\[]", lambda m: m[1] or {"<": "&lt;", "[": r"\["}[m[0]], "\n".join(found))
        # Lines further in are code.
        code = r"\n\n((?: {2,}.*(?:\n|$))+)"
        return re.sub(code, lambda m: f"\n\n```cpp\n{textwrap.dedent(m[1]).strip()}\n```\n", text)


def members_text(elements, level):
    """Members in their order; one without a comment belongs to those right above it, as in the header."""
    blocks, last = [], None
    for member in sorted(map(Declaration, elements), key=lambda member: member.line):
        about = member.about()
        between = last and _lines(member.path)[last.line : member.line]
        is_next = last and not any(line.strip() in ("", "protected:", "public:") for line in between)
        if about or not blocks or (blocks[-1][1] and not is_next):
            blocks.append([[], about])
        blocks[-1][0].append(member)
        last = member
    text = ""
    for members, about in blocks:
        text += f"{level} {plain(members[0].name)}\n\n" if about else ""
        text += "```cpp\n" + "\n".join(member.text() for member in members) + f"\n```\n\n{about}\n\n"
    return text


def class_text(element):
    declared = Declaration(element)
    members = [m for m in element.iter("memberdef") if m.get("prot") != "private" and m.get("kind") != "friend"
               and not m.findtext("name").startswith("~") and "=delete" not in (m.findtext("argsstring") or "")]
    return (f"## {plain(declared.name)}\n\n```cpp\n{declared.text()}\n```\n\n{declared.about()}\n\n"
            + members_text(members, "###"))


def header_text(path, compounds):
    """What a header declares: its classes, then the rest."""
    public = [c for c in compounds if "detail" not in c.findtext("compoundname") and c.get("prot") != "private"]
    classes = [c for c in public if c.get("kind") in ("class", "struct") and c.find("location").get("file") == path]
    free = {m.get("id"): m for c in public if c.get("kind") in ("namespace", "file") for m in c.iter("memberdef")
            if m.find("location").get("file") == path and not m.findtext("name").endswith("_")}
    classes.sort(key=lambda element: int(element.find("location").get("line")))
    return "".join(map(class_text, classes)) + members_text(free.values(), "##")


def write_headers(pages, folder):
    """Writes a page for each of PAGES."""
    public = {}  # header -> the <stepop/...> that includes it
    for file in pages.files:
        if re.fullmatch(r"\w+/include/stepop/\w+\.h", file):
            for header in re.findall(r'#include "(.+)"', (pages.tree / file).read_text()):
                public.setdefault(header, f"<stepop/{file.rpartition('/')[2]}>")
    groups = {title: headers.split() for title, headers in PAGES.items()}
    placed = {header for headers in groups.values() for header in headers}
    groups[list(groups)[-1]] += sorted(set(public) - placed)
    headers = [header for group in groups.values() for header in group]
    folder.mkdir(exist_ok=True)
    settings = f"INPUT = {' '.join(headers)}\nOUTPUT_DIRECTORY = {folder}\nSTRIP_FROM_PATH = {pages.tree}\n{DOXYGEN}"
    subprocess.run(["doxygen", "-"], input=settings, text=True, check=True)
    compounds = [c for file in (folder / "xml").glob("*.xml") if file.name not in ("index.xml", "Doxyfile.xml")
                 for c in ElementTree.parse(file).getroot().iter("compounddef")]
    for title, names in groups.items():
        text = f"# C++: {title}\n\n"
        for name in filter(lambda name: "///" in Path(name).read_text(), names):
            included = public.get(name, "<stepop/stepop.h>")
            text += f"`#include {included}` — [{name}]({name})\n\n" + header_text(name, compounds)
        pages.write(f"reference/cpp/{title.lower().replace(' ', '_')}.md", text, "")
