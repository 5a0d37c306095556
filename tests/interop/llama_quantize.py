"""llama.cpp's own file quantizer: llama_model_quantize of the library inside llama-cpp-py-sync.

That library asks for glibc 2.38, of which it needs four functions that read numbers. Where glibc is older, copies
of its parts that do not insist are made in a folder, with a small library of these functions, compiled there.
"""

import ctypes
import importlib.metadata
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile

import numpy

FUNCTIONS = """
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
long __isoc23_strtol(const char *text, char **end, int base) { return strtol(text, end, base); }
unsigned long __isoc23_strtoul(const char *text, char **end, int base) { return strtoul(text, end, base); }
unsigned long long __isoc23_strtoull(const char *text, char **end, int base) { return strtoull(text, end, base); }
int __isoc23_sscanf(const char *text, const char *format, ...) {
  va_list list;
  va_start(list, format);
  int count = vsscanf(text, format, list);
  va_end(list);
  return count;
}
"""
NEEDED = b"GLIBC_2.38"
# Linux Standard Base, symbol versioning: a section of this type lists versions that must be there, unless weak
VERSIONS_NEEDED, WEAK = 0x6FFFFFFE, 2

_opened = None


def version():
    return "b" + importlib.metadata.version("llama-cpp-py-sync").removeprefix("0.")


def without_insisting(data):
    """The ELF file with its need of NEEDED made weak."""
    data = bytearray(data)
    sections, = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    header = lambda i: struct.unpack_from("<IIQQQQII", data, sections + i * size)
    for i in range(count):
        _, kind, _, _, at, _, texts, files = header(i)
        if kind != VERSIONS_NEEDED:
            continue
        names = header(texts)[4]
        for _ in range(files):
            _, versions, _, first, following = struct.unpack_from("<HHIII", data, at)
            entry = at + first
            for _ in range(versions):
                _, flags, _, name, step = struct.unpack_from("<IHHII", data, entry)
                if data[names + name:].startswith(NEEDED + b"\0"):
                    struct.pack_into("<H", data, entry + 4, flags | WEAK)
                entry += step
            at += following
    return bytes(data)


def library():
    """The C interface and cffi's, opened once and silent; None where it cannot be had."""
    global _opened
    if _opened is None:
        _opened = (open_library() or (None,))
    return None if _opened[0] is None else _opened


def open_library():
    try:
        import llama_cpp_py_sync
        from llama_cpp_py_sync import _cffi_bindings as bindings
    except ImportError:
        return None
    package = pathlib.Path(llama_cpp_py_sync.__file__).parent
    path = package / "libllama.so"
    try:
        c = bindings.ffi.dlopen(str(path))
    except OSError:
        if shutil.which("cc") is None:
            return None
        folder = pathlib.Path(tempfile.mkdtemp())
        for part in package.glob("lib*.so*"):
            (folder / part.name).write_bytes(without_insisting(part.read_bytes()))
        (folder / "functions.c").write_text(FUNCTIONS)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "functions.so", folder / "functions.c"], check=True)
        ctypes.CDLL(str(folder / "functions.so"), mode=ctypes.RTLD_GLOBAL)
        c = bindings.ffi.dlopen(str(folder / "libllama.so"))
        shutil.rmtree(folder)
    lines = []
    keep = bindings.ffi.callback("void(int, const char *, void *)", lambda level, text, data: lines.append(bindings.ffi.string(text)))
    c.llama_log_set(bindings.ffi.cast("ggml_log_callback", keep), bindings.ffi.NULL)
    c.llama_backend_init()
    return c, bindings.ffi, lines, keep


def quantize(source, out, file_type, importance=None, only_types=False, threads=2):
    """Writes the file; the types of its tensors by name, as the quantizer tells them. importance: arrays by name."""
    c, ffi, lines, _ = library()
    how = c.llama_model_quantize_default_params()
    how.nthread, how.ftype, how.allow_requantize, how.dry_run = threads, file_type, True, only_types
    kept = []
    if importance:
        entries = ffi.new("struct llama_model_imatrix_data[]", len(importance) + 1)
        for i, (name, weights) in enumerate(importance.items()):
            kept += [ffi.new("char[]", name.encode()), numpy.ascontiguousarray(weights, numpy.float32)]
            entries[i].name, entries[i].size = kept[-2], kept[-1].size
            entries[i].data = ffi.cast("const float *", kept[-1].ctypes.data)
        entries[len(importance)].name = ffi.NULL
        how.imatrix = entries
    lines.clear()
    failed = c.llama_model_quantize(str(source).encode(), str(out).encode(), ffi.new("llama_model_quantize_params *", how))
    text = b"".join(lines).decode(errors="replace")
    if failed:
        raise RuntimeError(f"llama.cpp did not quantize {source}: {text[-300:]}")
    types = {}
    for line in re.findall(r"\[ *\d+/ *\d+\].*(?:\n(?!\[ *\d+/ *\d+\]).*)*", text):
        name, stored = re.match(r"\[ *\d+/ *\d+\] +(\S+) .*?type = +(\S+?),", line).groups()
        becomes = re.search(r"MiB \((\S+)\)", line) or re.search(r"converting to (\S+) \.\.", line)
        types[name] = (becomes.group(1) if becomes else stored).lower()
    return types
