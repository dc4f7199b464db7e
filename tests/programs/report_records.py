"""Small records for the tests of the report: the keys that it reads, with numbers that trigger nothing."""
import copy
import pathlib
import sys
import uuid

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "scripts"))


def record(kind, **keys):
    return {"schema_version": 1, "schema_revision": 6, "kind": kind, "id": str(uuid.uuid4()), "status": "ok", "reason": "",
            "build": {"revision": "abc"}, "created_at": "2026-01-31T12:00:00Z", "warnings": [], "unavailable": {}, **keys}


def config(**values):
    return {key: {"value": value, "origin": "default"} for key, value in values.items()}


def system(host, cpu_model="EPYC", gpus=(), speed_mbps=10000):
    return {"host": host, "cpu_model": cpu_model, "cores": 2, "gpus": list(gpus), "rdma": [],
            "nics": [{"name": "eth0", "state": "up", "speed_mbps": speed_mbps, "driver": "x"}]}


def run(ranks=2, **keys):
    """A run of ranks that are alike; a step of 100 ms of which 5 ms are waited."""
    one = {"host": "n0", "step_seconds_mean": 0.1, "wait_seconds_mean": 0.005, "straggler": False,
           "binding": {"as_asked": True, "overlaps_with": []}}
    seconds = {"input": 0.0, "forward": 0.03, "backward": 0.06, "communication": 0.004, "optimizer": 0.005, "checkpoint": 0.0,
               "agreement": 0.001, "rest": 0.0}
    made = record("run", model="resnet50", precision="fp32", scaling="weak", unit="images/sec", world_size=ranks,
                  batch_size_per_rank=8, global_batch_size=8 * ranks, throughput={"mean": 80.0 * ranks, "ci95": None},
                  step_seconds={"mean": 0.1, "p50": 0.1, "p90": 0.101, "p99": 0.102, "samples": [0.1, 0.099, 0.101, 0.1]},
                  ranks=[{"rank": i, **copy.deepcopy(one)} for i in range(ranks)],
                  phases={"seconds": seconds, "fractions": {key: value / 0.1 for key, value in seconds.items()}},
                  communication={"communicator": "mpi", "total_seconds": 0.03, "exposed_seconds": 0.004, "embedding": None},
                  loss={"first": 7.0, "last": 6.0, "trace": [7.0, 6.5, 6.2, 6.0], "trace_stride": 1, "diverged": False},
                  rank_steps={"steps_per_cell": 1, "compute_seconds": [[0.095] * 4 for _ in range(ranks)]},
                  noise={"throttled": 0.0}, windows=None, preflight=None)
    made.update(keys)
    return made


def point(ranks, throughput, base=100.0, half=0.01, **keys):
    """A point of a curve whose intervals are `half` of their value to each side."""
    efficiency = throughput / base / ranks

    def around(value):
        return [value * (1 - half), value * (1 + half)]

    made = {"ranks": ranks, "resources": ranks, "throughput": throughput, "ci95": around(throughput), "speedup": throughput / base,
            "speedup_ci95": around(throughput / base), "efficiency": efficiency, "efficiency_ci95": around(efficiency),
            "baseline_throughput": None, "exposed_seconds": None, "exposed_ci95": None, "trend": None, "repeats": []}
    made.update(keys)
    return made


def curve(*points, repeat_unit="launch", scaling="weak", **settings):
    settings = {"model": "resnet50", "precision": "fp32", "wire_dtype": "fp32", "overlap": "backward", **settings}
    return record("scaling", unit="images/sec", scaling=scaling, resource="rank", repeat_unit=repeat_unit,
                  base={"ranks": 1, "throughput": 100.0}, points=list(points), config=config(**settings))


def with_runs(made, *runs):
    """The curve whose last point was made of these runs."""
    made["points"][-1]["repeats"] = [{"run": each["id"], "baseline": False} for each in runs]
    return [made, *runs]


def collected(*records):
    from reporting.collection import collect
    from reporting.record import Record
    return collect([Record(f"/r/{i}-{made['kind']}.json", f"{i}-{made['kind']}.json", f"{i}-{made['kind']}.json", made)
                    for i, made in enumerate(records)])
