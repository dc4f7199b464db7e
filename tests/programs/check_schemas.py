#!/usr/bin/env python3
"""The schemas in docs/schema are valid themselves, no key of a record is optional, and every file that we ship (configs/,
results/baselines/) validates against the schema that belongs to it."""

import json
import pathlib
import sys

import jsonschema

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests/result"))
from validate_records import SCHEMAS, schema_errors, validator  # noqa: E402


def errors_of(path):
    """Records and published curves by their kind, configurations and plans by the schema that they name."""
    content = json.loads(path.read_text())
    named = pathlib.PurePosixPath(content.get("$schema", "config.schema.json")).name
    return schema_errors(content, None if "kind" in content else named)


def optional_keys(node, place):
    """Keys of a record that are neither required nor newer than the first records, or both."""
    if isinstance(node, list):
        for index, part in enumerate(node):
            yield from optional_keys(part, f"{place}/{index}")
    if not isinstance(node, dict):
        return
    for key, part in node.get("properties", {}).items() if "required" in node else ():
        since = part.get("since") if isinstance(part, dict) else None
        if (key in node["required"]) == (since is not None):
            yield f'{place}/properties/{key}: either it is required, or it has a "since"'
        if since is not None and not (isinstance(since, int) and since > 1):
            yield f'{place}/properties/{key}: "since" is a schema_revision above 1'
    for key, part in node.items():
        yield from optional_keys(part, f"{place}/{key}")


def lost_keys():
    """The validator must be able to say no: an older record that claims to be newer lacks keys, as it is it does not."""
    curve = json.loads((SOURCE / "results/baselines/resnet50-1gbit-none.json").read_text())
    if schema_errors({**curve, "schema_revision": 2, "warnings": []}) == []:
        yield "a record of schema_revision 2 may lack system.openmp"
    if not any("warnings" in text for text in schema_errors({**curve, "schema_revision": 2})):
        yield "a record of schema_revision 2 may lack warnings"
    if not schema_errors({key: curve[key] for key in curve if key != "base"}):
        yield "a record of schema_revision 1 may lack base"


def main():
    problems = list(lost_keys())
    for name, schema in SCHEMAS.items():
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            problems.append(f"docs/schema/{name}: {error.message}")
        if "schema_revision" in json.dumps(schema):
            problems += [f"docs/schema/{name}{text}" for text in optional_keys(schema, "")]
    shipped = [*sorted((SOURCE / "configs").rglob("*.json")), *sorted((SOURCE / "results/baselines").rglob("*.json"))]
    for path in shipped:
        problems += [f"{path.relative_to(SOURCE)}: {text}" for text in errors_of(path)]
    if validator("config.schema.json").is_valid({"no_such_key": 1}):
        problems.append("docs/schema/config.schema.json accepts unknown keys")
    if len(SCHEMAS) < 10 or not shipped:
        problems.append("no schemas or no shipped files were found")
    print("\n".join(problems) or f"{len(SCHEMAS)} schemas, {len(shipped)} shipped files: all valid")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
