"""llama.cpp, from the library inside xllamacpp, with llama-cpp-py-sync's declarations of its C interface."""

import ctypes
import importlib.metadata
import re
import sys

import numpy

_library = None


def version():
    return importlib.metadata.version("xllamacpp")


def library():
    """The C interface and cffi's, opened once and silent; None where the packages are not installed."""
    global _library
    if _library is None:
        try:
            import xllamacpp
            from llama_cpp_py_sync import _cffi_bindings as bindings
        except ImportError:
            return None
        c = bindings.ffi.dlopen(xllamacpp.xllamacpp.__file__)
        silent = bindings.ffi.callback("void(int, const char *, void *)", lambda level, text, data: None)
        c.llama_log_set(bindings.ffi.cast("ggml_log_callback", silent), bindings.ffi.NULL)
        c.llama_backend_init()
        print("llama.cpp of xllamacpp", version(), file=sys.stderr)
        _library = c, bindings.ffi, silent
    return _library[:2]


def buffer_sizes(path, context, micro_batch=512, flash=False):
    """MiB of the cache and of the compute buffer as llama.cpp reports them when a file is opened; nothing is loaded.
    flash: as llama.cpp is set, which chooses flash attention; else it is turned off."""
    c, ffi = library()
    lines = []
    listen = ffi.callback("void(int, const char *, void *)",
                          lambda level, text, data: lines.append(ffi.string(text).decode(errors="replace")))
    c.llama_log_set(ffi.cast("ggml_log_callback", listen), ffi.NULL)
    try:
        how = c.llama_model_default_params()
        how.n_gpu_layers, how.load_mode, how.no_alloc, how.use_extra_bufts = 0, 0, True, False
        model = c.llama_model_load_from_file(str(path).encode(), how)
        if model == ffi.NULL:
            raise RuntimeError(f"llama.cpp did not load {path}: {''.join(lines[-5:])}")
        how = c.llama_context_default_params()
        how.n_ctx, how.n_batch, how.n_ubatch, how.n_seq_max = context, micro_batch, micro_batch, 1
        how.flash_attn_type, how.swa_full, how.n_threads, how.n_threads_batch = -1 if flash else 0, False, 1, 1
        made = c.llama_init_from_model(model, how)
        if made == ffi.NULL:
            raise RuntimeError(f"llama.cpp did not run {path}: {''.join(lines[-5:])}")
        c.llama_free(made)
        c.llama_model_free(model)
    finally:
        c.llama_log_set(ffi.cast("ggml_log_callback", _library[2]), ffi.NULL)
    text = "".join(lines)

    def sizes(what):
        return sum(float(size) for size in re.findall(what + r" =\s+([0-9.]+) MiB", text))

    return {"cache": sizes("llama_kv_cache: size"), "compute": sizes("compute buffer size"), "text": text}


def quantize(number, rows, row_bytes, importance=None):
    """Rows of floats as blocks of ggml's type of that number; importance is one weight for each column."""
    import xllamacpp
    chunk = ctypes.CDLL(xllamacpp.xllamacpp.__file__).ggml_quantize_chunk
    chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [ctypes.c_void_p]
    chunk.restype = ctypes.c_size_t
    out = numpy.empty((len(rows), row_bytes), numpy.uint8)
    weights = None if importance is None else importance.ctypes.data
    if chunk(number, rows.ctypes.data, out.ctypes.data, 0, *rows.shape, weights) != out.nbytes:
        raise RuntimeError(f"llama.cpp did not quantize to type {number}")
    return out


def logits(path, tokens):
    """Loads the file, or the set that it begins, and runs the tokens: their logits, with mmap and without alike."""
    c, ffi = library()
    results = []
    for mode in (0, 1):
        how = c.llama_model_default_params()
        how.n_gpu_layers, how.load_mode, how.check_tensors = 0, mode, True
        model = c.llama_model_load_from_file(str(path).encode(), how)
        if model == ffi.NULL:
            raise RuntimeError(f"llama.cpp did not load {path}")
        how = c.llama_context_default_params()
        how.n_ctx, how.n_batch, how.n_ubatch, how.n_threads, how.n_threads_batch = 256, 32, 32, 1, 1
        context = c.llama_init_from_model(model, how)
        array = ffi.new("llama_token[]", tokens)
        if context == ffi.NULL or c.llama_decode(context, c.llama_batch_get_one(array, len(tokens))):
            raise RuntimeError(f"llama.cpp did not run {path}")
        count = c.llama_vocab_n_tokens(c.llama_model_get_vocab(model))
        results.append(numpy.frombuffer(ffi.buffer(c.llama_get_logits(context), 4 * count), numpy.float32).copy())
        c.llama_free(context)
        c.llama_model_free(model)
    numpy.testing.assert_array_equal(*results)
    return results[0]


def prompt_logits(path, tokens):
    """Of every token of the prompt, with attention and its cache in F32: what can be held against a framework."""
    c, ffi = library()
    model, how = _opened(path)
    context, batch = c.llama_init_from_model(model, how), _batch(tokens)
    if context == ffi.NULL or c.llama_decode(context, batch):
        raise RuntimeError(f"llama.cpp did not run {path}")
    count = c.llama_vocab_n_tokens(c.llama_model_get_vocab(model))
    found = numpy.frombuffer(ffi.buffer(c.llama_get_logits(context), 4 * count * len(tokens)), numpy.float32)
    found = found.reshape(len(tokens), count).copy()
    c.llama_batch_free(batch)
    c.llama_free(context)
    c.llama_model_free(model)
    return found


def _opened(path):
    """A model and a context that computes in F32, to be freed by the caller."""
    c, ffi = library()
    how = c.llama_model_default_params()
    how.n_gpu_layers, how.check_tensors = 0, True
    model = c.llama_model_load_from_file(str(path).encode(), how)
    if model == ffi.NULL:
        raise RuntimeError(f"llama.cpp did not load {path}")
    how = c.llama_context_default_params()
    how.n_ctx, how.n_batch, how.n_ubatch, how.n_threads, how.n_threads_batch = 256, 256, 256, 1, 1
    how.flash_attn_type, how.type_k, how.type_v = 0, 0, 0
    return model, how


def _batch(tokens):
    c, _ = library()
    batch = c.llama_batch_init(len(tokens), 0, 1)
    batch.n_tokens = len(tokens)
    for i, token in enumerate(tokens):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = token, i, 1, 1
        batch.seq_id[i][0] = 0
    return batch


def embedding(path, tokens, pooling=None):
    """Of a text by an encoder, pooled as the file says, or as `pooling` does (1: the mean)."""
    c, ffi = library()
    model, how = _opened(path)
    how.embeddings = True
    if pooling is not None:
        how.pooling_type = pooling
    context, batch = c.llama_init_from_model(model, how), _batch(tokens)
    if context == ffi.NULL or c.llama_encode(context, batch):
        raise RuntimeError(f"llama.cpp did not run {path}")
    count = c.llama_model_n_embd(model)
    found = numpy.frombuffer(ffi.buffer(c.llama_get_embeddings_seq(context, 0), 4 * count), numpy.float32).copy()
    c.llama_batch_free(batch)
    c.llama_free(context)
    c.llama_model_free(model)
    return found


def decoder_logits(path, tokens, decoded):
    """Of every token that an encoder and decoder is given behind the encoded text."""
    c, ffi = library()
    model, how = _opened(path)
    context, text, start = c.llama_init_from_model(model, how), _batch(tokens), _batch(decoded)
    if context == ffi.NULL or c.llama_encode(context, text) or c.llama_decode(context, start):
        raise RuntimeError(f"llama.cpp did not run {path}")
    count = c.llama_vocab_n_tokens(c.llama_model_get_vocab(model))
    found = numpy.frombuffer(ffi.buffer(c.llama_get_logits(context), 4 * count * len(decoded)), numpy.float32)
    found = found.reshape(len(decoded), count).copy()
    for batch in (text, start):
        c.llama_batch_free(batch)
    c.llama_free(context)
    c.llama_model_free(model)
    return found


def token_ids(path, text, special=False):
    return many_token_ids(path, [text], special)[0]


def many_token_ids(path, texts, special=False):
    """What the file's own tokenizer makes of each text, with special tokens around it or without."""
    c, ffi = library()
    how = c.llama_model_default_params()
    how.vocab_only = True
    model = c.llama_model_load_from_file(str(path).encode(), how)
    if model == ffi.NULL:
        raise RuntimeError(f"llama.cpp did not load {path}")
    ids = []
    for data in (text.encode() for text in texts):
        out = ffi.new("llama_token[]", len(data) + 8)
        count = c.llama_tokenize(c.llama_model_get_vocab(model), data, len(data), out, len(data) + 8, special, False)
        ids.append([out[i] for i in range(count)])
    c.llama_model_free(model)
    return ids
