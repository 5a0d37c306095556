"""Conversions into floating point types, against the libraries that packed or quantized the weights."""

import importlib.metadata
import json
import os
import pathlib
import sys
import tempfile
import unittest

import gguf
import numpy
import packings
import torch
from common import every_dtype, inspect, loadline, raw
from safetensors.torch import load_file
from test_packings import missing
from test_recipes import FLOATS

# Those that gguf-py can dequantize.
BLOCKS = [kind for kind in gguf.GGMLQuantizationType if gguf.GGML_QUANT_SIZES[kind][0] > 1 and kind.name not in ("Q8_1", "Q8_K")]


class Convert(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_packed_weights_become_floats(self):
        for name in packings.PACKERS:
            if missing(name):
                continue
            with self.subTest(name):
                path, parameters, plain = packings.save(self.folder, name)
                for outtype, dtype in FLOATS.items():
                    out = self.folder / f"{name}-{outtype}"
                    loadline("convert", path, out, "--outtype", outtype, "--memory-budget", "32MiB")
                    told = inspect(out)
                    self.assertEqual(told["parameter_count"], parameters)
                    self.assertEqual(set(told["by_dtype"]), {outtype.upper()})
                    rounded = packings.rounded_to(name)
                    written = load_file(out / "model.safetensors")
                    for weight, numbers in plain.items():
                        # a library that rounds is met after rounding; wider types keep more of the product
                        if rounded in ("", outtype):
                            self.assertTrue(torch.equal(written[weight], torch.from_numpy(numbers).to(dtype)), weight)
                    config = json.loads((out / "config.json").read_text())
                    self.assertEqual(config["torch_dtype"], str(dtype).removeprefix("torch."))
                    self.assertFalse({"quantization_config", "quantization"} & set(config))

    def test_transformers_loads_what_was_unpacked(self):
        from transformers import AutoModelForCausalLM

        path, _, plain = packings.save(self.folder, "gptq-4")
        out = self.folder / "out"
        loadline("convert", path, out, "--outtype", "bf16")
        net = AutoModelForCausalLM.from_pretrained(out)
        self.assertEqual(net.dtype, torch.bfloat16)
        for name, numbers in plain.items():
            self.assertTrue(torch.equal(net.get_parameter(name), torch.from_numpy(numbers).to(torch.bfloat16)), name)

    def test_a_cast_folder_is_still_a_model(self):
        from tokenizers import Tokenizer, models, pre_tokenizers, trainers
        from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

        source, out, text = self.folder / "in", self.folder / "out", "how deep does a model sit in memory"
        tokenizer = Tokenizer(models.BPE(unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
        tokenizer.train_from_iterator([text] * 3, trainers.BpeTrainer(vocab_size=200, special_tokens=["[UNK]"]))
        PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="[UNK]").save_pretrained(source)
        net = LlamaForCausalLM(LlamaConfig(**packings.CONFIG))
        net.save_pretrained(source)
        told = json.loads(loadline("convert", source, out, "--outtype", "bf16", "--max-shard-size", "2MB", "--json", "--strict"))
        self.assertEqual(told["left_out"], [])
        self.assertEqual(set(os.listdir(source)) - {"model.safetensors"}, set(os.listdir(out)) - {
            name for name in os.listdir(out) if name.startswith("model")})
        cast = AutoModelForCausalLM.from_pretrained(out)
        self.assertEqual(cast.dtype, torch.bfloat16)
        for name, weight in net.state_dict().items():
            self.assertTrue(torch.equal(cast.state_dict()[name], weight.to(torch.bfloat16)), name)
        self.assertEqual(AutoTokenizer.from_pretrained(out).encode(text), AutoTokenizer.from_pretrained(source).encode(text))

    def test_packed_weights_stay_packed_without_an_outtype(self):
        for name in ("bitsandbytes-nf4-nested", "compressed-int4-zeros", "mlx-4"):
            if missing(name):
                continue
            path, parameters, _ = packings.save(self.folder, name)
            loadline("convert", path, self.folder / f"{name}-copy")
            before, after = load_file(os.path.join(path, "model.safetensors")), load_file(self.folder / f"{name}-copy/model.safetensors")
            self.assertEqual({key: raw(value) for key, value in before.items()}, {key: raw(value) for key, value in after.items()})
            self.assertEqual(inspect(self.folder / f"{name}-copy")["parameter_count"], parameters)

    def test_weights_of_four_bit_floats_become_blocks(self):
        """GGUF without an outtype: gguf-py reads the numbers of the library that packed them."""
        print("gguf-py", importlib.metadata.version("gguf"), file=sys.stderr)
        for name, kind in (("modelopt-nvfp4", "NVFP4"), ("compressed-nvfp4", "NVFP4"), ("compressed-mxfp4", "MXFP4"),
                           ("mlx-mxfp4", "MXFP4"), ("mlx-nvfp4", "NVFP4")):
            if missing(name):
                continue
            with self.subTest(name):
                path, _, plain = packings.save(self.folder, name)
                loadline("convert", path, self.folder / f"{name}.gguf", "--names", "keep", "--verify")
                loadline("convert", path, self.folder / f"{name}-f32.safetensors", "--outtype", "f32")
                floats = load_file(self.folder / f"{name}-f32.safetensors")
                tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(self.folder / f"{name}.gguf").tensors}
                for weight in plain:
                    self.assertEqual(tensors[weight].tensor_type.name, kind)
                    numbers = gguf.dequantize(tensors[weight].data, tensors[weight].tensor_type).astype(numpy.float64)
                    if f"{weight}_scale_2" in tensors:
                        numbers = numbers * float(tensors[f"{weight}_scale_2"].data[0])
                    if f"{weight}_global_scale" in tensors:
                        numbers = numbers / float(tensors[f"{weight}_global_scale"].data[0])
                    numpy.testing.assert_allclose(numbers, floats[weight].numpy(), rtol=3e-7)
                    half = packings.rounded_to(name) == "bf16"
                    numpy.testing.assert_allclose(numbers, plain[weight], rtol=2**-8 if half else 3e-7)

    def test_alternating_experts_of_gpt_oss_become_blocks(self):
        """Under llama.cpp's names gates and ups are cut apart; their blocks are those of the model."""
        from safetensors.torch import save_file

        config = dict(model_type="gpt_oss", architectures=["GptOssForCausalLM"], hidden_size=64, intermediate_size=96,
                      num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2, head_dim=16, vocab_size=320,
                      num_local_experts=4, num_experts_per_tok=2, sliding_window=64, max_position_embeddings=256,
                      torch_dtype="bfloat16", quantization_config={"quant_method": "mxfp4"})
        (self.folder / "oss.json").write_text(json.dumps(config))
        source = self.folder / "oss-whole"
        loadline("synth", self.folder / "oss.json", source, "--random", "1")
        weights = load_file(source / "model.safetensors")
        save_file({name: (weight % 20 + 110).to(torch.uint8) if name.endswith("_scales") else weight
                   for name, weight in weights.items()}, source / "model.safetensors", metadata={"format": "pt"})
        loadline("convert", source, self.folder / "oss-whole.gguf")
        loadline("convert", source, self.folder / "oss-whole.safetensors", "--outtype", "f32")
        floats = load_file(self.folder / "oss-whole.safetensors")
        tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(self.folder / "oss-whole.gguf").tensors}
        both = floats["model.layers.0.mlp.experts.gate_up_proj"].transpose(1, 2)
        for name, wanted in (("gate", both[:, 0::2]), ("up", both[:, 1::2]),
                             ("down", floats["model.layers.0.mlp.experts.down_proj"].transpose(1, 2))):
            tensor = tensors[f"blk.0.ffn_{name}_exps.weight"]
            self.assertEqual(tensor.tensor_type.name, "MXFP4")
            found = gguf.dequantize(tensor.data, tensor.tensor_type).reshape(wanted.shape)
            self.assertTrue(torch.equal(torch.from_numpy(found), wanted), name)

    def test_experts_of_gpt_oss_become_blocks(self):
        from safetensors.torch import save_file

        generator = torch.Generator().manual_seed(1)
        codes = torch.randint(0, 256, (4, 6, 8, 16), dtype=torch.uint8, generator=generator)
        scales = torch.randint(0, 251, (4, 6, 8), dtype=torch.uint8, generator=generator)
        source = self.folder / "oss"
        source.mkdir()
        save_file({"model.layers.0.mlp.experts.gate_up_proj_blocks": codes, "model.layers.0.mlp.experts.gate_up_proj_scales": scales},
                  source / "model.safetensors")
        (source / "config.json").write_text(json.dumps({"model_type": "gpt_oss", "quantization_config": {"quant_method": "mxfp4"}}))
        loadline("convert", source, self.folder / "oss.gguf", "--names", "keep")
        (tensor,) = gguf.GGUFReader(self.folder / "oss.gguf").tensors
        self.assertEqual((tensor.name, tensor.tensor_type.name), ("model.layers.0.mlp.experts.gate_up_proj", "MXFP4"))
        values = numpy.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
        pairs = numpy.stack([codes.numpy() & 15, codes.numpy() >> 4], -1).reshape(4, 6, 8, 32)
        expected = values[pairs] * 2.0 ** (scales.numpy().astype(int)[..., None] - 127)
        numbers = gguf.dequantize(tensor.data, tensor.tensor_type)
        numpy.testing.assert_array_equal(numbers.reshape(4, 6, 256), expected.reshape(4, 6, 256).astype(numpy.float32))

    def test_every_block_type_that_gguf_py_reads(self):
        generator = numpy.random.default_rng(5)
        writer = gguf.GGUFWriter(str(self.folder / "m.gguf"), "llama")
        blocks = {}
        for kind in BLOCKS:
            _, size = gguf.GGML_QUANT_SIZES[kind]
            blocks[kind.name] = generator.integers(0, 256, (3, 4 * size), dtype=numpy.uint8)
            writer.add_tensor(kind.name, blocks[kind.name], raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        loadline("convert", self.folder / "m.gguf", self.folder / "m.safetensors", "--outtype", "f32")
        written = load_file(self.folder / "m.safetensors")
        for kind in BLOCKS:
            with self.subTest(kind.name):
                try:
                    with numpy.errstate(all="ignore"):
                        numbers = gguf.dequantize(blocks[kind.name], kind)
                except NotImplementedError:
                    self.skipTest(f"gguf-py does not dequantize {kind.name}")
                numpy.testing.assert_array_equal(written[kind.name].numpy(), numbers)

    def test_torch_maps_what_we_write(self):
        """torch.load(mmap=True, weights_only=True): every dtype that torch has, bytes and shapes."""
        from safetensors.torch import save_file

        tensors = {name: tensor for name, tensor in every_dtype().items() if "e8m0" not in name}
        tensors["many"] = torch.zeros(1, 2, 1, 3, 1)
        save_file({name: tensor for name, tensor in tensors.items() if tensor.dtype != torch.complex128}, self.folder / "m.safetensors")
        told = loadline("convert", self.folder / "m.safetensors", self.folder / "m.pt")
        self.assertIn("m.pt", told)
        loaded = torch.load(self.folder / "m.pt", mmap=True, weights_only=True)
        self.assertEqual(list(loaded), [tensor["name"] for tensor in inspect(self.folder / "m.pt")["tensors"]])
        for name, tensor in loaded.items():
            self.assertEqual((tensor.dtype, tensor.shape, raw(tensor)), (tensors[name].dtype, tensors[name].shape, raw(tensors[name])), name)
        # and from shards of a model, in another type
        path, _, plain = packings.save(self.folder, "awq-4")
        loadline("convert", path, self.folder / "awq.pt", "--outtype", "bf16", "--align", "64")
        for name, tensor in torch.load(self.folder / "awq.pt", mmap=True, weights_only=True).items():
            self.assertTrue(name not in plain or torch.equal(tensor, torch.from_numpy(plain[name]).to(torch.bfloat16)))

    def test_numpy_reads_what_we_write(self):
        from safetensors.torch import save_file

        tensors = {name: tensor for name, tensor in every_dtype().items() if "float8" not in name and "bfloat16" not in name}
        save_file(tensors, self.folder / "m.safetensors")
        loadline("convert", self.folder / "m.safetensors", self.folder / "m.npz")
        with numpy.load(self.folder / "m.npz") as loaded:
            self.assertEqual(set(loaded.files), set(tensors))
            for name in loaded.files:
                self.assertEqual((loaded[name].shape, loaded[name].tobytes()), (tuple(tensors[name].shape), raw(tensors[name])), name)

    def test_numpy_maps_a_folder(self):
        """numpy.load(mmap_mode="r") of every array, and hostile names by their escapes."""
        from urllib.parse import unquote

        from safetensors.torch import save_file

        tensors = {name: tensor for name, tensor in every_dtype().items() if "float8" not in name and "bfloat16" not in name}
        tensors |= {name: torch.tensor([number]) for number, name in enumerate(("../up", "/root", "a%2Fb", ".x", "\u00e9", "c\n"))}
        save_file(tensors, self.folder / "m.safetensors")
        for align in ("64", "4096"):
            out = self.folder / f"npy{align}"
            loadline("convert", self.folder / "m.safetensors", out, "--to", "npy", "--align", align)
            self.assertEqual(len(os.listdir(out)), len(tensors))
            for file in os.listdir(out):
                name = unquote(file.removesuffix(".npy"))
                mapped = numpy.load(out / file, mmap_mode="r")
                self.assertTrue(isinstance(mapped, numpy.memmap) or mapped.size == 0, file)
                if mapped.size:
                    self.assertEqual(mapped.offset % int(align), 0)
                self.assertEqual((mapped.shape, mapped.tobytes()), (tuple(tensors[name].shape), raw(tensors[name])), name)
            self.assertEqual({tensor["name"] for tensor in inspect(out)["tensors"]}, set(tensors))
        print("numpy", numpy.__version__, file=sys.stderr)
        # arrays that numpy itself wrote beside each other
        (self.folder / "theirs").mkdir()
        for name in ("w.1", "w.10", "w.2"):
            numpy.save(self.folder / "theirs" / f"{name}.npy", numpy.arange(6.0).reshape(2, 3))
        self.assertEqual([tensor["name"] for tensor in inspect(self.folder / "theirs")["tensors"]], ["w.1", "w.2", "w.10"])

    def test_float8_without_scales(self):
        tensors = {str(dtype): torch.arange(256, dtype=torch.uint8).view(dtype).reshape(4, 64)
                   for dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz)}
        from safetensors.torch import save_file

        save_file(tensors, self.folder / "m.safetensors")
        for outtype, dtype in FLOATS.items():
            loadline("convert", self.folder / "m.safetensors", self.folder / f"{outtype}.safetensors", "--outtype", outtype)
            for name, written in load_file(self.folder / f"{outtype}.safetensors").items():
                numpy.testing.assert_array_equal(written.float().numpy(), tensors[name].to(dtype).float().numpy())


if __name__ == "__main__":
    unittest.main()
