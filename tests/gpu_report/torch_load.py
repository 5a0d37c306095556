"""Loads a safetensors file onto a CUDA device with torch. Prints one JSON object, as torch_load.cpp reads it.

usage: torch_load.py FILE ROUNDS SECONDS
"""
import ctypes
import json
import os
import sys
import time


def cached(path):
    """The share of the file that is in the page cache, by mincore."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    size = os.path.getsize(path)
    pages = (size + 4095) // 4096
    with open(path, "rb") as file:
        base = libc.mmap(None, size, 1, 1, file.fileno(), 0)
        state = ctypes.create_string_buffer(pages)
        failed = libc.mincore(base, size, state)
        libc.munmap(base, size)
    return 1.0 if failed else sum(byte & 1 for byte in state.raw[:pages]) / pages


def drop(path):
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def main(path, rounds, seconds):
    try:
        import safetensors
        import torch
        from safetensors.torch import load_file
    except Exception as error:
        return {"absent": f"{type(error).__name__}: {error}"}
    if not torch.cuda.is_available():
        return {"absent": f"torch {torch.__version__} sees no CUDA device"}

    def load():
        start = time.perf_counter()
        tensors = load_file(path, device="cuda")
        torch.cuda.synchronize()
        taken = time.perf_counter() - start
        del tensors
        torch.cuda.empty_cache()
        return taken

    def measure(before, most):
        times, begin = [], time.perf_counter()
        while len(times) < most and (len(times) < min(most, 3) or time.perf_counter() - begin < seconds):
            before()
            times.append(load())
        return times

    def pinned_rate():
        host = torch.empty(256 << 20, dtype=torch.uint8, pin_memory=True)
        device = torch.empty_like(host, device="cuda")
        times = []
        for _ in range(8):
            torch.cuda.synchronize()
            start = time.perf_counter()
            device.copy_(host, non_blocking=True)
            torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
        return host.numel() / sorted(times[1:])[3]

    load()  # starts CUDA, and fills the page cache
    torch.cuda.reset_peak_memory_stats()
    result = {
        "versions": f"torch {torch.__version__}, safetensors {safetensors.__version__}",
        "device": torch.cuda.get_device_name(),
        "pinned_rate": pinned_rate(),
        "warm": measure(lambda: None, rounds),
        "peak": torch.cuda.max_memory_reserved(),
    }
    drop(path)
    if cached(path) > 0.01:
        result["cold_absent"] = "the system does not drop the file's pages from memory"
    else:
        result["cold"] = measure(lambda: drop(path), rounds)
    return result


print(json.dumps(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))))
