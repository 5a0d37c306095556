"""What tests share that interrupt, starve and fault the program: arguments, inputs, faults, what lies in a folder."""
import argparse
import hashlib
import json
import os
import struct
import subprocess
import time


class Failed(Exception):
    pass


def expect(holds, text):
    if not holds:
        raise Failed(text)


def arguments(**defaults):
    """LOADLINE, --folder, --only, and options with these defaults; None as a seed: another one each time."""
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("--folder")
    parser.add_argument("--only", default="")
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=int(time.time()) if default is None else default)
    return parser.parse_args()


def fault_library(source, folder):
    """Compiles a library that makes calls fail; its path."""
    library = os.path.join(folder, "faults.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


def write_json(path, value):
    with open(path, "w") as file:
        json.dump(value, file)
    return path


def write_adapter(folder, size, rank=4):
    """A LoRA of the first layer's q_proj of a model with that hidden size."""
    os.makedirs(folder)
    write_json(os.path.join(folder, "adapter_config.json"),
               {"peft_type": "LORA", "r": rank, "lora_alpha": 8, "target_modules": ["q_proj"]})
    header, at = {}, 0
    for name, shape in (("lora_A", [rank, size]), ("lora_B", [size, rank])):
        end = at + 4 * shape[0] * shape[1]
        header[f"base_model.model.model.layers.0.self_attn.q_proj.{name}.weight"] = {
            "dtype": "F32", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "adapter_model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + struct.pack("<f", 0.25) * (at // 4))


def contents(folder):
    """Hashes by name of all files but the program's own."""
    found = {}
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".loadline")]
        for name in files:
            if not name.startswith(".loadline") and not name.endswith(".state"):
                with open(os.path.join(root, name), "rb") as file:
                    found[os.path.relpath(os.path.join(root, name), folder)] = \
                        hashlib.file_digest(file, "blake2b").hexdigest()
    return found


def hidden(folder):
    """The program's own files in a folder."""
    return sorted(name for name in os.listdir(folder) if name.startswith(".loadline")) if os.path.isdir(folder) else []
