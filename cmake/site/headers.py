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
    "ExtensibleTrainer": "iterators/extensible/injector.h iterators/extensible/loss.h "
                         "iterators/extensible/evaluator.h iterators/extensible/network_hooks.h",
    "Audio": "iterators/audio/mel.h runtime/data/datasets/resample.h",
    "Configs and registration": "runtime/core/config/config.h runtime/core/config/value.h "
                                "runtime/core/config/registry.h runtime/core/base/error.h",
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


def about(element):
    """The comment of a declaration in its header, which is Markdown; Doxygen's reading of it loses some."""
    place = element.find("location")
    lines = _lines(place.get("file"))
    at = int(place.get("line")) - 1
    inside = re.search(r"///< ?(.*)", lines[at])
    if inside:
        found = [inside[1]]
        while lines[at + 1].strip().startswith("///<"):
            at += 1
            found.append(lines[at].strip()[4:].strip())
    else:
        while _continues(lines[at - 1].strip()):  # a declaration of several lines
            at -= 1
        begin = at
        while lines[begin - 1].strip().startswith("///") and "///<" not in lines[begin - 1]:
            begin -= 1
        found = [line.strip()[3:].removeprefix(" ") for line in lines[begin:at]]
    text = re.sub(r"(`[^`]+`)|[<\[]", lambda m: m[1] or {"<": "&lt;", "[": r"\["}[m[0]], "\n".join(found))
    # Lines further in are code.
    return re.sub(r"\n\n((?: {2,}.*(?:\n|$))+)", lambda m: f"\n\n```cpp\n{textwrap.dedent(m[1]).strip()}\n```\n", text)


def _continues(line):
    return bool(line) and not line.startswith(("//", "#")) and not line.endswith((";", "}", "{", ":", ",", "\\"))


@functools.lru_cache(maxsize=None)
def _lines(path):
    return Path(path).read_text().split("\n")


def flat(element):
    return "" if element is None else "".join(element.itertext())


def tidy(text):
    """Doxygen's spelling as clang-format has it."""
    text = text.replace("stepop::", "")
    text = re.sub(r" ([&*]+) ?", r"\1 ", text.replace("< ", "<").replace(" >", ">"))
    text = re.sub(r" (?=[),>])", "", text)
    return re.sub(r" ?(?<![=!<>])=(?!=) ?", " = ", text)


def template_of(element):
    found = element.find("templateparamlist")
    if found is None:
        return ""
    each = [" ".join(filter(None, (flat(p.find("type")), flat(p.find("declname"))))) for p in found]
    return f"template <{', '.join(each)}>\n"


def signature(member):
    """The declaration of a member, as in its header."""
    kind, name = member.get("kind"), member.find("name").text
    if kind == "define":
        names = [flat(p) for p in member.findall("param/defname")]
        return f"{name}({', '.join(names)})"
    if kind == "enum":
        values = [flat(v.find("name")) + " " + flat(v.find("initializer")) for v in member.findall("enumvalue")]
        return f"enum class {name} {{ {', '.join(value.strip() for value in values)} }};"
    if kind == "typedef":
        return f"{template_of(member)}using {name} = {tidy(flat(member.find('type')))};"
    prefix = "".join(word + " " for word, key, value in (
        ("static", "static", "yes"), ("explicit", "explicit", "yes"), ("virtual", "virt", "virtual"),
        ("virtual", "virt", "pure-virtual")) if member.get(key) == value)
    start = template_of(member) + prefix + " ".join(filter(None, (flat(member.find("type")), name)))
    end = flat(member.find("argsstring"))
    if kind == "variable":
        end += " " + flat(member.find("initializer")) if member.find("initializer") is not None else ""
    whole = tidy(start + end).strip() + ";"
    if len(whole) > 96:  # a line for each argument
        open, close = whole.find("("), whole.rfind(")")
        arguments = re.split(r", (?![^<(]*[>)](?!$))", whole[open + 1 : close])
        whole = whole[: open + 1] + ",".join("\n    " + argument for argument in arguments) + whole[close:]
    return whole


class Header:
    """What a header declares, in its order."""

    def __init__(self, path, compounds):
        self.path = path
        of_file = [c for c in compounds if c.find("location") is not None and c.find("location").get("file") == path]
        self.classes = [c for c in of_file if c.get("kind") in ("class", "struct")
                        and "detail" not in flat(c.find("compoundname")) and c.get("prot") != "private"]
        self.free = [m for c in compounds if c.get("kind") in ("namespace", "file")
                     and "detail" not in flat(c.find("compoundname")) for m in c.iter("memberdef")
                     if m.find("location").get("file") == path and not flat(m.find("name")).endswith("_")]
        self.free = list({m.get("id"): m for m in self.free}.values())


def line_of(element):
    return int(element.find("location").get("line"))


def blocks_of(members):
    """Members in their order; one without a description belongs to those right above it, as in the header."""
    blocks, last = [], None
    for member in sorted(members, key=line_of):
        text = about(member)
        between = last and _lines(member.find("location").get("file"))[line_of(last) : line_of(member)]
        is_next = last is not None and not any(line.strip() in ("", "protected:", "public:") for line in between)
        if text or not blocks or (blocks[-1][1] and not is_next):
            blocks.append([[], text])
        blocks[-1][0].append(member)
        last = member
    return blocks


def members_text(members, level):
    text = ""
    for group, description in blocks_of(members):
        name = flat(group[0].find("name"))
        text += f"{level} {plain(name)}\n\n" if description else ""
        text += "```cpp\n" + "\n".join(map(signature, group)) + f"\n```\n\n{description}\n\n"
    return text


def class_text(element):
    name = flat(element.find("compoundname")).removeprefix("stepop::")
    bases = ", ".join(flat(base) for base in element.findall("basecompoundref"))
    head = f"{template_of(element)}{element.get('kind')} {name}{' : public ' + bases if bases else ''}"
    members = [m for m in element.iter("memberdef") if m.get("prot") != "private" and m.get("kind") != "friend"
               and not flat(m.find("name")).startswith("~") and "=delete" not in flat(m.find("argsstring"))]
    return (f"## {plain(name)}\n\n```cpp\n{tidy(head)}\n```\n\n{about(element)}\n\n" + members_text(members, "###"))


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
            header = Header(name, compounds)
            included = public.get(name, "<stepop/stepop.h>")
            text += f"`#include {included}` — [{name}]({name})\n\n"
            parts = [(line_of(c), class_text(c)) for c in header.classes]
            free = sorted(header.free, key=line_of)
            text += "".join(part for _, part in sorted(parts))
            text += members_text(free, "##")
        pages.write(f"reference/cpp/{title.lower().replace(' ', '_')}.md", text, "")
