"""Loads by llama.cpp on the CPU, through its C interface.

The library is the one inside xllamacpp; the declarations are llama-cpp-py-sync's."""

import glob
import os

from recipes import add_recipe

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


def _load(mode, repack, decode):
    def run(model):
        loaded = _Model(model, mode, repack)
        return loaded.decode() if decode else loaded

    return run


ONE, SOME = ("gguf-untied.q4_0",), (*REPACKED, "gguf-untied.q8_0")
DEFAULT = "llama.cpp as it is by default"
for _name, _method, _mode, _repack, _decode, _models, _about in (
    ("mmap", "mmap", MMAP, False, False, (*PLAIN, *MORE), "llama.cpp, --load-mode mmap --no-repack"),
    ("mmap_repack", "mmap", MMAP, True, False, (*REPACKED, *VOCABULARY, "gguf-untied.q8_0"),
     f"{DEFAULT}: mapped, matrices repacked for the CPU"),
    ("mmap_decode", "mmap", MMAP, False, True, ("gguf-untied.f16", "gguf-untied.q4_0", "gguf-tied.q4_0"),
     "llama.cpp, --load-mode mmap --no-repack, then a few tokens"),
    ("mmap_repack_decode", "mmap", MMAP, True, True, REPACKED, f"{DEFAULT}, then a few tokens"),
    ("mmap_mlock", "mmap", MMAP_MLOCK, False, False, ONE, "llama.cpp, --load-mode mmap+mlock --no-repack"),
    ("mmap_mlock_repack", "mmap", MMAP_MLOCK, True, False, ONE, "llama.cpp, --load-mode mmap+mlock"),
    ("read", "ring", NONE, False, False, (*PLAIN, *MORE), "llama.cpp, --load-mode none --no-repack"),
    ("read_repack", "ring", NONE, True, False, SOME, "llama.cpp, --load-mode none"),
    ("read_mlock", "ring", MLOCK, False, False, ONE, "llama.cpp, --load-mode mlock --no-repack"),
    ("read_mlock_repack", "ring", MLOCK, True, False, ONE, "llama.cpp, --load-mode mlock"),
    ("direct", "direct", DIRECT_IO, False, False, (*PLAIN, *MORE), "llama.cpp, --load-mode dio --no-repack"),
    ("direct_repack", "direct", DIRECT_IO, True, False, SOME, "llama.cpp, --load-mode dio"),
):
    add_recipe(f"llama_cpp_{_name}", _load(_mode, _repack, _decode), f"llama_cpp_{_method}", *_models,
               flags=REPACK if _repack else CPU, framework="llama.cpp", about=_about)
