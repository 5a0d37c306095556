"""Forward passes of transformers beside their projections, at the sizes of published models.

usage: truth.py LOADLINE [--only WORD ...] [--phase prefill|decode] [--json FILE] [--explain] [--list]
"""

import argparse
import gc
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass

import torch
import transformers

from models import models
from tracer import Pass, load

WITHIN = 0.02


@dataclass
class Row:
    model: str
    dtype: str
    phase: str
    attention: str
    projected: int
    traced: int
    explained: str = ""

    @property
    def error(self):
        return self.projected / self.traced - 1

    def text(self):
        mark = "" if abs(self.error) <= WITHIN else ("  " + self.explained if self.explained else "  *")
        dtype = {"float32": "F32", "bfloat16": "BF16"}[self.dtype]
        return (f"{self.model:20} {dtype:5} {self.phase:15} {self.attention:6} {self.projected:>14,} "
                f"{self.traced:>14,} {100 * self.error:>+7.2f} %{mark}")


def projection(program, folder, model, attention, sequence, past, logits):
    """The answer of `plan` for a config.json alone."""
    return json.loads(subprocess.run(
        [program, "plan", f"{folder}/config.json", "--batch", str(model.batch), "--seq", str(sequence), "--past", str(past),
         "--profile", f"hf_{attention}", "--logits", logits, "--method", "staged_ring", "--json"],
        capture_output=True, text=True, check=True).stdout)


def passing_bytes(answer):
    """What the pass needs beside the weights: activations, temporaries and the cache."""
    return answer["rows"][0]["peak"]["device"] - answer["bytes"]


def show(trace, answer):
    print(f"    traced at {trace.peak_operator}:")
    for size, what in sorted(trace.at_peak.values(), reverse=True)[:24]:
        print(f"      {size:>14,} {what}")
    forward = answer["forward"]
    print(f"    projected at {forward['activation_peak_op']}, beside a cache of {forward['kv_bytes']:,} bytes:")
    for value in forward["alive"]:
        print(f"      {value['bytes']:>14,} {value['name']} ({value['lane']})")


def rows_of(program, name, model, attention, dtype, phase, explain):
    config = getattr(transformers, model.config)(**model.sizes)
    config.architectures, config.dtype = [model.kind], dtype
    with tempfile.TemporaryDirectory() as folder:
        config.save_pretrained(folder)
        kind = getattr(transformers, model.kind)
        given = Pass(load(kind, config, attention, getattr(torch, dtype)), model.batch, model.inputs)
        for one in ("prefill", "decode"):
            if (phase and one != phase) or (one == "decode" and model.past == 0):
                continue
            prefill = one == "prefill"
            trace = given.prefill(model.sequence, explain) if prefill else given.decode(model.past, explain)
            sequence, past = (model.sequence, 0) if prefill else (1, model.past)
            answer = projection(program, folder, model, attention, sequence, past, given.logits)
            size = f"prefill S={sequence}" if prefill else f"decode past={past}"
            if model.inputs == "image":
                size = f"image x {model.batch}"
            yield Row(name, dtype, size, attention, passing_bytes(answer), trace.peak, model.explained.get((attention, one), ""))
            if explain:
                show(trace, answer)


def summary(rows):
    good = sum(abs(row.error) <= WITHIN for row in rows)
    return f"{good} of {len(rows)} passes within {100 * WITHIN:.0f} % ({100 * good / max(len(rows), 1):.1f} %); " \
        f"{len({(row.model, row.dtype, row.phase) for row in rows})} of model, type and phase"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--only", nargs="*", default=[], help="models whose names hold one of these words")
    parser.add_argument("--attention", choices=("eager", "sdpa"))
    parser.add_argument("--dtype", choices=("float32", "bfloat16"))
    parser.add_argument("--phase", choices=("prefill", "decode"))
    parser.add_argument("--json", help="writes the rows to this file")
    parser.add_argument("--explain", action="store_true", help="what is alive at both peaks")
    parser.add_argument("--list", action="store_true", help="the models")
    options = parser.parse_args()
    chosen = {name: model for name, model in models().items()
              if not options.only or any(word.lower() in name.lower() for word in options.only)}
    if options.list:
        print("\n".join(chosen))
        return 0
    torch.manual_seed(1)
    torch.set_grad_enabled(False)
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, CPU")
    print(f"{'model':20} {'dtype':5} {'phase':15} {'attn':6} {'projected':>14} {'traced':>14} {'error':>9}")
    rows = []
    for name, model in chosen.items():
        for dtype in model.dtypes if options.dtype is None else (options.dtype,):
            for attention in model.attentions:
                if options.attention in (None, attention):
                    for row in rows_of(options.program, name, model, attention, dtype, options.phase, options.explain):
                        rows.append(row)
                        print(row.text(), flush=True)
                    gc.collect()
    print(summary(rows))
    if options.json:
        with open(options.json, "w") as file:
            json.dump([{**vars(row), "error": row.error} for row in rows], file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
