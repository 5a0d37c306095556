"""Cache and compute buffer of sparse GGUF files of published shapes, beside the sizes that llama.cpp prints."""

import json
import pathlib
import re
import tempfile
import unittest

import llama
import unmapped_models
from common import loadline

# configuration: contexts
SHAPES = {"llama-3.2-1b": (512, 2048, 8192), "llama-3-8b": (512, 2048, 8192), "llama-2-7b": (512, 2048, 8192),
          "mistral-7b": (512, 2048, 8192), "qwen2.5-7b": (512, 2048, 8192), "phi-3-mini": (512, 2048, 8192),
          "qwen3-8b": (512, 2048, 8192), "gemma-3-1b": (512, 2048, 8192), "gpt2": (512, 768, 1024),
          "phi-2": (512, 2048, 8192), "gemma-2-9b": (512, 8192), "pythia-6.9b": (2048,), "falcon-7b": (512, 2048),
          "deepseek-v2-lite": (512, 8192), "mixtral-8x7b": (8192,), "qwen3-30b-a3b": (8192,),
          "olmo-2-7b": (512, 8192), "smollm3-3b": (8192,), "gpt-oss-20b": (512, 8192), "gpt2-xl": (1024,),
          "llama-3.1-70b": (8192,), "deepseek-v3": (4096,)}
EXACT = 0.01  # MiB
# With flash attention these compute buffers differ by so many MiB: best fit leaves other gaps than in llama.cpp.
APART = {("phi-3-mini", 8192): 6.01, ("gemma-3-1b", 8192): 2.26}


@unittest.skipIf(llama.library() is None, "xllamacpp and llama-cpp-py-sync are not installed")
class LlamaMemory(unittest.TestCase):
    def test_buffers(self):
        print(f"xllamacpp {llama.version()}")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for name, contexts in SHAPES.items():
            path = pathlib.Path(folder.name) / (name + ".gguf")
            loadline("synth", name, path, "--sparse")
            for context in contexts:
                for flash, options in ((True, ()), (False, ("--profile", "ggml"))):
                    told = llama.buffer_sizes(path, context, flash=flash)
                    answer = json.loads(loadline("plan", path, "--method", "llama_cpp_mmap", "--seq", "512", "--past",
                                                 str(context - 512), *options, "--json"))
                    cache, compute = (answer["forward"][key] / 2**20 for key in ("kv_bytes", "activation_reserved"))
                    profile = answer["forward"]["profile"]
                    print(f"  {name} {context}, {profile}: cache {told['cache']:.2f} / {cache:.2f}, "
                          f"compute {told['compute']:.2f} / {compute:.2f} MiB")
                    with self.subTest(name=name, context=context, profile=profile):
                        self.assertEqual(profile, "ggml_flash" if flash else "ggml")
                        self.assertAlmostEqual(cache, told["cache"], delta=0.006)
                        self.assertAlmostEqual(compute, told["compute"], delta=APART.get((name, context), EXACT) if flash else EXACT)
            path.unlink()

    def test_estimates(self):
        """Caches of architectures that Loadline has no map of, from the usual keys alone."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for write in unmapped_models.ALL:
            path = pathlib.Path(folder.name) / (write.__name__ + ".gguf")
            write(path)
            for context in (512, 2048):
                text = llama.buffer_sizes(path, context)["text"]
                parts = [float(size) for size in re.findall(r"(?:llama_kv_cache|llama_memory_recurrent): size =\s+([0-9.]+) MiB", text)]
                answer = json.loads(loadline("plan", path, "--method", "direct", "--seq", 512, "--past", context - 512, "--json"))
                cache = answer["forward"]["kv_bytes"] / 2**20
                print(f"  {write.__name__} {context}: {cache:.4f}, llama.cpp {' + '.join(map(str, parts))} MiB")
                with self.subTest(name=write.__name__, context=context):
                    self.assertEqual(answer["forward"]["source"], "estimate")
                    self.assertGreater(len(parts), 0)
                    self.assertAlmostEqual(cache, sum(parts), delta=0.0051 * len(parts))  # it prints two digits

