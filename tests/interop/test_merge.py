"""merge, held against peft's merge_and_unload and against sums in double precision."""

import collections
import dataclasses
import importlib.metadata
import json
import pathlib
import subprocess
import tempfile
import unittest
import warnings

import numpy
import torch
from safetensors.torch import load_file, save_file

import packings
from common import PROGRAM, inspect, loadline
from test_packings import missing

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def llama(dtype, **more):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(11)
    config = LlamaConfig(**{**packings.CONFIG, **more})
    return LlamaForCausalLM(config).to(dtype)


# Values for the fields of LoraConfig that take others than a flag or a number; with some, what else they need.
LAYERS = {"layers_to_transform": [1]}
CHOSEN = {
    "task_type": ["CAUSAL_LM", "SEQ_CLS"], "peft_type": ["IA3"], "base_model_name_or_path": ["x"], "revision": ["x"], "peft_version": ["99.0"],
    "auto_mapping": [{"base_model_class": "X"}], "r": [2], "lora_alpha": [3, 0.5], "lora_dropout": [0.5], "megatron_core": ["x"], "qalora_group_size": [8],
    "target_modules": [["q_proj"], ["c_fc"], ["0.self_attn.q_proj", "attn.c_proj"], r".*\.1\..*(q_proj|c_attn)", "all-linear", "q_proj", ["embed_tokens", "wte"], ["lm_head"]],
    "exclude_modules": [["v_proj", "c_proj"], r".*0.*", ["layers.1.self_attn.v_proj"], ["no_such"]],
    "bias": ["all", "lora_only"], "modules_to_save": [["lm_head"], ["embed_tokens", "wte"], ["norm", "ln_f"]],
    "init_lora_weights": [False, "gaussian", "olora", "pissa", "pissa_niter_4", "orthogonal", "mica", "eva", "corda", "loftq", "lora_ga", "of_nobody"],
    "layers_to_transform": [1, [0], [0, 1], [7]], "layers_pattern": ["layers", ["h"], ["layers", "h"], "other", "l.*"],
    "rank_pattern": [{"q_proj": 2, "c_attn": 2}, {".*1.*": 3}, {"(q|v)_proj": 2, "c_(attn|proj)": 2}, {r"layers\.0.*proj": 3}, {"^model.layers.0.self_attn.q_proj": 2}],
    "alpha_pattern": [{"q_proj": 2, "c_attn": 2.5}, {"(q|v)_proj": 1, "c_(attn|proj)": 1}, {"layers.0.self_attn.q_proj": 3}, {"proj": 4}],
    "megatron_config": [{"hidden_size": 16}], "trainable_token_indices": [[1, 2]], "loftq_config": [{"loftq_bits": 4}], "alora_invocation_tokens": [[1]],
    "layer_replication": [[[0, 2], [1, 2]]], "target_parameters": [["mlp.gate_proj.weight"]], "eva_config": [{"rho": 1.5}], "corda_config": [{"cache_file": "x"}],
    "lora_ga_config": [{"scale": "unit"}], "velora_config": [{"num_groups": 4}], "monteclora_config": [{"num_samples": 2}], "kasa_config": [{}, {"beta": 0.1}],
    "arrow_config": [{"top_k": 2}], "use_bdlora": [{"target_modules_bd_a": ["q_proj"], "nblocks": 2, "match_strict": False}],
}


def variants_of(field, targets):
    default = field.default if field.default is not dataclasses.MISSING else None
    values = CHOSEN.get(field.name, [not default] if isinstance(default, bool) else [default * 2 or 3] if isinstance(default, int) else [3, "x", ["x"], {"x": 1}])
    for value in values:
        yield value, LAYERS if field.name == "layers_pattern" else {"target_modules": targets + ["lm_head"]} if field.name == "ensure_weight_tying" else {}


class Merge(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        print(f"peft {importlib.metadata.version('peft')}, torch {torch.__version__}, transformers {importlib.metadata.version('transformers')}")

    def setUp(self):
        import transformers

        transformers.utils.logging.disable_progress_bar()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def adapter(self, net, **settings):
        """Saves the base, then an adapter whose factors are random, as F32 or as asked."""
        from peft import LoraConfig, get_peft_model

        net.save_pretrained(self.folder / "base")
        dtype = settings.pop("dtype", torch.float32)
        model = get_peft_model(net, LoraConfig(**settings))
        torch.manual_seed(12)
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                parameter.data = torch.randn(parameter.shape) * 0.05
            elif "modules_to_save" in name:
                parameter.data = torch.randn(parameter.shape).to(parameter.dtype)
        model.save_pretrained(self.folder / "adapter")
        weights = self.folder / "adapter/adapter_model.safetensors"
        save_file({name: tensor.to(dtype) if "lora_" in name else tensor for name, tensor in load_file(weights).items()}, weights)

    def by_peft(self, dtype, kind):
        from peft import PeftModel

        base = kind.from_pretrained(self.folder / "base", dtype=dtype)
        return PeftModel.from_pretrained(base, self.folder / "adapter").merge_and_unload().state_dict()

    def exact(self, weight, base, scale, transposed):
        """The sum in double precision, rounded to F32 and then to the weight's type; nothing without factors."""
        factors, module = load_file(self.folder / "adapter/adapter_model.safetensors"), weight.removesuffix(".weight")
        for prefix in ("base_model.model.", "base_model.model.transformer."):
            for ending, turned in ((".lora_{}.weight", transposed), (".lora_embedding_{}", True)):
                a, b = (factors.get(prefix + module + ending.format(part)) for part in "AB")
                if a is not None:
                    product = b.double().numpy() @ a.double().numpy() * scale(module, a.shape[0])
                    return torch.from_numpy((base.double().numpy() + (product.T if turned else product)).astype(numpy.float32)).to(base.dtype)
        return None

    def compare(self, dtype, kind, scale, transposed=False):
        told = json.loads(loadline("merge", self.folder / "base", self.folder / "adapter", self.folder / "out", "--json", "--force"))
        written, wanted = {}, self.by_peft(dtype, kind)
        for file in told["files"]:
            if file["path"].endswith(".safetensors"):
                written.update(load_file(file["path"]))
        base = {name: tensor for path in (self.folder / "base").glob("*.safetensors") for name, tensor in load_file(path).items()}
        self.assertEqual(set(written), set(base))
        equal = total = changed = 0
        for name, tensor in written.items():
            other = wanted[name].to(tensor.dtype)
            self.assertEqual((tensor.dtype, tensor.shape), (other.dtype, other.shape))
            exact = self.exact(name, base[name], scale, transposed)
            self.assertTrue(exact is None or torch.equal(tensor, exact), name)
            if torch.equal(tensor, base[name]):
                self.assertTrue(torch.equal(other, tensor), name)
                continue
            changed += 1
            # the sum itself may lie near zero, where many floats are closer than one rounding of a term
            gap = (tensor.double() - other.double()).abs()
            unit = torch.finfo(tensor.dtype).eps * torch.maximum(base[name].double().abs(), tensor.double().abs())
            self.assertTrue(bool((gap <= unit + 1e-7).all()), name)
            equal += int((tensor == other).sum())
            total += tensor.numel()
        self.assertEqual(changed, told["merged"] + told["replaced"])
        print(f"  {str(dtype).removeprefix('torch.')}: {told['merged']} merged, {told['replaced']} replaced, {100 * equal / total:.3f} % of the elements equal peft's bits")
        return equal / total

    def test_the_adapters_tokenizer_goes_along(self):
        """A template and tokens that were trained with the adapter are read from the merged folder by transformers."""
        from tokenizers import Tokenizer, models
        from transformers import AutoTokenizer, PreTrainedTokenizerFast

        def tokenizer(words, template):
            made = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="a")))
            made.chat_template = template
            return made

        self.adapter(llama(torch.float32), r=4, lora_alpha=8, target_modules=["q_proj"])
        tokenizer(["a", "b"], "base {{ messages[0].content }}").save_pretrained(self.folder / "base")
        tokenizer(["a", "b", "<new>"], "adapter {{ messages[0].content }}").save_pretrained(self.folder / "adapter")
        loadline("merge", self.folder / "base", self.folder / "adapter", self.folder / "out")
        merged = AutoTokenizer.from_pretrained(self.folder / "out")
        self.assertEqual(merged.apply_chat_template([{"role": "user", "content": "x"}], tokenize=False), "adapter x")
        self.assertEqual(merged.convert_tokens_to_ids("<new>"), 2)

    def test_llama_in_every_type(self):
        from transformers import LlamaForCausalLM

        for name, dtype in DTYPES.items():
            with self.subTest(name):
                self.adapter(llama(dtype), r=8, lora_alpha=20, target_modules=["q_proj", "v_proj", "o_proj", "gate_proj", "down_proj"],
                             rank_pattern={"v_proj": 4, "layers.0.mlp.down_proj": 3}, alpha_pattern={"model.layers.1.self_attn.q_proj": 7},
                             modules_to_save=["lm_head"])
                share = self.compare(dtype, LlamaForCausalLM, lambda module, rank: (7 if module == "model.layers.1.self_attn.q_proj" else 20) / rank)
                # F32: peft multiplies in F32, whose rounding differs in the last bit
                self.assertGreater(share, 0.999 if dtype != torch.float32 else 0.5)

    def test_rank_stabilized_with_embedding_and_factors_in_bf16(self):
        from transformers import LlamaForCausalLM

        self.adapter(llama(torch.bfloat16), r=16, lora_alpha=8, use_rslora=True, target_modules=["embed_tokens", "k_proj", "up_proj"], dtype=torch.bfloat16)
        # peft rounds the product of BF16 factors of an embedding to BF16 before it adds it
        self.assertGreater(self.compare(torch.bfloat16, LlamaForCausalLM, lambda module, rank: 8 / rank**0.5), 0.9)

    def test_gpt2_has_weights_of_inputs_by_outputs(self):
        from transformers import GPT2Config, GPT2LMHeadModel

        torch.manual_seed(3)
        net = GPT2LMHeadModel(GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=300, n_positions=64))
        self.adapter(net, r=4, lora_alpha=16, target_modules=["c_attn", "c_proj"], fan_in_fan_out=True)
        self.assertGreater(self.compare(torch.float32, GPT2LMHeadModel, lambda module, rank: 16 / rank, transposed=True), 0.5)

    def test_shards_and_a_small_budget_give_the_same_bytes(self):
        self.adapter(llama(torch.bfloat16), r=8, target_modules="all-linear")
        loadline("merge", self.folder / "base", self.folder / "adapter", self.folder / "one.safetensors", "--memory-budget", "32MiB")
        loadline("merge", self.folder / "base", self.folder / "adapter", self.folder / "shards", "--max-shard-size", "200KB", "--verify")
        loadline("verify", self.folder / "one.safetensors", self.folder / "shards")
        loadline("merge", self.folder / "base", self.folder / "adapter", self.folder / "m.gguf", "--outtype", "f32")
        loadline("merge", self.folder / "base", self.folder / "adapter", self.folder / "m.pt", "--outtype", "f16")
        self.assertEqual(set(inspect(self.folder / "m.gguf")["by_dtype"]), {"F32"})
        loaded = torch.load(self.folder / "m.pt", weights_only=True)
        rounded = {name: tensor.half() for name, tensor in load_file(self.folder / "one.safetensors").items()}
        for name, tensor in loaded.items():
            self.assertLessEqual(int((tensor != rounded[name]).sum()), tensor.numel() // 50, name)

    def test_a_packed_base_becomes_floats(self):
        if missing("gptq-4"):
            self.skipTest("no gptq")
        path, _, plain = packings.save(self.folder, "gptq-4")
        name = next(name for name in plain if name.endswith("q_proj.weight"))
        rows, columns = plain[name].shape
        module = name.removesuffix(".weight")
        (self.folder / "adapter").mkdir()
        generator = torch.Generator().manual_seed(1)
        a, b = torch.randn(4, columns, generator=generator), torch.randn(rows, 4, generator=generator)
        save_file({f"base_model.model.{module}.lora_A.weight": a, f"base_model.model.{module}.lora_B.weight": b}, self.folder / "adapter/adapter_model.safetensors")
        (self.folder / "adapter/adapter_config.json").write_text('{"peft_type": "LORA", "r": 4, "lora_alpha": 2}')
        loadline("merge", path, self.folder / "adapter", self.folder / "out", code=2)
        loadline("merge", path, self.folder / "adapter", self.folder / "out", "--outtype", "f32")
        written = load_file(self.folder / "out/model.safetensors")
        exact = plain[name].astype(numpy.float64) + 0.5 * (b.double().numpy() @ a.double().numpy())
        numpy.testing.assert_allclose(written[name].numpy(), exact, rtol=1e-3, atol=1e-3)
        other = next(other for other in plain if other != name)
        loadline("convert", path, self.folder / "plain", "--outtype", "f32")
        self.assertTrue(torch.equal(written[other], load_file(self.folder / "plain/model.safetensors")[other]))

    def merged_as_peft(self, kind):
        """Whether both merge to the same weights; the reason if Loadline refuses, nothing if only peft does."""
        done = subprocess.run([PROGRAM, "merge", self.folder / "base", self.folder / "adapter", self.folder / "out", "--json", "--force"], capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        told = json.loads(done.stdout)
        try:
            wanted = self.by_peft(torch.float32, kind)
        except Exception:
            return told.get("error", {}).get("message")
        if "error" in told:
            return told["error"]["message"]
        for name, tensor in load_file(self.folder / "out/model.safetensors").items():
            gap = (tensor.double() - wanted[name].double()).abs().max()
            if not gap <= 1e-6 * max(1e-3, float(wanted[name].abs().max())):
                return {name: float(gap)}
        return True

    def test_each_setting_changed_once(self):
        """Every field of LoraConfig, in a new adapter and in the file of an old one: merged as peft does, or refused by name."""
        from peft import LoraConfig
        from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

        shape = {"vocab_size": 40, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 32}
        nets = {"llama": (LlamaForCausalLM, lambda: LlamaForCausalLM(LlamaConfig(**shape)), ["q_proj", "v_proj", "down_proj"]),
                "gpt2": (GPT2LMHeadModel, lambda: GPT2LMHeadModel(GPT2Config(vocab_size=40, n_embd=16, n_layer=2, n_head=2, n_positions=32)), ["c_attn", "c_proj"])}
        counts = collections.Counter()
        for name, (kind, make, targets) in nets.items():
            plain = {"r": 4, "lora_alpha": 6, "target_modules": targets}
            for field in dataclasses.fields(LoraConfig):
                for value, more in variants_of(field, targets):
                    warnings.simplefilter("ignore")
                    changes = {**more, field.name: value}
                    for where in ("new", "file") if name == "llama" else ("new",):
                        torch.manual_seed(11)
                        try:
                            self.adapter(make(), **({**plain, **changes} if where == "new" else dict(plain)))
                        except Exception:  # peft cannot make it
                            counts[f"{where}: not made"] += 1
                            continue
                        if where == "file":
                            path = self.folder / "adapter/adapter_config.json"
                            path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
                        verdict = self.merged_as_peft(kind)
                        with self.subTest(f"{name}, {where}: {field.name} {value}"):
                            self.assertFalse(isinstance(verdict, dict), verdict)
                            if isinstance(verdict, str) and "adapter_model" not in verdict:
                                self.assertTrue(any(key in verdict for key in changes), verdict)
                        counts[f"{where}: " + ("merged" if verdict is True else "refused" if verdict else "refused by peft alone")] += 1
        print(f"  {dict(counts)}")
        self.assertGreater(counts["new: merged"], 20)
        self.assertGreater(counts["new: refused"], 8)

    def test_dora_is_refused_with_the_reason(self):
        self.adapter(llama(torch.float32), r=4, target_modules=["q_proj"], use_dora=True)
        told = json.loads(loadline("merge", self.folder / "base", self.folder / "adapter", self.folder / "out", "--json", code=1))
        self.assertIn("DoRA", told["error"]["message"])


if __name__ == "__main__":
    unittest.main()
