"""Loads by llama.cpp on the CPU, through its C interface.

The library is the one inside xllamacpp; the declarations are llama-cpp-py-sync's."""

import glob
import os

from recipes import recipe

NONE, MMAP, MLOCK, MMAP_MLOCK, DIRECT_IO = range(5)  # enum llama_load_mode

PLAIN = tuple(f"gguf-{ties}.{kind}" for ties in ("untied", "tied") for kind in ("f16", "q8_0", "q4_0"))
MORE = tuple(f"gguf-untied.{kind}" for kind in ("f32", "bf16", "q4_k", "q4_k_m"))
REPACKED = ("gguf-untied.q4_0", "gguf-tied.q4_0", "gguf-untied.q4_k_m", "gguf-moe.q4_0")
VOCABULARY = ("gguf-bpe.q4_0",)

CPU = ("--gpu-layers", "0")
REPACK = (*CPU, "--repack", "x86")

_library = None


def _llama():
    """The C interface, opened once and silent."""
    global _library
    if _library is None:
        import xllamacpp
        from llama_cpp_py_sync import _cffi_bindings as bindings

        c = bindings.ffi.dlopen(xllamacpp.xllamacpp.__file__)
        silent = bindings.ffi.callback("void(int, const char *, void *)", lambda level, text, data: None)
        c.llama_log_set(bindings.ffi.cast("ggml_log_callback", silent), bindings.ffi.NULL)
        c.llama_backend_init()
        _library = c, bindings.ffi, silent
    return _library[:2]


class _Model:
    """A loaded model, and the context of what it has decoded; freed with this object."""

    def __init__(self, folder, mode, repack):
        self.c, self.ffi = _llama()
        self.model = self.context = self.ffi.NULL
        (path,) = glob.glob(os.path.join(folder, "*.gguf"))
        how = self.c.llama_model_default_params()
        how.n_gpu_layers = 0
        how.load_mode = mode
        how.use_extra_bufts = repack
        self.model = self.c.llama_model_load_from_file(path.encode(), how)
        if self.model == self.ffi.NULL:
            raise RuntimeError("llama.cpp did not load the file")

    def decode(self, count=4):
        """One batch of a few tokens through the whole model, in a small context."""
        how = self.c.llama_context_default_params()
        how.n_ctx, how.n_batch, how.n_ubatch = 256, 8, 8
        how.n_threads = how.n_threads_batch = 2
        self.context = self.c.llama_init_from_model(self.model, how)
        tokens = self.ffi.new("llama_token[]", list(range(300, 300 + count)))
        if self.context == self.ffi.NULL or self.c.llama_decode(self.context, self.c.llama_batch_get_one(tokens, count)):
            raise RuntimeError("llama.cpp did not decode")
        return self

    def __del__(self):
        if self.context != self.ffi.NULL:
            self.c.llama_free(self.context)
        if self.model != self.ffi.NULL:
            self.c.llama_model_free(self.model)


@recipe("llama_cpp_mmap", *PLAIN, *MORE, flags=CPU, framework="llama.cpp")
def llama_cpp_mmap(model):
    """llama.cpp, --load-mode mmap --no-repack"""
    return _Model(model, MMAP, False)


@recipe("llama_cpp_mmap", *REPACKED, *VOCABULARY, "gguf-untied.q8_0", flags=REPACK, framework="llama.cpp")
def llama_cpp_mmap_repack(model):
    """llama.cpp as it is by default: mapped, matrices repacked for the CPU"""
    return _Model(model, MMAP, True)


@recipe("llama_cpp_mmap", "gguf-untied.f16", "gguf-untied.q4_0", "gguf-tied.q4_0", flags=CPU, framework="llama.cpp")
def llama_cpp_mmap_decode(model):
    """llama.cpp, --load-mode mmap --no-repack, then a few tokens"""
    return _Model(model, MMAP, False).decode()


@recipe("llama_cpp_mmap", *REPACKED, flags=REPACK, framework="llama.cpp")
def llama_cpp_mmap_repack_decode(model):
    """llama.cpp as it is by default, then a few tokens"""
    return _Model(model, MMAP, True).decode()


@recipe("llama_cpp_mmap", "gguf-untied.q4_0", flags=CPU, framework="llama.cpp")
def llama_cpp_mmap_mlock(model):
    """llama.cpp, --load-mode mmap+mlock --no-repack"""
    return _Model(model, MMAP_MLOCK, False)


@recipe("llama_cpp_mmap", "gguf-untied.q4_0", flags=REPACK, framework="llama.cpp")
def llama_cpp_mmap_mlock_repack(model):
    """llama.cpp, --load-mode mmap+mlock"""
    return _Model(model, MMAP_MLOCK, True)


@recipe("llama_cpp_ring", *PLAIN, *MORE, flags=CPU, framework="llama.cpp")
def llama_cpp_read(model):
    """llama.cpp, --load-mode none --no-repack"""
    return _Model(model, NONE, False)


@recipe("llama_cpp_ring", *REPACKED, "gguf-untied.q8_0", flags=REPACK, framework="llama.cpp")
def llama_cpp_read_repack(model):
    """llama.cpp, --load-mode none"""
    return _Model(model, NONE, True)


@recipe("llama_cpp_ring", "gguf-untied.q4_0", flags=CPU, framework="llama.cpp")
def llama_cpp_read_mlock(model):
    """llama.cpp, --load-mode mlock --no-repack"""
    return _Model(model, MLOCK, False)


@recipe("llama_cpp_ring", "gguf-untied.q4_0", flags=REPACK, framework="llama.cpp")
def llama_cpp_read_mlock_repack(model):
    """llama.cpp, --load-mode mlock"""
    return _Model(model, MLOCK, True)


@recipe("llama_cpp_direct", *PLAIN, *MORE, flags=CPU, framework="llama.cpp")
def llama_cpp_direct(model):
    """llama.cpp, --load-mode dio --no-repack"""
    return _Model(model, DIRECT_IO, False)


@recipe("llama_cpp_direct", *REPACKED, "gguf-untied.q8_0", flags=REPACK, framework="llama.cpp")
def llama_cpp_direct_repack(model):
    """llama.cpp, --load-mode dio"""
    return _Model(model, DIRECT_IO, True)
