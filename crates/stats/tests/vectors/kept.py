"""Keeps vectors as JSON beside the scripts that make them, which are run by hand. Each computes everything by another road than the crate does;
the tests read the kept JSON and need no Python."""

import json
import pathlib


def keep(name, vectors):
    """One row a line, so that a change shows as the lines it changes."""
    lines = [f"{json.dumps(key)}: {rows_text(value)}" for key, value in vectors.items()]
    pathlib.Path(__file__).with_name(name).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def rows_text(value):
    if isinstance(value, str):
        return json.dumps(value)
    return "[\n" + ",\n".join(json.dumps(row) for row in value) + "\n]"
