"""What `./dev truth` and the interop tests share: measuring a recipe in fresh processes, and holding the
projection against it.

FOLDER keeps checkpoints (models/), older packages and measurements between runs."""

import json
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import recipes  # noqa: E402
from sampler import FIELDS, Sampler  # noqa: E402

MIB = 1 << 20
BYTES, PERCENT = 16 * MIB, 2  # whichever is more
SPACES = {"anonymous": ("host", "staging"), "file": ("page_cache",), "device": ("device",)}
WEIGHTS = (".bin", ".safetensors", ".gguf", ".onnx", ".onnx.data", ".npz", ".tflite", ".pt2", ".pte")
PROGRAMS = ("onnx-", "npz-", "litert-", "pt2-", "pte-")
WARM_UP, LOAD = 300, 600  # seconds; machines may be slow and shared


def environment_of(recipe, folder, newest=""):
    variables = dict(os.environ, TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1", PYTHONDONTWRITEBYTECODE="1")
    variables.update(recipe.variables)
    in_front = recipe.environment or newest
    if in_front:
        variables["PYTHONPATH"] = os.path.join(folder, in_front)
    return variables


def checkpoint(folder, name, tiny=False):
    """Made by a process of its own, so that no run inherits its memory."""
    asked = ("tiny-" if tiny else "") + name
    path = os.path.join(folder, "models", asked)
    if os.path.exists(os.path.join(path, "config.json")):
        return path
    maker = "ggufs.py" if name.startswith("gguf-") else "programs.py" if name.startswith(PROGRAMS) else "checkpoints.py"
    made = subprocess.run([sys.executable, os.path.join(HERE, maker), os.path.join(folder, "models"), asked],
                          check=True, stdout=subprocess.PIPE, text=True)
    return made.stdout.split()[-1]


def path_of(model):
    """What Loadline opens: the folder, or the one file of a format that is no folder's."""
    (file, *more) = sorted(entry.path for entry in os.scandir(model) if entry.name.endswith(WEIGHTS))
    return file if not more and not os.path.exists(os.path.join(model, "config.json")) else model


def file_bytes(model):
    return sum(entry.stat().st_size for entry in os.scandir(model) if entry.name.endswith(WEIGHTS))


def _last_line(text):
    return (text.strip().splitlines() or ["it said nothing"])[-1][:160]


def measure(name, tiny, model, environment):
    """One run in a fresh process: peaks, what stays, and the versions that ran."""
    command = [sys.executable, os.path.join(HERE, "child.py"), name, tiny, model]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    versions = {}
    for line in child.stdout:  # frameworks print, too
        if line.startswith("ready "):
            versions = json.loads(line.removeprefix("ready "))
            break
    if not versions:
        raise RuntimeError(f"{name}: did not warm up: {_last_line(child.communicate()[1])}")
    sampler = Sampler(child.pid)
    child.stdin.write("go\n")
    child.stdin.flush()
    loaded = any(line.startswith("loaded") for line in child.stdout)
    if not loaded:
        sampler.end()
        raise RuntimeError(f"{name}: did not load: {_last_line(child.communicate()[1])}")
    peak, kept = sampler.stop()
    child.communicate("\n")
    return {"peak": peak, "kept": kept, "versions": versions}


def measure_runs(folder, name, model_name, runs, newest=""):
    model, tiny = checkpoint(folder, model_name), checkpoint(folder, model_name, tiny=True)
    environment = environment_of(recipes.RECIPES[name], folder, newest)
    return [measure(name, tiny, model, environment) for _ in range(runs)]


def project(program, recipe, model):
    """The row of `plan --json`; none and the reason if there is no such row."""
    if not recipe.method:
        return None, "no method claims to be this load"
    command = [program, "plan", path_of(model), "--method", recipe.method, *recipe.options(model), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        return None, f"loadline plan: {_last_line(done.stderr)}"
    return json.loads(done.stdout)["rows"][0], ""


def claim(row, field):
    """What a row claims of a counter: lowest, highest, and its best single figure."""
    peaks, ranges = row["peak"], row.get("range", {})
    low = sum(ranges.get(space, [peaks.get(space, 0)])[0] for space in SPACES[field])
    high = sum(ranges.get(space, [peaks.get(space, 0)])[-1] for space in SPACES[field])
    return low, high, sum(peaks.get(space, 0) for space in SPACES[field])


def _counter(row, field, found):
    values = [run["peak"][field] for run in found]
    measured = int(statistics.median(values))
    counter = {"measured": measured, "runs": values, "kept": int(statistics.median(run["kept"][field] for run in found))}
    if row is None:
        return counter
    low, high, projected = claim(row, field)
    slack = max(BYTES, PERCENT / 100 * measured)
    error = max(low - measured, measured - high, 0)
    counter |= {"projected": projected, "error": error, "ok": error <= slack}
    if low != high:
        counter |= {"low": low, "high": high, "ok": error <= slack and high <= 2 * low}
    return counter


def compare(program, folder, name, model_name, found):
    """The measurements of a pair beside its projection."""
    recipe = recipes.RECIPES[name]
    model = checkpoint(folder, model_name)
    row, missing = project(program, recipe, model)
    counters = {field: _counter(row, field, found) for field in FIELDS}
    measured = sum(counter["measured"] for counter in counters.values())
    ok = row is not None and all(counter["ok"] for counter in counters.values())
    worst = max(counter.get("error", 0) for counter in counters.values())
    size = file_bytes(model)
    return {"recipe": name, "about": recipe.about, "framework": recipe.framework,
            "version": found[0]["versions"].get(recipe.framework, ""), "versions": found[0]["versions"],
            "model": model_name, "model_bytes": size, "method": recipe.method, "options": recipe.options(model),
            "law": row["law"] if row else "", "counters": counters,
            "error_percent": round(100 * worst / max(measured, size), 1) if row else None,
            "range": any("low" in counter for counter in counters.values()), "ok": ok,
            "reason": "" if ok else recipe.reason or missing}


def bounded(row):
    """All counters but the host's meet the claim, and the host's is nowhere above it."""
    host = row["counters"]["anonymous"]
    slack = max(BYTES, PERCENT / 100 * host["measured"])
    others = all(counter.get("ok") for field, counter in row["counters"].items() if field != "anonymous")
    return others and max(host["runs"]) - host.get("high", host["projected"]) <= slack


def describe(counter):
    """Projected and measured MiB."""
    if "low" in counter:
        claimed = f"{counter['low'] / MIB:.0f}..{counter['high'] / MIB:.0f}"
    else:
        claimed = f"{counter['projected'] / MIB:.0f}" if "projected" in counter else "-"
    return f"{claimed}/{counter['measured'] / MIB:.0f}{' ' if counter.get('ok') else '*'}"
