"""Kills commands and makes calls fail at every call that changes a file, and looks at what they leave.

usage: points.py LOADLINE [--stride N] [--offset N] [--only WORD] [--folder DIR]; crash.py runs it, too

Whatever the point: an output is the old one as a whole, or the new one as a whole, or every command refuses it and says
so, and `clean` ends that. A source that is consumed is whole, or refused, and going on ends with the right bytes. A
batch that runs again ends with the right bytes. --stride tries every N-th point only.
"""
import collections
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import interruptions  # noqa: E402
from interruptions import Failed, contents, expect, hidden  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
CONFIG = {"model_type": "llama", "hidden_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4,
          "num_key_value_heads": 2, "intermediate_size": 4608, "vocab_size": 8192, "torch_dtype": "bfloat16"}
SMALL = dict(CONFIG, hidden_size=32, intermediate_size=64, vocab_size=300)
PENDING = "put its files in place"
CONSUMED = "consumes this model"


def write_onnx(folder, fill):
    """A model with one weight of 64 x 64 floats in a second file."""

    def number(value):
        return bytes([value & 127 | 128]) + number(value >> 7) if value > 127 else bytes([value])

    def field(at, value):
        if isinstance(value, int):
            return number(at << 3) + number(value)
        value = value.encode() if isinstance(value, str) else value
        return number(at << 3 | 2) + number(len(value)) + value

    os.makedirs(folder)
    place = (("location", "w.data"), ("offset", "0"), ("length", "16384"))
    tensor = field(1, 64) + field(1, 64) + field(2, 1) + field(8, "w") + field(14, 1) + b"".join(
        field(13, field(1, key) + field(2, value)) for key, value in place)
    with open(os.path.join(folder, "m.onnx"), "wb") as file:
        file.write(field(1, 8) + field(7, field(2, fill) + field(5, tensor)) + field(8, field(2, 17)))
    with open(os.path.join(folder, "w.data"), "wb") as file:
        file.write(fill.encode() * (16384 // len(fill)))


class Points:
    def __init__(self, arguments):
        self.program, self.arguments = arguments.program, arguments
        self.folder = tempfile.mkdtemp(prefix="loadline-points-", dir=arguments.folder)
        self.library = interruptions.fault_library(os.path.join(HERE, "faults.c"), self.folder)
        self.work = self.path("work")
        for name, config, seed, shard in (("old", SMALL, 1, "30KB"), ("new", SMALL, 2, "30KB"), ("big", CONFIG, 3, "3MB")):
            config_file = interruptions.write_json(self.path("config.json"), config)
            self.run("synth", config_file, self.path(name), "--random", str(seed), "--max-shard-size", shard)
        interruptions.write_adapter(self.path("adapter"), SMALL["hidden_size"])
        interruptions.write_adapter(self.path("big-adapter"), CONFIG["hidden_size"])
        self.run("convert", self.path("big"), self.path("big.safetensors"))
        write_onnx(self.path("onnx-old"), "oldm")
        write_onnx(self.path("onnx-new"), "newmodel")
        self.total = collections.Counter()

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run(self, *arguments, code=0, environment=None):
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True,
                              env=dict(os.environ, **(environment or {})))
        if code is not None:
            expect(done.returncode == code, f"{arguments}: exit {done.returncode}: {done.stderr or done.stdout}")
        return done

    def with_fault(self, command, fault, log=None):
        environment = {"LD_PRELOAD": self.library, "LOADLINE_FAULT_FOLDER": self.work}
        environment["LOADLINE_FAULT_LOG" if log else "LOADLINE_FAULT"] = log or fault
        return self.run(*command, code=None, environment=environment)

    def restore(self, prepare):
        """`prepare` fills the folder; or it is a copy of the folder as that left it."""
        shutil.rmtree(self.work, ignore_errors=True)
        if isinstance(prepare, str):
            return shutil.copytree(prepare, self.work)
        os.mkdir(self.work)
        prepare()

    def every_point(self, name, prepare, command, check):
        """`check(done, fault)` returns a word for what was found."""
        if self.arguments.only and self.arguments.only not in name:
            return
        self.restore(prepare)
        prepared = self.path("prepared")
        shutil.rmtree(prepared, ignore_errors=True)
        shutil.copytree(self.work, prepared)
        log = self.path("log")
        if os.path.exists(log):
            os.remove(log)
        done = self.with_fault(command, None, log)
        expect(done.returncode == 0, f"{name}: {done.stderr}")
        with open(log) as file:
            points = len(file.readlines())
        found, tried = collections.Counter(), 0
        for kind in ("kill", "torn", "error"):
            for n in range(1 + self.arguments.offset % self.arguments.stride, points + 1, self.arguments.stride):
                self.restore(prepared)
                fault = f"{kind}@{n}"
                done = self.with_fault(command, fault)
                try:
                    word = check(done, fault)
                except Failed as failure:
                    raise Failed(f"{name}, {fault} of {points}: {failure}\n  {done.stderr}\n  all is kept in {self.folder}") \
                        from failure
                found[word] += 1
                tried += 1
        self.total[name] = tried
        print(f"  {name}: {points} calls, {tried} points: " + ", ".join(f"{count} {word}" for word, count in sorted(found.items())),
              flush=True)

    # --- An output that replaces another one, or is new.

    def output(self, name, old, command, out="out", makes_parts=()):
        def prepare():
            if old:
                self.run(*old)
            for part in makes_parts:
                self.run(*part)

        self.restore(lambda: old and self.run(*old))
        before = contents(self.work)
        self.restore(prepare)
        self.run(*command)
        after = contents(self.work)
        expect(before != after and not hidden(self.work), f"{name}: nothing to tell apart")
        target = os.path.normpath(self.path("work", out))

        def check(done, fault):
            expect(done.returncode in (-9, 0, 1), f"exit {done.returncode}")
            expect(done.returncode != 1 or "Input/output error" in done.stderr, "does not say why")
            there = contents(self.work)
            opened = self.run("inspect", target, code=None)
            pending = PENDING in opened.stderr
            weights = [name for name in there if name.endswith((".safetensors", ".gguf", ".onnx", ".index.json"))]
            for path in [target, *(self.path("work", name) for name in weights)]:
                if self.run("inspect", path, code=None).returncode == 0:
                    expect(there in (before, after) and not pending, f"a mixture is opened: {path}")
            if done.returncode == 0:
                expect(there == after, "exit 0, and the output is not there")
            if there not in (before, after):
                expect(pending or not before, "neither old nor new, and nobody says so")
            for folder in {self.work, target if os.path.isdir(target) else self.work}:
                if not makes_parts or pending:
                    self.run("clean", folder)
            ended = contents(self.work)
            if makes_parts and ended == before:
                self.run(*command)  # the parts are still there
                ended = contents(self.work)
                expect(ended == after, "the parts cannot be joined any more")
            expect(ended in (before, after), "a mixture after clean")
            expect(not hidden(self.work) and not hidden(target) or makes_parts, "clean has left something")
            if pending:
                return "pending"
            return "old" if there == before else "new"

        self.every_point(name, prepare, command, check)

    def outputs(self):
        out, shards = self.path("work", "out"), ["--max-shard-size", "30KB"]
        convert = lambda model, *more: ["convert", self.path(model), *more]
        self.output("shards over shards", convert("old", out, *shards), convert("new", out, *shards, "--force"))
        self.output("shards, new", None, convert("new", out, *shards))
        self.output("one file over shards", convert("old", out, *shards), convert("new", out, "--force"))
        self.output("shards over one file", convert("old", out), convert("new", out, *shards, "--force"))
        gguf = self.path("work", "o.gguf")
        keep = ["--names", "keep"]
        self.output("GGUF parts over parts", convert("old", gguf, *shards, *keep),
                    convert("new", gguf, *shards, *keep, "--force"), out=".")
        self.output("one file over one", convert("old", gguf, *keep), convert("new", gguf, *keep, "--force"), out=".")
        parts = [convert("new", out, *shards, "--force", f"--part={i}/2") for i in (1, 2)]
        self.output("join over shards", convert("old", out, *shards), ["join", out, "--force"], makes_parts=parts)
        self.output("merge over shards", convert("old", out, *shards),
                    ["merge", self.path("new"), self.path("adapter"), out, *shards, "--force"])
        onnx = self.path("work", "o.onnx")
        self.output("ONNX and its data over others", convert("onnx-old/m.onnx", onnx),
                    convert("onnx-new/m.onnx", onnx, "--force"), out=".")

    # --- An edit of one file in place.

    def edit(self):
        file = self.path("work", "m.gguf")

        def prepare():
            self.run("convert", self.path("old"), file, "--names", "keep", "--align", "4096")

        command = ["edit", file, "--set", "general.architecture=edited"]
        self.restore(prepare)
        before = contents(self.work)
        self.run(*command)
        after = contents(self.work)

        def check(done, fault):
            expect(done.returncode in (-9, 0, 1), f"exit {done.returncode}")
            there = contents(self.work)
            said = self.run("inspect", file, code=None)
            interrupted = "an edit of this file was interrupted" in said.stdout + said.stderr
            expect(there in (before, after) or interrupted, "neither old nor new, and nobody says so")
            if interrupted:
                self.run("convert", file, self.path("work", "copy.gguf"), code=1)
                self.run("edit", file)
            self.run("clean", self.work)
            expect(contents(self.work) in (before, after), "a mixture after the recovery")
            expect(not hidden(self.work), f"left behind: {hidden(self.work)}")
            return "pending" if interrupted else "old" if there == before else "new"

        self.every_point("edit", prepare, command, check)

    # --- A batch that runs again.

    def batch(self):
        for name, model, consumes in (("batch", "new", False), ("batch that consumes", "big", True),
                                      ("batch that consumes files", "big.safetensors", True)):
            jobs = self.path("work", "jobs.json")

            def prepare():
                copy = shutil.copy if model.endswith(".safetensors") else shutil.copytree
                ending = os.path.splitext(model)[1]
                for number in ("one", "two"):
                    copy(self.path(model), self.path("work", number + ending))
                options = {"names": "keep", **({"consume": "on"} if consumes else {})}
                interruptions.write_json(jobs, {"options": options, "jobs": [{"in": f"one{ending}", "out": "a.gguf"},
                                                                             {"in": f"two{ending}", "out": "b.gguf"}]})

            self.restore(prepare)
            self.run("batch", jobs)
            after = contents(self.work)

            def check(done, fault):
                expect(done.returncode in (-9, 0, 1), f"exit {done.returncode}")
                if done.returncode == 1:
                    works = [name for name in hidden(self.work) if os.path.isdir(self.path("work", name))
                             and os.path.exists(self.path("work", name, "job.json"))]
                    expect(all(name in done.stderr for name in works), f"{works} named by nobody")
                self.run("batch", jobs)
                expect(contents(self.work) == after, "other bytes than those of an undisturbed run")
                self.run("clean", self.work)
                expect(not hidden(self.work), f"left behind: {hidden(self.work)}")
                return {0: "done", 1: "failed", -9: "killed"}[done.returncode] + " and ended"

            self.every_point(name, prepare, ["batch", jobs], check)

    # --- A source that is consumed.

    def consume(self):
        for merges in (False, True):
            source, adapter = self.path("work", "source"), self.path("work", "adapter")
            out, elsewhere = self.path("work", "out"), self.path("else.safetensors")
            inputs = ["merge", source, adapter] if merges else ["convert", source]
            command = [*inputs, out, "--max-shard-size", "3MB", "--consume"]

            def prepare():
                shutil.copytree(self.path("big"), source)
                shutil.copytree(self.path("big-adapter"), adapter)

            self.restore(prepare)
            whole, lora = contents(source), contents(adapter)
            self.run("convert", source, elsewhere, "--force")
            with open(elsewhere, "rb") as file:
                right = file.read()
            dry = self.run(*command, "--dry-run").stdout
            self.run(*command)
            after = contents(out)
            gone = sorted(set(whole) - set(contents(source)))
            expect(gone and all(name in dry for name in gone), "--dry-run does not list what will be gone")
            expect(contents(adapter) == lora and "adapter_model" not in dry, "the adapter is consumed")

            def check(done, fault):
                expect(done.returncode in (-9, 0, 1), f"exit {done.returncode}")
                if done.returncode == 0:
                    expect(contents(out) == after and not set(gone) & set(contents(source)), "exit 0, and not done")
                    return "done"
                expect(contents(adapter) == lora, "the adapter has changed")
                there = contents(source)
                moved = self.path("work", "moved")
                os.rename(source, moved)  # the mark goes with it
                opened = self.run("convert", moved, elsewhere, "--force", "--verify", code=None)
                os.rename(moved, source)
                if opened.returncode == 0:
                    with open(elsewhere, "rb") as file:
                        expect(file.read() == right, "a source with holes is taken for whole")
                elif set(gone) <= set(there):
                    expect(CONSUMED in opened.stderr, f"not said: {opened.stderr}")
                if contents(out) != after or set(gone) & set(there) or hidden(source):
                    self.run(*command, "--resume")
                expect(contents(out) == after, "other bytes than those of an undisturbed run")
                for folder in (source, out, self.work):
                    self.run("clean", folder)
                    expect(not hidden(folder), f"left behind: {hidden(folder)}")
                expect(not set(gone) & set(contents(source)), "consumed files are still there")
                return "whole" if opened.returncode == 0 else "refused"

            self.every_point("merge that consumes" if merges else "convert that consumes", prepare, command, check)

    def all(self):
        print("points", flush=True)
        self.outputs()
        self.edit()
        self.batch()
        self.consume()
        shutil.rmtree(self.folder)
        print(f"points: {sum(self.total.values())} tried in {len(self.total)} ways to write")


def main():
    arguments = interruptions.arguments(stride=1, offset=0)
    try:
        Points(arguments).all()
    except Failed as failure:
        sys.exit(f"points: FAILED: {failure}")


if __name__ == "__main__":
    main()
