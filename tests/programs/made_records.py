"""Changes measured records into others that fit together as measured ones do."""


def rescale(record, factor):
    """Makes this record of a launch `factor` times as fast."""
    record["wall_seconds"] /= factor
    record["throughput"] = {name: times(rate, factor) for name, rate in record["throughput"].items()}
    for seconds in ("step_seconds", "latency_seconds"):
        if seconds in record:
            record[seconds] = {name: times(value, 1 / factor) for name, value in record[seconds].items()}


def put_at_level(record, rate, number):
    """Gives launch `number` of a set the rate, in which launches of a set differ by 0.1 %."""
    rescale(record, rate * (1 + 0.001 * (number % 3)) / record["throughput"]["mean"])


def times(value, factor):
    """Of a number or a list of them; anything else stays."""
    if isinstance(value, list):
        return [times(part, factor) for part in value]
    return value * factor if isinstance(value, (int, float)) else value
