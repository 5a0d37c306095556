"""Gives the program mutated inputs of every kind, models and settings, and looks at how it ends.

usage: mutated.py LOADLINE [--inputs N] [--seed N] [--only KIND] [--keep DIR]

Every run ends by itself within 3 seconds of processor time and 512 MiB, with one of the documented exit codes, never
by a signal. A failure has a message. Nothing that a terminal would obey is printed, and --json prints JSON or nothing.
"""
import argparse
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CORPUS = os.path.join(ROOT, "tests", "fuzz", "corpus")
ASSETS = os.path.join(ROOT, "assets")
SECONDS, MEBIBYTES, WALL, CLOSES = 3, 512, 60, 1.5
CODES = (0, 1, 2, 3, 4)
# what a terminal obeys: control characters but newline and tab, and marks that turn the direction of text
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f]")
RAW = (b"terminate called", b"std::", b"what():", b"json.exception", b"bad_alloc", b"basic_string", b"filesystem error")
# a number, a string or a flat list of JSON, and what stands in its place
VALUE = re.compile(rb'(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])|"[^"\n]{0,80}"|\[[^\[\]]{0,200}\]')
VALUES = ["0", "-1", "1", "65", "255", "4294967295", "4294967296", "9223372036854775807", "18446744073709551615",
           "18446744073709551616", "1e308", "1e999", "-0.0", "null", "[]", "{}", '""', "true", '"\\u0000"', '"\\u001b[31m"']
BYTES = [b"\x00", b"\xff", b"\x7f", b"\x80", b"\xff\xff\xff\xff", b"\x00\x00\x00\x80", b"\xff" * 8, b"\x1b[2J",
         "\u202e".encode(), b"../../", b"/" * 64, b"A" * 5000, b"[" * 300, b"{\"a\":" * 300]


def mutated(data, random_, others):
    """One to six changes of a file's bytes, mostly one."""
    data = bytearray(data)
    for _ in range(random_.choice([1, 1, 1, 1, 2, 3, 6])):
        at = random_.randrange(len(data) + 1)
        kind = random_.randrange(9)
        if kind == 0 and data:
            data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)
        elif kind == 1 and data:
            data[random_.randrange(len(data))] = random_.randrange(256)
        elif kind == 2:
            data[at:at] = random_.choice(BYTES)
        elif kind == 3 and data:
            del data[at : at + random_.randint(1, max(1, len(data) // 4))]
        elif kind == 4 and data:
            piece = data[at : at + random_.randint(1, 64)]
            data[at:at] = piece * random_.randint(1, 4)
        elif kind == 5:
            del data[at:]
        elif kind == 6 and data:
            width = random_.choice([2, 4, 8])
            value = random_.choice([0, 1, 2, 1 << 15, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1])
            data[at : at + width] = (value % (1 << 8 * width)).to_bytes(width, "little")
        elif kind == 7:
            other = random_.choice(others)
            begin = random_.randrange(len(other) + 1)
            data[at:at] = other[begin : begin + random_.randint(1, 200)]
        else:
            values = list(re.finditer(VALUE, bytes(data)))
            if values:
                found = random_.choice(values)
                data[found.start() : found.end()] = random_.choice(VALUES).encode()
    return bytes(data)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def files_of(*parts, ending=""):
    folder = os.path.join(*parts)
    names = sorted(name for name in os.listdir(folder) if name.endswith(ending) and not name.startswith("."))
    return [read(os.path.join(folder, name)) for name in names if os.path.isfile(os.path.join(folder, name))]


# Kinds of model files: the corpus of the fuzzers, and the name that the program opens one under.
MODELS = {"gguf": "m.gguf", "gguf_family": "m.gguf", "gguf_model": "m.gguf", "edit": "m.gguf", "hf_index":
          "model.safetensors.index.json", "npy": "m.npy", "npz": "m.npz", "onnx": "m.onnx", "pt2": "m.pt2", "ptd": "m.ptd",
          "pte": "m.pte", "safetensors": "m.safetensors", "tflite": "m.tflite", "torch": "m.pt", "torch_legacy": "m.pt",
          "config": "config.json"}
MODEL_COMMANDS = [["inspect", "{0}"], ["inspect", "{0}", "--json", "--tensors"], ["plan", "{0}"],
                  ["plan", "{0}", "--method", "all", "--json"], ["plan", "{0}", "--seq", "16", "--json"],
                  ["convert", "{0}", "out.safetensors"], ["convert", "{0}", "out.gguf"], ["convert", "{0}", "out.npz"],
                  ["convert", "{0}", "out.pt", "--dry-run"], ["verify", "{0}", "{0}"], ["diff", "{0}", "{0}", "--json"],
                  ["report", "{0}", "-o", "out.html"], ["rehearse", "{0}", "--json"], ["edit", "{0}", "--set", "a=b"]]
LIST_COMMAND = {"packing": [["pack", "{0}"], ["pack", "{0}", "--json"]],
                "order_file": [["plan", "good.safetensors", "--order", "{0}"]],
                "importance": [["convert", "good.safetensors", "out.gguf", "--imatrix", "{0}", "--outtype", "q4_0"]]}


class Kind:
    """Inputs of one kind: seeds, the path that each is written to, the commands that read it, and what lies beside it, by
    path. What opens the window is tried a tenth as often; on a display it is closed after a while."""

    def __init__(self, name, seeds, path, commands, beside=None, window=False, display=False):
        self.name, self.seeds, self.path, self.commands = name, [seed for seed in seeds if seed], path, commands
        self.beside, self.window, self.display = beside or {}, window or display, display


# As the window keeps it.
WINDOW_STATE = {"dark": False, "follows_desktop": True, "scale": 1.25, "tree": 300.0, "inspector": 320.5, "timeline": 240.0,
                "show_tree": True, "show_inspector": False, "show_timeline": True, "width": 1400, "height": 900,
                "recent": ["good.safetensors", "/gone"], "favorites": ["llama"]}


def own_kinds(program, folder):
    """Files that the program keeps for itself: of lists of jobs, of conversions, of sources that are consumed."""

    def run(*arguments):
        subprocess.run([program, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    jobs = json.dumps({"jobs": [{"in": "good.safetensors", "out": "batch/a.npz"}]}).encode()
    with open(os.path.join(folder, "jobs.json"), "wb") as file:
        file.write(jobs)
    shares = ["convert", "good.safetensors", "shares", "--max-shard-size", "128KiB"]
    run("batch", "jobs.json"), run(*shares, "--part", "1/2")
    work = os.path.join("shares", os.listdir(os.path.join(folder, "shares"))[0])
    files = {os.path.join(work, name): read(os.path.join(folder, work, name))
             for name in os.listdir(os.path.join(folder, work))}
    state = read(os.path.join(folder, "jobs.json.state"))
    mark = b"\0".join([b"LOADLINE MARK 1", os.path.join(folder, work).encode(), b"good.safetensors", b"config.json", b""])
    taken = b"0 4096 1052672 0123456789abcdef\n0 1052672 2101248 0123456789abcdef\n"
    for name in ("jobs.json", "jobs.json.state", "batch", "shares"):
        path = os.path.join(folder, name)
        shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    ends = [["clean", "shares"], ["clean", "shares", "--dry-run", "--json"], ["join", "shares"], ["inspect", "shares"],
            shares + ["--part", "2/2"], shares + ["--resume"], shares + ["--force"], shares + ["--consume", "--dry-run"]]
    reads = [["inspect", "good.safetensors"], ["plan", "good.safetensors", "--json"], ["clean", "."],
             ["convert", "good.safetensors", "out.npz"], ["convert", "good.safetensors", "out.gguf", "--resume", "--dry-run"]]
    return [Kind("batch state", [state], "jobs.json.state", [["batch", "jobs.json"], ["batch", "jobs.json", "--json"]],
                 {"jobs.json": jobs}),
            Kind("work record", [files[os.path.join(work, "job.json")]], os.path.join(work, "job.json"), ends, files),
            Kind("work log", [files[os.path.join(work, "00001.log")]], os.path.join(work, "00001.log"), ends, files),
            Kind("taken", [taken], os.path.join(work, "consumed"), ends, files),
            Kind("publication mark", [mark], os.path.join(work, "publish"), ends, files),
            Kind("consumed mark", [mark], ".loadline-consumed", reads)]


def kinds(requests):
    found = [Kind(name, files_of(CORPUS, name), path, MODEL_COMMANDS) for name, path in MODELS.items()]
    found += [Kind(name, files_of(CORPUS, name), "list.csv" if name == "packing" else "list.txt", commands)
              for name, commands in LIST_COMMAND.items()]
    for name in ("tokenizer_json", "tokenizer_model"):
        path = "model/tokenizer." + name.split("_")[1]
        found.append(Kind(name, files_of(CORPUS, name), path, [["inspect", "model"], ["convert", "model", "out.gguf"]]))
    settings = "home/loadline/"
    plan = ["plan", "good.safetensors"]
    forward = ["plan", "llama", "--seq", "64", "--json"]
    found += [
        Kind("request", requests, "request.json",
             [plan + ["--request", "{0}"], ["rehearse", "good.safetensors", "--request", "{0}", "--json"],
              ["report", "good.safetensors", "--request", "{0}", "-o", "out.html"]]),
        Kind("batch", [json.dumps({"jobs": [{"in": "good.safetensors", "out": "batch/a.gguf"},
                                            {"in": "good.safetensors", "out": "batch/b.npz",
                                             "options": ["--cast", "f16"]}]}).encode()],
             "jobs.json", [["batch", "{0}"], ["batch", "{0}", "--keep-going", "--json"]]),
        Kind("lesson", files_of(ASSETS, "lessons", ending=".json"), settings + "lessons/own.json",
             [["lesson", "check", settings + "lessons/own.json"], ["lesson", "check", settings + "lessons/own.json", "--json"],
              ["lesson", "list"], ["lesson", "run", "own", "--no-run"]]),
        Kind("lesson text", files_of(ASSETS, "lessons", ending=".md"), settings + "lessons/six-ways.md",
             [["lesson", "check", settings + "lessons/six-ways.json"], ["lesson", "run", "six-ways", "--no-run"]]),
        Kind("target", files_of(ASSETS, "targets", ending=".json"), settings + "targets/own.json",
             [["targets"], ["targets", "--json"], plan + ["--target", "own"]]),
        Kind("profile", files_of(ASSETS, "profiles", ending=".json"), settings + "profiles/own.json",
             [forward, forward + ["--profile", "own"]]),
        Kind("architecture", files_of(ASSETS, "architectures", ending=".json"), settings + "architectures/llama.json",
             [forward, ["inspect", "llama"]]),
        Kind("gguf names", files_of(ASSETS, "gguf", ending=".json"), settings + "gguf/llama.json",
             [["convert", "llama", "out.gguf", "--dry-run"]]),
        Kind("rates", [b'{"schema_version": 1, "disk": {"read": 1.5e9}, "memory": {"copy": 8.1e9}}'],
             settings + "rates.json", [plan, ["plan", "good.safetensors", "--rates", "{0}", "--json"]]),
        Kind("script", files_of(ASSETS, "readme", ending=".script"), "window.script",
             [["gui", "good.safetensors", "--script", "{0}", "--offscreen", "--size", "900x600"]], window=True),
        Kind("window", files_of(CORPUS, "safetensors"), "m.safetensors", [["gui", "{0}", "--screenshot", "w.png"]],
             window=True),
        Kind("window state", [json.dumps(WINDOW_STATE, indent=2).encode(), b"{}"], settings + "window.json",
             [["gui"], ["gui", "good.safetensors"]], display=True),
    ]
    return found


class Run:
    """One run under limits: how it ended, what it took and what it printed. `closes`: after so many seconds it is told to
    end."""

    def __init__(self, program, arguments, folder, display=None, closes=None):
        environment = {"PATH": "/usr/bin:/bin", "HOME": folder, "XDG_CONFIG_HOME": os.path.join(folder, "home"),
                       "LC_ALL": "C.UTF-8", "TMPDIR": folder, "MALLOC_PERTURB_": "165"}
        if display:
            environment["DISPLAY"] = display
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen([program, *arguments], stdout=out, stderr=err, stdin=subprocess.DEVNULL, cwd=folder,
                                       env=environment, preexec_fn=limits, start_new_session=True)
            begin, self.hung = time.monotonic(), False
            while True:
                pid, status, used = os.wait4(process.pid, os.WNOHANG)
                if pid:
                    break
                if closes and time.monotonic() - begin > closes:
                    closes = process.terminate()
                if time.monotonic() - begin > WALL:
                    self.hung = True
                    os.killpg(process.pid, signal.SIGKILL)
                time.sleep(0.002)
            process.returncode = 0
            out.seek(0), err.seek(0)
            self.out, self.err = out.read(), err.read()
        self.code = os.waitstatus_to_exitcode(status)
        self.mebibytes = used.ru_maxrss / 1024
        self.seconds = used.ru_utime + used.ru_stime

    def faults(self, arguments):
        if self.hung:
            yield f"did not end within {WALL} s"
        elif self.code < 0:
            yield f"ended by signal {-self.code}"
        elif self.code not in CODES:
            yield f"exit code {self.code}"
        if self.seconds > SECONDS:
            yield f"took {self.seconds:.1f} s of processor time"
        if self.mebibytes > MEBIBYTES:
            yield f"took {self.mebibytes:.0f} MiB"
        if self.code in (1, 2) and not self.err.strip() and not self.out.strip():
            yield "failed without a message"
        for name, text in (("stdout", self.out), ("stderr", self.err)):
            try:
                if obeyed := OBEYED.search(text.decode()):
                    yield f"{name} has {obeyed.group()!r} behind {text.decode()[max(0, obeyed.start() - 40):obeyed.start()]!r}"
            except UnicodeDecodeError as error:
                yield f"{name} is not UTF-8: {error}"
        yield from (f"a library's words: {raw.decode()}" for raw in RAW if raw in self.err)
        if len(self.err) > 100_000:
            yield f"{len(self.err)} bytes of messages"
        if "--json" in arguments and self.out.strip() and self.code in (0, 3, 4):
            try:
                json.loads(self.out, parse_constant=lambda word: (_ for _ in ()).throw(ValueError(word)))
            except ValueError as error:
                yield f"no JSON: {error}"


def limits():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (2 << 30, 2 << 30))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 31, 1 << 31))


def good_inputs(program, folder):
    """Models that settings are tried with, and requests as the program saves them."""
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2,
              "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 256}
    os.makedirs(os.path.join(folder, "llama"))
    with open(os.path.join(folder, "llama", "config.json"), "w") as file:
        json.dump(config, file)
    quiet = {"cwd": folder, "check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([program, "synth", "llama/config.json", "model"], **quiet)
    shutil.copy(os.path.join(folder, "model", "model.safetensors"), os.path.join(folder, "good.safetensors"))
    requests = []
    for at, options in enumerate((["--method", "all", "--order", "file,largest"], ["--device-budget", "8GiB"],
                                  ["--target", "h100-80gb", "--cast", "f16"], ["--staging", "1MiB", "--slots", "2"],
                                  ["--activations", "3MiB", "--reserve", "1GiB"])):
        saved = os.path.join(folder, f"saved{at}.json")
        subprocess.run([program, "plan", "good.safetensors", *options, "--save-request", saved], cwd=folder,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if os.path.exists(saved):
            requests.append(read(saved))
    return requests + [read(os.path.join(HERE, name)) for name in sorted(os.listdir(HERE)) if name.endswith(".json")]


class Display:
    """An X server without a screen; no name if there is none."""

    def __init__(self):
        self.name, self.server = None, None
        if shutil.which("Xvfb"):
            self.server = subprocess.Popen(["Xvfb", "-displayfd", "1", "-screen", "0", "1600x1000x24", "-nolisten", "tcp"],
                                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            number = self.server.stdout.readline().decode().strip()
            self.name = f":{number}" if number else None

    def close(self):
        if self.server:
            self.server.terminate()
            self.server.wait()


def clear(folder, kept):
    for name in os.listdir(folder):
        if name not in kept:
            path = os.path.join(folder, name)
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("--inputs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--only")
    parser.add_argument("--keep", type=os.path.abspath)
    asked = parser.parse_args()
    random_ = random.Random(asked.seed)
    folder = tempfile.mkdtemp(prefix="loadline-mutated-")
    faults, runs, most, ended, display = 0, 0, {"seconds": 0.0, "mebibytes": 0.0}, {}, Display()
    try:
        found = kinds(good_inputs(asked.program, folder)) + own_kinds(asked.program, folder)
        tried = [kind for kind in found if asked.only in (None, kind.name) and (display.name or not kind.display)]
        tokenizer = os.path.join(folder, "model")
        kept = set(os.listdir(folder))
        everything = [seed for kind in tried for seed in kind.seeds]
        for number in range(asked.inputs):
            kind = tried[number % len(tried)]
            if kind.window and asked.only is None and random_.random() > 0.1:
                kind = random_.choice([other for other in tried if not other.window])
            data = mutated(random_.choice(kind.seeds), random_, everything)
            path = os.path.join(folder, kind.path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            for name, bytes_ in kind.beside.items():
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(bytes_)
            if kind.path.endswith("six-ways.md"):
                shutil.copy(os.path.join(ASSETS, "lessons", "six-ways.json"), os.path.dirname(path))
            if kind.path.endswith("own.json") and kind.name == "lesson":
                with open(path[:-5] + ".md", "wb") as file:
                    file.write(random_.choice(files_of(ASSETS, "lessons", ending=".md")))
            with open(path, "wb") as file:
                file.write(data)
            for command in random_.sample(kind.commands, min(2, len(kind.commands))):
                arguments = [word.format(kind.path) for word in command]
                run = Run(asked.program, arguments, folder, display.name, CLOSES if kind.display else None)
                runs += 1
                ended[run.code] = ended.get(run.code, 0) + 1
                most = {key: max(value, getattr(run, key)) for key, value in most.items()}
                for fault in run.faults(arguments):
                    faults += 1
                    print(f"{kind.name} {number}: loadline {' '.join(arguments)}: {fault}")
                    sys.stdout.flush()
                    if asked.keep:
                        os.makedirs(os.path.join(asked.keep, f"{kind.name}-{number}"), exist_ok=True)
                        shutil.copy(path, os.path.join(asked.keep, f"{kind.name}-{number}"))
            for name in ("tokenizer.json", "tokenizer.model"):
                if os.path.exists(os.path.join(tokenizer, name)):
                    os.remove(os.path.join(tokenizer, name))
            clear(folder, kept)
    finally:
        display.close()
        shutil.rmtree(folder, ignore_errors=True)
    codes = ", ".join(f"{count} with {code}" for code, count in sorted(ended.items()))
    print(f"{asked.inputs} inputs of {len(tried)} kinds, {runs} runs (ended: {codes}), seed {asked.seed}: {faults} faults; "
          f"at most {most['seconds']:.2f} s and {most['mebibytes']:.0f} MiB")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
