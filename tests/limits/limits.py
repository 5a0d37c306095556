"""Runs commands under limits of the system, and with allocations that fail, and looks at how they end.

usage: limits.py LOADLINE [--runs N] [--allocations N] [--seed N] [--folder DIR] [--only WORD]

Every run ends within 20 seconds: as without limits, or with exit 1 and a message that begins with "loadline: ". None
ends by a signal, and none hangs. --runs: of each command under each limit; --allocations: failing ones of each command.
"""
import collections
import concurrent.futures
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
import interruptions  # noqa: E402

CONFIG = {"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4,
          "num_key_value_heads": 2, "intermediate_size": 512, "vocab_size": 4000, "torch_dtype": "bfloat16"}
HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS = 20
MIB = 1 << 20

# What each limit is set to: a run draws one of that many values, from the least with which the system's loader and the
# libraries come as far as main().
LIMITS = {"data": 64 * MIB, "as": 256 * MIB, "nproc": 6, "nofile": 24, "fsize": 2 * MIB}


def commands(folder):
    """Names and arguments; {out} is a new folder of each run."""
    model, gguf, adapter = (os.path.join(folder, name) for name in ("m", "m.gguf", "adapter"))
    return {
        "inspect": ["inspect", model, "--json"],
        "stats": ["inspect", gguf, "--stats"],
        "doctor": ["inspect", model, "--doctor"],
        "plan": ["plan", model, "--order", "all"],
        "rehearse": ["rehearse", model],
        "report": ["report", model, "-o", "{out}/report.html"],
        "pack": ["pack", model],
        "convert": ["convert", model, "{out}/o.gguf", "--outtype", "q4_k_m"],
        "sharded": ["convert", model, "{out}/o", "--max-shard-size", "2MB", "--verify"],
        "torch": ["convert", gguf, "{out}/o.pt"],
        "merge": ["merge", model, adapter, "{out}/o.safetensors"],
        "batch": ["batch", "{out}/jobs.json", "--jobs", "2", "--keep-going"],
        "verify": ["verify", model, gguf],
        "diff": ["diff", model, gguf],
        "synth": ["synth", os.path.join(folder, "config.json"), "{out}/o", "--random", "2"],
        "lesson": ["lesson", "list"],
        "help": ["help", "converting"],
    }


class Limits:
    def __init__(self, arguments):
        self.program, self.random = arguments.program, random.Random(arguments.seed)
        self.folder = tempfile.mkdtemp(prefix="loadline-limits-", dir=arguments.folder)
        self.only, self.runs, self.failed = arguments.only, 0, []
        self.library = interruptions.fault_library(os.path.join(HERE, "faults.c"), self.folder)
        os.chmod(self.folder, 0o755)
        self.make_models()
        self.commands = {name: words for name, words in commands(self.folder).items() if self.only in name}
        self.codes = {name: self.run(name)[0] for name in self.commands}
        for name, code in self.codes.items():
            if code not in (0, 3, 4):
                sys.exit(f"limits: {name} ends with {code} without limits: {self.run(name)[1]}")

    def make_models(self):
        model = os.path.join(self.folder, "m")
        config = interruptions.write_json(os.path.join(self.folder, "config.json"), CONFIG)
        for words in (["synth", config, model, "--random", "1", "--max-shard-size", "2MB"],
                      ["convert", model, os.path.join(self.folder, "m.gguf"), "--names", "keep"]):
            subprocess.run([self.program, *words], check=True, stdout=subprocess.DEVNULL)
        interruptions.write_adapter(os.path.join(self.folder, "adapter"), CONFIG["hidden_size"])

    def run(self, name, prefix=(), fault=None, count=None):
        """Exit code, or "hang"; what it said; the seconds."""
        out = tempfile.mkdtemp(dir=self.folder)
        os.chmod(out, 0o777)  # for those that do not run as root
        model = os.path.join(self.folder, "m")
        interruptions.write_json(os.path.join(out, "jobs.json"),
                                 {"jobs": [{"in": model, "out": "a.gguf", "options": {"names": "keep"}},
                                           {"in": model, "out": "b.safetensors"}]})
        environment = dict(os.environ, HOME=out)
        if fault:
            environment |= {"LD_PRELOAD": self.library, "LOADLINE_FAULT": fault}
        if count:
            environment["LOADLINE_FAULT_COUNT"] = count
        words = [word.replace("{out}", out) for word in self.commands[name]]
        process = subprocess.Popen([*prefix, self.program, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, errors="replace", env=environment, cwd=out)
        try:
            _, said = process.communicate(timeout=SECONDS)
            return process.returncode, said.strip()
        except subprocess.TimeoutExpired:
            process.kill()
            return "hang", process.communicate()[1].strip()
        finally:
            shutil.rmtree(out, ignore_errors=True)

    def fault_of(self, name, code, said):
        """What is wrong with such an end; nothing if it is right."""
        if code in (0, self.codes[name]):
            return None
        if code == "hang":
            return f"hangs over {SECONDS} s"
        if code not in (1, 3):  # 3: what was to be tried does not fit
            return f"exit {code}: {said[-300:]}"
        if "loadline: " not in said and '"error"' not in said:
            return f"exit {code} without a message: {said[-300:]}"
        return None

    def try_all(self, title, tries):
        """Tries are a name, words to show, and the arguments of run()."""
        counts = collections.Counter()
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            ends = pool.map(lambda one: self.run(one[0], **one[2]), tries)
            for (name, words, _), (code, said) in zip(tries, ends):
                counts[code] += 1
                if fault := self.fault_of(name, code, said):
                    self.failed.append(f"{name}, {words}: {fault}")
        self.runs += len(tries)
        print(f"{title}: {len(tries)} runs, " + ", ".join(f"{n} exit {code}" for code, n in counts.most_common()),
              flush=True)

    def least(self, limit):
        """The least value with which the program tells its version."""
        low, high = -1, 1024 if limit in ("nproc", "nofile") else 4096 * MIB
        while high - low > max(1, high // 100):
            middle = (low + high) // 2
            done = subprocess.run(["prlimit", f"--{limit}={middle}", "--core=0", self.program, "--version"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            low, high = (low, middle) if done.returncode == 0 else (middle, high)
        return high

    def matrix(self, runs):
        for limit, room in LIMITS.items():
            least = self.least(limit)
            tries = []
            for name in self.commands:
                for _ in range(runs):
                    value = least + self.random.randint(0, room)
                    prefix = ["prlimit", f"--{limit}={value}", "--core=0"]
                    if limit == "nproc" and os.geteuid() == 0:  # root has no such limit
                        prefix = ["setpriv", "--reuid=65534", "--clear-groups", *prefix]
                    tries.append((name, f"{limit} {value}", {"prefix": prefix}))
            self.try_all(f"limit {limit}", tries)

    def allocations(self, count):
        tries = []
        for name in self.commands:
            path = os.path.join(self.folder, "count")
            self.run(name, fault="alloc:0", count=path)
            with open(path) as file:
                total = int(file.read())
            # the first and the last ones, where the program begins and ends, and some of the others
            numbers = set(range(1, count // 8 + 1)) | set(range(total - count // 8, total + 1))
            numbers |= {self.random.randint(1, total) for _ in range(count - len(numbers))}
            for i, number in enumerate(sorted(numbers)):
                fault = f"alloc:{number}" + ("+" if i % 3 == 2 else "")
                tries.append((name, fault, {"fault": fault}))
        self.try_all("failing allocations", tries)

    def locks(self):
        tries = [(name, f"fstat:{n}+", {"fault": f"fstat:{n}+"})
                 for name in self.commands for n in (1, 2, 4, 8, 16)]
        self.try_all("failing fstat", tries)


def main():
    arguments = interruptions.arguments(runs=50, allocations=200, seed=None)
    print(f"limits: seed {arguments.seed}", flush=True)
    limits = Limits(arguments)
    limits.matrix(arguments.runs)
    limits.allocations(arguments.allocations)
    limits.locks()
    if limits.failed:
        print("\n".join(limits.failed[:40]), file=sys.stderr)
        sys.exit(f"limits: FAILED: {len(limits.failed)} of {limits.runs} runs")
    shutil.rmtree(limits.folder)
    print(f"limits: {limits.runs} runs ended in time, with exit 1 and a message or as without limits")


main()
