#!/usr/bin/env python3
"""The schemas in docs/schema are valid themselves, close their objects' top level, and every file that we ship
(configs/, results/baselines/) validates against the schema that belongs to it."""

import json
import pathlib
import sys

import jsonschema
from referencing import Registry, Resource

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCHEMAS = {path.name: json.loads(path.read_text()) for path in sorted((SOURCE / "docs/schema").glob("*.json"))}
REGISTRY = Registry().with_resources(
    [(name, Resource.from_contents(schema)) for name, schema in SCHEMAS.items()]
    + [(schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS.values() if "$id" in schema])


def schema_name(path, content):
    """Records and published curves by their kind, configurations and plans by the schema that they name."""
    if "kind" not in content:
        return pathlib.PurePosixPath(content.get("$schema", "config.schema.json")).name
    return f"{content['kind']}.schema.json"


def errors_of(path):
    content = json.loads(path.read_text())
    name = schema_name(path, content)
    if name not in SCHEMAS:
        return [f"docs/schema/{name} is missing"]
    validator = jsonschema.Draft202012Validator(SCHEMAS[name], registry=REGISTRY)
    return [f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(content)]


def main():
    problems = []
    for name, schema in SCHEMAS.items():
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            problems.append(f"docs/schema/{name}: {error.message}")
    shipped = [*sorted((SOURCE / "configs").rglob("*.json")), *sorted((SOURCE / "results/baselines").rglob("*.json"))]
    for path in shipped:
        problems += [f"{path.relative_to(SOURCE)}: {text}" for text in errors_of(path)]
    # The validator must be able to say no: a key that nobody knows is refused.
    if "config.schema.json" in SCHEMAS and jsonschema.Draft202012Validator(
            SCHEMAS["config.schema.json"], registry=REGISTRY).is_valid({"no_such_key": 1}):
        problems.append("docs/schema/config.schema.json accepts unknown keys")
    if not SCHEMAS or not shipped:
        problems.append("no schemas or no shipped files were found")
    print("\n".join(problems) or f"{len(SCHEMAS)} schemas, {len(shipped)} shipped files: all valid")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
