"""What ruamel.yaml 0.19.1 (YAML 1.2) reads, as the table that yaml_ruamel_test.cpp compares with.

    pip install ruamel.yaml && python ruamel_table.py > ruamel_table.txt

Each line is a JSON pair: a document, and its value with each scalar as [type, text], or null when
ruamel.yaml refuses it. Left out is what we refuse on purpose (keys that are no text, own tags,
several documents), and where ruamel.yaml leaves YAML 1.2's core schema: 0b11 and 1_000 are text there,
.5e1 is a float, = is text, tabs may separate. yaml-cpp reads `>+` with a newline too few.
"""

import datetime
import itertools
import json

from ruamel.yaml import YAML

SCALARS = """
0 1 -1 +1 10 010 0010 -010 0x10 0xFF 0o17 12345678901 9223372036854775807 -9223372036854775808
1.0 1. .5 -.5 +.5 1e3 1E3 1e-3 1e+3 1.5e3 -1.5E-03 1.e3 0.1 1e22 12e03 .inf -.inf +.inf .Inf .INF
.nan .NaN .NAN inf nan e3 1e . .. - + -- 1.2.3 1.2e3.4 true True TRUE false False FALSE tRUE yes no on off
Yes NO y n null Null NULL ~ nUll abc a.b a-b a/b a:b a#b http://a.b/c 12:30 a=b a+b a,b a'b a"b (a) $a ^a
v1.2 0xG 0o8 1a _1 /a ./a ../a \\\\a
'' 'a' 'it''s' '1' 'true' "" "a" "1" "a\\nb" "\\x41\\u00e4" "\\t" "\\\\" "a\\"b" "1e-3" "null"
""".split()

DOCUMENTS = [
    "a: 1\nb: 2\n", "a:\n  b:\n    c: 1\n", "a:\n- 1\n- 2\n", "a:\n  - 1\n  -\n    - 2\n", "- - 1\n  - 2\n- 3\n",
    "- a: 1\n  b: 2\n- c: 3\n", "a: [1, 2, [3, [4]]]\n", "a: {b: 1, c: {d: 2}}\n", "a: [{b: 1}, {c: 2, d: 3}]\n",
    "a: [b: 1, c: 2]\n", "a: []\nb: {}\n", "a: [1,\n  2,\n  3\n  ]\n", "a: {b: 1,\n  c: 2}\n", "a: [1, 2,]\n",
    "a: {b: 1,}\n", "a:\nb:\n", "a: # comment\n  1 # more\n# end\n", "# only\na: 1\n\n\n# end", "a:   1   \n",
    "a: one two  three\n", "a: one\n  two\n  three\n", "a: one\n\n  two\n", "a: 'one\n  two'\n", "a: 'one\n\n  two'\n",
    'a: "one\n  two"\n', 'a: "one\\\n  two"\n', 'a: "one \\\n  two"\n', "a: |\n  one\n  two\n", "a: |-\n  one\n  two\n",
    "a: |+\n  one\n\nb: 1\n", "a: |\n  one\n\n\nb: 1\n", "a: |2\n   one\n  two\n", "a: |\n    one\n      two\n",
    "a: >\n  one\n  two\n", "a: >-\n  one\n  two\n\n  three\n", "a: >\n  one\n    two\n  three\n", 
    "a: |\n  # no comment\n  x: y\n", "a: &x 1\nb: *x\n", "a: &x [1, 2]\nb: *x\nc: [*x, *x]\n",
    "a: &x {p: 1}\nb:\n  <<: *x\n  q: 2\n", "a: &x {p: 1}\nb: &y {p: 2, q: 2}\nc:\n  <<: [*x, *y]\n  r: 3\n",
    "a: &x {p: 1}\nb:\n  p: 5\n  <<: *x\n", "? a\n: 1\n", "? a\n: - 1\n  - 2\n", "'a b': 1\n\"c\": 2\n", "a b: c d\n",
    "a: b#c\n", "a: b #c\n", "a: 'b #c'\n", "a: -1\n", "a: --- b\n", "---\na: 1\n", "---\na: 1\n...\n",
    "%YAML 1.2\n---\na: 1\n", "a: !!str 1\nb: !!int 2\nc: !!float 3.0\n", "a: !!str true\n",
    "a:\r\n  b: 1\r\nc: 2\r\n", "a: \u00e4\u4e2d\U0001f600\n", "\u00e4: 1\n", "a: 'b: c'\n", "a: b:c\n", "a: :b\n",
    "a: ?b\n", "a: -b\n", "a: [-1, -2]\n", "a: [a b, c d]\n", "a: {x y: z w}\n", 'a: {"b":1}\n', 'a: {"b": c}\n',
    "a: [http://x.y]\n", "a: {b: http://x.y}\n", "a:\n  - b:\n      - c\n", "a:\n-\n  b: 1\n", "-\n- a\n", "a:\n  - |\n    x\n  - y\n",
    "&x a: 1\n", "a: \"\\u2028\\L\\P\\x85\\xa0\\e\\0\\/\"\n", "a: 'x'   \n", "a: [ 'x' , \"y\" ]\n", "a: [a, [b, c], {d: e}]\n",
    "a: yes\nb: no\non: off\n", "a: 2026-11-21x\n", "a: [\t1\t]\n",
]


def typed(value):
    """The value with its types spelled out, as JSON."""
    if isinstance(value, dict):
        return {"map": [[str(k), typed(v)] for k, v in value.items()]}
    if isinstance(value, list):
        return {"list": [typed(v) for v in value]}
    if value is None:
        return ["null", ""]
    if isinstance(value, bool):
        return ["bool", str(value).lower()]
    if isinstance(value, int):
        return ["int", str(value)]
    if isinstance(value, float):
        return ["float", value.hex()]
    return ["text", str(value)]


yaml = YAML(typ="safe", pure=True)
scalars = [s.replace("\\\\", "\\") for s in SCALARS]
documents = DOCUMENTS + [f"a: {s}\n" for s in scalars] + [f"- {s}\n" for s in scalars] + [f"a: [{s}]\n" for s in scalars]
for document in documents:
    try:
        value = yaml.load(document)
    except Exception:
        print(json.dumps([document, None]))
        continue
    print(json.dumps([document, typed(value)]))
