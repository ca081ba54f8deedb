"""A dict as TOML: as much of it as experiment files need. Pure."""

import json
import re

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def toml_text(table: dict, above: tuple = ()) -> str:
    """`table` has strings, numbers, booleans, lists of these, and tables. What is no table comes first: a heading would
    take it in."""
    plain = {key: value for key, value in table.items() if not isinstance(value, dict)}
    lines = [f"{key_text(key)} = {value_text(value)}\n" for key, value in plain.items()]
    for key, value in table.items():
        if isinstance(value, dict):
            path = (*above, key)
            lines += ["\n[", ".".join(map(key_text, path)), "]\n", toml_text(value, path)]
    return "".join(lines)


def key_text(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else json.dumps(key)


def value_text(value: object) -> str:
    """A string, a number or a boolean of JSON is one of TOML, too, as long as JSON escapes no more than it must."""
    if isinstance(value, list):
        return f"[{', '.join(map(value_text, value))}]"
    return json.dumps(value, ensure_ascii=False)
