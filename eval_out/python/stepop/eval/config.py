"""The config of a run, out of the attributes of a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Mapping

from .errors import EvalError


def read_config(path: Path, attributes: Mapping[str, Any]) -> Dict[str, Any]:
    """The resolved config with its types. Throws EvalError when the file has none."""
    text = attributes.get("config_json")
    if isinstance(text, str):
        try:
            return _mapping(json.loads(text))
        except ValueError as error:
            raise EvalError(f"{path}: cannot read its config: {error}") from error
    text = attributes.get("config")
    if not isinstance(text, str):
        raise EvalError(f"{path}: it was written without a config")
    try:
        import yaml
    except ImportError:
        raise EvalError(
            f"{path}: it has its config as YAML only, which needs PyYAML: pip install pyyaml; the "
            f'text itself is attributes["config"]'
        ) from None
    try:
        return _mapping(without_escapes(yaml.safe_load(text)))
    except (yaml.YAMLError, ValueError) as error:
        raise EvalError(f"{path}: cannot read its config: {error}") from error


def _mapping(value: Any) -> Dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("it is no map")
    return value


def without_escapes(value: Any) -> Any:
    """The YAML has a brace that begins no reference twice."""
    if isinstance(value, dict):
        return {key: without_escapes(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_escapes(item) for item in value]
    if isinstance(value, str) and "{{" in value:
        return value.replace("{{", "{").replace("}}", "}")
    return value
