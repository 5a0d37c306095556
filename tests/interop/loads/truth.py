"""Runs recipes of real frameworks and holds Loadline's projections against what the kernel counted.

usage: truth.py LOADLINE FOLDER [--only WORD ...] [--runs N] [--json FILE] [--list]

FOLDER keeps the checkpoints and the packages of older frameworks between runs."""

import argparse
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
ABSOLUTE, RELATIVE = 16 * MIB, 0.02
SPACES = {"anonymous": ("host", "staging"), "file": ("page_cache",), "device": ("device",)}


def environment_of(recipe, folder):
    variables = dict(os.environ, TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1", PYTHONDONTWRITEBYTECODE="1")
    if recipe.environment:
        variables["PYTHONPATH"] = os.path.join(folder, recipe.environment)
    return variables


def checkpoint(folder, name, tiny=False):
    """Made by a process of its own, so that no run inherits its memory."""
    asked = ("tiny-" if tiny else "") + name
    made = subprocess.run([sys.executable, os.path.join(HERE, "checkpoints.py"), os.path.join(folder, "models"), asked],
                          check=True, stdout=subprocess.PIPE, text=True)
    return made.stdout.split()[-1]


def measure(name, folder, tiny, model):
    """One run in a fresh process: peaks, what stays, and the versions that ran."""
    recipe = recipes.RECIPES[name]
    command = [sys.executable, os.path.join(HERE, "child.py"), name, tiny, model]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=environment_of(recipe, folder))
    versions = {}
    for line in child.stdout:  # frameworks print, too
        if line.startswith("ready "):
            versions = json.loads(line.removeprefix("ready "))
            break
    if not versions:
        _, errors = child.communicate()
        raise RuntimeError(f"{name}: did not warm up: {errors.strip().splitlines()[-1:]}")
    sampler = Sampler(child.pid)
    child.stdin.write("go\n")
    child.stdin.flush()
    loaded = any(line.startswith("loaded") for line in child.stdout)
    if not loaded:
        sampler.end()
        _, errors = child.communicate()
        raise RuntimeError(f"{name}: did not load: {errors.strip().splitlines()[-1:]}")
    peak, kept = sampler.stop()
    child.communicate("\n")
    return peak, kept, versions


def project(program, recipe, model):
    """The projected peaks by counter; nothing and the reason if there is no such row."""
    if not recipe.method:
        return None, "no method claims to be this load"
    command = [program, "plan", model, "--method", recipe.method, *recipe.flags, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 3):
        return None, done.stderr.strip().splitlines()[0] if done.stderr.strip() else f"exit {done.returncode}"
    peaks = json.loads(done.stdout)["rows"][0]["peak"]
    return {field: sum(peaks.get(space, 0) for space in spaces) for field, spaces in SPACES.items()}, ""


def within(projected, measured):
    return abs(projected - measured) <= max(ABSOLUTE, RELATIVE * measured)


def compare(program, folder, name, model_name, runs):
    recipe = recipes.RECIPES[name]
    model = checkpoint(folder, model_name)
    tiny = checkpoint(folder, model_name, tiny=True)
    found = [measure(name, folder, tiny, model) for _ in range(runs)]
    projected, reason = project(program, recipe, model)
    row = {"recipe": name, "model": model_name, "method": recipe.method, "flags": list(recipe.flags),
           "framework": recipe.framework, "versions": found[0][2], "reason": reason, "counters": {}}
    for field in FIELDS:
        measured = statistics.median(peak[field] for peak, _, _ in found)
        row["counters"][field] = {"measured": measured, "runs": [peak[field] for peak, _, _ in found],
                                  "kept": statistics.median(kept[field] for _, kept, _ in found)}
        if projected is not None:
            row["counters"][field] |= {"projected": projected[field], "ok": within(projected[field], measured)}
    row["ok"] = projected is not None and all(counter["ok"] for counter in row["counters"].values())
    return row


def cell(counter):
    projected = f"{counter['projected'] / MIB:6.0f}" if "projected" in counter else "     -"
    mark = " " if counter.get("ok") else "*"
    return f"{projected}/{counter['measured'] / MIB:6.0f}{mark}({counter['kept'] / MIB:5.0f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", help="write all runs to this file")
    parser.add_argument("--list", action="store_true", help="print the recipes and end")
    asked = parser.parse_args()
    if asked.list:
        for name, recipe in recipes.RECIPES.items():
            print(f"{name:28} {recipe.about}")
        return
    rows = []
    print("MiB, projected/measured at the peak; * differs by more than 2 % and 16 MiB; in brackets: what stays")
    print(f"{'recipe':28} {'checkpoint':32} {'method':22} {'anonymous':22} {'file pages':22} {'device':22}")
    for name, recipe in recipes.RECIPES.items():
        for model in recipe.models:
            if asked.only and not any(word in f"{name} {model}" for word in asked.only):
                continue
            try:
                row = compare(asked.program, os.path.abspath(asked.folder), name, model, asked.runs)
            except (RuntimeError, subprocess.CalledProcessError) as error:
                print(f"{name:28} {model:32} FAILED: {error}", flush=True)
                continue
            rows.append(row)
            cells = " ".join(f"{cell(row['counters'][field]):22}" for field in FIELDS)
            print(f"{name:28} {model:32} {recipe.method:22} {cells} {row['reason']}", flush=True)
    good = sum(row["ok"] for row in rows)
    print(f"{good} of {len(rows)} within tolerance")
    if asked.json:
        with open(asked.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
