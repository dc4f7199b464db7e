#!/usr/bin/env python3
"""Validates scalemark records against docs/schema by their kind; the one place of the tests where a schema meets a file.

A key with "since": N is required of records of schema_revision N and later; older records may lack it.

usage: validate_records.py FILE_OR_FOLDER...     (folders: every *.json below them)
Exit 1 when any record is invalid or when there was nothing to validate.
"""
import json
import pathlib
import sys

import jsonschema
from referencing import Registry, Resource

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs" / "schema"
SCHEMAS = {path.name: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.schema.json"))}
REGISTRY = Registry().with_resources(
    [(name, Resource.from_contents(schema)) for name, schema in SCHEMAS.items()]
    + [(schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS.values() if "$id" in schema])
# Below these keys null is a value (an unset option, "built without"), not something unknown.
NULL_IS_A_VALUE = {"config", "build", "environment", "fingerprint", "launches.keys"}


def validator(name, revision=1):
    """Of docs/schema/NAME, for records of this revision."""
    draft = jsonschema.Draft202012Validator

    def properties(of, parts, instance, schema):
        yield from draft.VALIDATORS["properties"](of, parts, instance, schema)
        for key, part in parts.items() if of.is_type(instance, "object") else ():
            if key not in instance and isinstance(part, dict) and part.get("since", revision + 1) <= revision:
                yield jsonschema.ValidationError(f"{key!r} is required since schema_revision {part['since']}")

    return jsonschema.validators.extend(draft, {"properties": properties})(SCHEMAS[name], registry=REGISTRY)


def schema_errors(content, name=None):
    """What is wrong with a file's content by the schema NAME, without it by that of its kind."""
    name = name or f"{content.get('kind')}.schema.json"
    if name not in SCHEMAS:
        return [f"docs/schema/{name} is missing"]
    revision = content.get("schema_revision", 1)
    found = validator(name, revision if isinstance(revision, int) else 1).iter_errors(content)
    return [f"{error.json_path}: {error.message[:300]}" for error in found]


def refuse_constant(word):
    raise ValueError(f"{word} is not JSON")


def nulls(value, path=()):
    """Dotted paths of all nulls; array indices are left out."""
    if value is None:
        yield ".".join(path)
    elif isinstance(value, dict):
        for key, child in value.items():
            if ".".join(path + (key,)) not in NULL_IS_A_VALUE:
                yield from nulls(child, path + (key,))
    elif isinstance(value, list):
        for child in value:
            yield from nulls(child, path)


def without_indices(path):
    return ".".join(part for part in path.split(".") if not part.isdigit())


def problems_of(record):
    """What is wrong with a record that was read; empty where it is valid."""
    if not isinstance(record, dict):
        return ["no record"]
    found = schema_errors(record)
    if "unavailable" not in SCHEMAS.get(f"{record.get('kind')}.schema.json", {}).get("properties", {}):
        return found
    reasons = {without_indices(key) for key in record.get("unavailable", {})}
    return found + [f"{where} is null without a reason under 'unavailable'" for where in sorted(set(nulls(record)) - reasons)]


def problems(path):
    try:
        record = json.loads(path.read_text(), parse_constant=refuse_constant)
    except (OSError, ValueError) as error:
        return [f"{path}: {error}"]
    return [f"{path}: {problem}" for problem in problems_of(record)]


def main(arguments):
    files = [file for argument in map(pathlib.Path, arguments)
             for file in (sorted(argument.rglob("*.json")) if argument.is_dir() else [argument])]
    found = [problem for file in files for problem in problems(file)]
    if not files:
        found.append("nothing to validate: give files or folders with *.json")
    print("\n".join(found) if found else f"{len(files)} records are valid", file=sys.stderr if found else sys.stdout)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
