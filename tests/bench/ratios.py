#!/usr/bin/env python3
"""What benchmarks recorded (LOADLINE_BENCH_ROWS; tests/bench/harness.h), as JSON and beside what is kept.

usage: ratios.py write BENCH ROWS JSON     rows of one run as a JSON file; says where they differ from the kept ones
       ratios.py against THEN,... NOW,...  rows of runs of two commits, side by side
       ratios.py keep JSON...              puts them in the table of the manual
A ratio is the time of a table's first row over that of the row: it hardly depends on the machine, as seconds do.
"""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "assets/manual/performance.md"
HEAD = "| benchmark | row | ratio |\n|---|---|---|\n"
LEAST_SECONDS = 50e-6
NOTABLE = 1.25  # what machines and chance do to a ratio stays below, as a rule


def read_rows(path):
    """{row: (ratio, seconds)}, in the order in which they were measured."""
    rows = {}
    for line in pathlib.Path(path).read_text().splitlines():
        table, row, ratio, seconds = line.split("\t")
        rows[f"{table.strip()}: {row}"] = (float(ratio), float(seconds))
    return rows


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"^model name\s*: (.*)$", text, re.M)
    return f"{model[1] if model else os.uname().machine}, {len(os.sched_getaffinity(0))} cores"


def commit():
    run = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=ROOT, capture_output=True, text=True)
    return run.stdout.strip() or "unknown"


def kept():
    """{(bench, row): ratio} of the manual's table."""
    lines = PAGE.read_text().split(HEAD)[1].splitlines()
    rows = {}
    for line in lines:
        if not line.startswith("|"):
            break
        bench, row, ratio = (cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1])
        rows[bench.strip("`"), row] = float(ratio)
    return rows


def apart(a, b):
    return max(a, b) > NOTABLE * min(a, b)


def write(bench, rows, out):
    data = {"bench": bench, "machine": machine(), "commit": commit(),
            "rows": [{"row": row, "ratio": ratio, "median_seconds": seconds} for row, (ratio, seconds) in read_rows(rows).items()]}
    pathlib.Path(out).write_text(json.dumps(data, indent=2) + "\n")
    before = {row: ratio for (name, row), ratio in kept().items() if name == bench}
    both = [row for row in data["rows"] if row["row"] in before]
    other = [row for row in both if apart(row["ratio"], before[row["row"]])]
    print(f"\nratios of {bench}: {out}; of {len(both)} in the manual, {len(other)} differ by more than {NOTABLE - 1:.0%}")
    for row in other:
        print(f"  {row['row']}: {row['ratio']:.3g}, kept {before[row['row']]:.3g}")
    for row in before.keys() - {row["row"] for row in data["rows"]}:
        print(f"  {row}: kept, but not measured")


def against(then, now):
    sides = [[read_rows(path) for path in side.split(",")] for side in (then, now)]
    names = [name for name in sides[1][0] if all(name in rows for side in sides for rows in side)]
    middle = lambda side, name, at: statistics.median(rows[name][at] for rows in side)
    print(f"\nmedians of {len(sides[0])} runs each; a ratio of ratios above 1: faster now, beside the same baseline\n"
          f"  {'ratio then':>10} {'now':>10} {'now/then':>9} {'time now/then':>14}")
    for name in names:
        ratios = [middle(side, name, 0) for side in sides]
        seconds = [middle(side, name, 1) for side in sides]
        print(f"  {ratios[0]:>10.3g} {ratios[1]:>10.3g} {ratios[1] / ratios[0]:>9.2f} {seconds[1] / seconds[0]:>14.2f}  {name}")
    for side, what in zip(sides, ("then", "now")):
        for name in sorted({name for rows in side for name in rows} - set(names)):
            print(f"  only {what}: {name}")
    return 0 if names else 1


def keep(paths):
    rows = kept()
    for path in paths:
        data = json.loads(pathlib.Path(path).read_text())
        rows = {key: ratio for key, ratio in rows.items() if key[0] != data["bench"]}
        tables = [row["row"].split(": ")[0] for row in data["rows"]]
        for at, row in enumerate(data["rows"]):
            if at == 0 or tables[at] != tables[at - 1] or row["median_seconds"] < LEAST_SECONDS:
                continue  # the baseline, and what the clock is too coarse for
            rows[data["bench"], row["row"]] = row["ratio"]
    before, after = PAGE.read_text().split(HEAD)
    lines = after.splitlines(keepends=True)
    while lines and lines[0].startswith("|"):
        lines.pop(0)
    table = "".join(f"| `{bench}` | {row.replace('|', chr(92) + '|')} | {ratio:.3g} |\n" for (bench, row), ratio in sorted(rows.items(), key=lambda x: x[0][0]))
    PAGE.write_text(before + HEAD + table + "".join(lines))


def main():
    match sys.argv[1:]:
        case ["write", bench, rows, out]:
            return write(bench, rows, out)
        case ["against", then, now]:
            return against(then, now)
        case ["keep", *paths] if paths:
            return keep(paths)
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
