"""By which command a record was made, from what it holds itself: to be typed again."""
import shlex

from reporting.record import clean

# Of the result and of this terminal, not of what was measured.
LEFT_OUT = ("output", "json", "quiet", "timestamps", "progress", "display_every", "openmetrics", "mllog")
COMMANDS = {"run": "run", "scaling": "scale", "inference": "infer", "instances": "instances", "preflight": "preflight"}


def value_words(value):
    if isinstance(value, list):
        return ",".join(value_words(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else clean(value, 200)


def flags(root, settings):
    """Of every key that somebody set: a flag; a plan's settings stand over the configuration."""
    config = root.raw("config")
    config = config if isinstance(config, dict) else {}
    given = {key: entry.get("value") for key, entry in config.items() if isinstance(entry, dict) and entry.get("origin") != "default"}
    given.update({key: value for key, value in settings.items() if key in config})
    if root.text("kind") in ("run", "inference") and "ranks" not in given:
        given["ranks"] = root.raw("world_size")
    words = []
    for key, value in given.items():
        if key in LEFT_OUT or value is None or isinstance(value, dict):
            continue
        flag = f"--{clean(key, 60)}"
        words += [f"{flag}={value_words(value)}"] if isinstance(value, bool) else [flag, value_words(value)]
    return words


def variables(settings):
    return [f"{key[4:]}={shlex.quote(value)}" for key, value in settings.items() if key.startswith("env.")]


def sets_words(root):
    """"LABEL=PATH" of each set, or the path alone where its label is its name."""
    words = []
    for one in root.views("sets"):
        label, path = one.text("label", 60), one.text("path", 200)
        words.append(path if not label or path.rsplit("/", 1)[-1].removesuffix(".json") == label else f"{label}={path}")
    return words


def command(root):
    """As it is typed; empty where the record does not tell."""
    kind = root.text("kind")
    if kind in COMMANDS:
        settings = root.record.settings
        return " ".join([*variables(settings), "scalemark", shlex.join([COMMANDS[kind], *flags(root, settings)])])
    if kind == "study":
        words = ["study", root.text("study", 60), "--profile", root.text("profile", 20)]
        return "scalemark " + shlex.join(words + (["--site", root.text("site", 40)] if root.text("site") not in ("", "here") else []))
    if kind in ("comparison", "verdict") and root.views("sets"):
        varied = ["--varied", ",".join(root.texts("varied"))] if root.texts("varied") else []
        return "scalemark " + shlex.join(["gate" if kind == "verdict" else "compare", *sets_words(root), *varied])
    return ""


def commands(roots):
    """[(command, how many records it made)], each once."""
    counts = {}
    for root in roots:
        if words := command(root):
            counts[words] = counts.get(words, 0) + 1
    return list(counts.items())
