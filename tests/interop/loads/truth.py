"""Runs recipes of real frameworks and holds Loadline's projections against what the kernel counted.

FOLDER keeps the checkpoints, the packages of older frameworks and the last measurements between runs."""

import argparse
import datetime
import fnmatch
import json
import os
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import harness
import recipes
from harness import BYTES, FIELDS, PERCENT

ASSET = os.path.join(harness.HERE, "..", "..", "..", "assets", "truth.json")


def asked_pairs(words):
    """(recipe, checkpoint) of all that match one of the words; all without words."""
    pairs = [(name, model) for name, recipe in recipes.RECIPES.items() for model in recipe.models]
    if not words:
        return pairs
    return [(name, model) for name, model in pairs
            if any(word in f"{name} {model}" or fnmatch.fnmatchcase(f"{name} {model}", word) for word in words)]


class Measurements:
    """Of earlier calls, by pair; kept in a file."""

    def __init__(self, path):
        self.path = path
        self.lock = threading.Lock()
        self.by_pair = {}
        if os.path.exists(path):
            with open(path) as file:
                self.by_pair = json.load(file)

    def find(self, name, model):
        return self.by_pair.get(f"{name} {model}")

    def keep(self, name, model, found):
        with self.lock:
            self.by_pair[f"{name} {model}"] = found
            with open(self.path + ".partial", "w") as file:
                json.dump(self.by_pair, file, indent=0)
            os.replace(self.path + ".partial", self.path)


def row_of(asked, known, name, model):
    """A row, or the line that says why there is none."""
    folder = os.path.abspath(asked.folder)
    try:
        found = (known.find(name, model) or []) if asked.again else []
        if len(found) < asked.runs:
            found = found + harness.measure_runs(folder, name, model, asked.runs - len(found), "newest" if asked.newest else "")
            known.keep(name, model, found)
        return harness.compare(asked.program, folder, name, model, found), ""
    except (RuntimeError, ValueError, OSError, subprocess.CalledProcessError) as error:
        return None, f"{name:30} {model:32} FAILED: {error}"


def line(row):
    cells = " ".join(f"{harness.describe(row['counters'][field]):20}" for field in FIELDS)
    error = "" if row["error_percent"] is None else f"{row['error_percent']:5.1f} %"
    version = f"{row['framework']} {row['version']}"
    return f"{row['recipe']:30} {row['model']:32} {version:28} {cells} {error:8} {row['reason']}"


def asset(rows):
    """What assets/truth.json holds, in the order of the table."""
    versions = {}
    for row in rows:
        for package, version in row["versions"].items():
            versions.setdefault(package, set()).add(version)
    fields = ("recipe", "about", "framework", "version", "model", "model_bytes", "method", "options", "law", "counters",
              "error_percent", "range", "ok", "reason")
    counter_fields = ("projected", "low", "high", "measured", "runs")
    told = []
    for row in rows:
        row = {field: row[field] for field in fields}
        row["counters"] = {name: {field: counter[field] for field in counter_fields if field in counter}
                           for name, counter in row["counters"].items()}
        told.append(row)
    return {"schema_version": 1, "date": datetime.date.today().isoformat(), "tolerance": {"bytes": BYTES, "percent": PERCENT},
            "versions": {package: ", ".join(sorted(found, reverse=True)) for package, found in sorted(versions.items())}, "rows": told}


def _merged(whole, path):
    """The table with the rows of `whole` in the place of those of the same recipe on the same checkpoint; new rows
    come last. A row keeps the versions that it ran with, and the table the date of its whole run."""
    with open(path) as file:
        kept = json.load(file)
    new = {(row["recipe"], row["model"]): row for row in whole["rows"]}
    kept["rows"] = [new.pop((row["recipe"], row["model"]), row) for row in kept["rows"]] + list(new.values())
    for package, version in whole["versions"].items():
        known = kept["versions"].get(package, "").split(", ") if package in kept["versions"] else []
        kept["versions"][package] = ", ".join(sorted({*known, *version.split(", ")}, reverse=True))
    kept["versions"] = dict(sorted(kept["versions"].items()))
    return kept


def write_asset(rows, path=ASSET, whole=True):
    """A row on each line, so that a changed figure is one changed line. Not whole: other rows stay."""
    table = asset(rows) if whole else _merged(asset(rows), path)
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in table.pop("rows"))
    head = json.dumps(table, separators=(",", ":"))
    with open(path, "w") as file:
        file.write(f'{head[:-1]},"rows":[\n{lines}\n]}}\n')


def main():
    parser = argparse.ArgumentParser(prog="./dev truth", description=__doc__)
    parser.add_argument("program", help=argparse.SUPPRESS)
    parser.add_argument("folder", help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD", help="pairs whose recipe or checkpoint holds the word, or match it with *")
    parser.add_argument("--runs", type=int, default=3, help="of each pair; their median counts [3]")
    parser.add_argument("--jobs", type=int, default=1, help="pairs measured at once [1]")
    parser.add_argument("--again", action="store_true", help="project again, measure only runs that are missing")
    parser.add_argument("--newest", action="store_true", help="with the newest versions of the pinned packages but torch, in a folder of their own")
    parser.add_argument("--write", action="store_true", help="write assets/truth.json; with --only the other rows stay")
    parser.add_argument("--json", metavar="FILE", help="write the rows of this call with all runs")
    parser.add_argument("--list", action="store_true", help="print the recipes and end")
    asked = parser.parse_args()
    if asked.list:
        for name, recipe in recipes.RECIPES.items():
            print(f"{name:30} {recipe.about}")
        return
    if asked.write and asked.newest:
        parser.error("--write wants the pinned packages")
    known = Measurements(os.path.join(asked.folder, "measured-newest.json" if asked.newest else "measured.json"))
    print(f"projected/measured peaks in MiB, median of {asked.runs}; * is off by more than {PERCENT} % and {BYTES >> 20} MiB", flush=True)
    print(f"{'recipe':30} {'checkpoint':32} {'framework':28} {'anonymous':20} {'file pages':20} {'device':20} error", flush=True)
    rows, failed = [], 0
    with ThreadPoolExecutor(asked.jobs) as pool:
        for row, why in pool.map(lambda pair: row_of(asked, known, *pair), asked_pairs(asked.only)):
            failed += row is None
            if row is not None:
                rows.append(row)
            print(why or line(row), flush=True)
    good = sum(row["ok"] and not row["range"] for row in rows)
    ranged = sum(row["ok"] and row["range"] for row in rows)
    print(f"{good} of {len(rows)} within tolerance, {ranged} in range, {len(rows) - good - ranged} beyond; {failed} failed")
    if asked.json:
        with open(asked.json, "w") as file:
            json.dump(rows, file, indent=1)
    if asked.write:
        write_asset(rows, whole=not asked.only)


if __name__ == "__main__":
    main()
