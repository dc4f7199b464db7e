#!/usr/bin/env python3
"""Validates scalemark records against docs/schema by their kind.

usage: validate_records.py FILE_OR_FOLDER...     (folders: every *.json below them)
Exit 1 when any record is invalid or when there was nothing to validate.
"""
import json
import pathlib
import sys

import jsonschema
from referencing import Registry, Resource

SCHEMAS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "schema"
# Below these keys null is a value (an unset option, "built without"), not something unknown.
NULL_IS_A_VALUE = {"config", "build", "environment"}


def load_validators():
    schemas = {path.name: json.loads(path.read_text()) for path in SCHEMAS.glob("*.schema.json")}
    registry = Registry().with_resources(
        [(name, Resource.from_contents(schema)) for name, schema in schemas.items()])
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    return {name.split(".")[0]: jsonschema.Draft202012Validator(schema, registry=registry)
            for name, schema in schemas.items() if name != "common.schema.json"}


def refuse_constant(word):
    raise ValueError(f"{word} is not JSON")


def nulls(value, path=()):
    """Dotted paths of all nulls; array indices are left out."""
    if value is None:
        yield ".".join(path)
    elif isinstance(value, dict):
        for key, child in value.items():
            if path or key not in NULL_IS_A_VALUE:
                yield from nulls(child, path + (key,))
    elif isinstance(value, list):
        for child in value:
            yield from nulls(child, path)


def without_indices(path):
    return ".".join(part for part in path.split(".") if not part.isdigit())


def problems(path, validators):
    try:
        record = json.loads(path.read_text(), parse_constant=refuse_constant)
    except (OSError, ValueError) as error:
        return [f"{path}: {error}"]
    kind = record.get("kind") if isinstance(record, dict) else None
    if kind not in validators:
        return [f"{path}: no schema for kind {kind!r} (known: {', '.join(sorted(validators))})"]
    found = [f"{path}: {error.json_path}: {error.message[:300]}"
             for error in validators[kind].iter_errors(record)]
    reasons = {without_indices(key) for key in record.get("unavailable", {})}
    found += [f"{path}: {where} is null without a reason under 'unavailable'"
              for where in sorted(set(nulls(record)) - reasons)]
    return found


def main(arguments):
    files = [file for argument in map(pathlib.Path, arguments)
             for file in (sorted(argument.rglob("*.json")) if argument.is_dir() else [argument])]
    validators = load_validators()
    found = [problem for file in files for problem in problems(file, validators)]
    if not files:
        found.append("nothing to validate: give files or folders with *.json")
    print("\n".join(found) if found else f"{len(files)} records are valid", file=sys.stderr if found else sys.stdout)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
