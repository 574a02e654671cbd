"""Checks configs against what `stepop config --schema` prints: schema.json and files as arguments.

Prints one line for each file, `ok` or the place and the reason of its first error. A config that is
laid over others need not be whole: only what it has is checked.
"""

import json
import re
import sys

import jsonschema
import yaml


class Loader(yaml.SafeLoader):
    """YAML 1.2 where configs need it: 1e-3 is a number."""


Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|^[-+]?\.(inf|nan)$"),
    list("-+0123456789."),
)
Loader.add_multi_constructor("!", lambda loader, tag, node: (
    loader.construct_mapping(node, deep=True) if isinstance(node, yaml.MappingNode) else None))


def with_text_keys(value):
    if isinstance(value, dict):
        return {str(key): with_text_keys(item) for key, item in value.items()}
    return [with_text_keys(item) for item in value] if isinstance(value, list) else value


with open(sys.argv[1], encoding="utf-8") as file:
    schema = json.load(file)
validator = jsonschema.validators.validator_for(schema)
validator.check_schema(schema)
for path in sys.argv[2:]:
    with open(path, encoding="utf-8") as file:
        config = with_text_keys(yaml.load(file, Loader))
    error = jsonschema.exceptions.best_match(validator(schema).iter_errors(config))
    place = "" if error is None else "/".join(str(part) for part in error.absolute_path)
    print("ok" if error is None else f"{place}: {error.message[:200]}", path)
