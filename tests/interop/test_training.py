"""The projected peak of a training step beside a traced one of transformers and peft, on the CPU: the second step, when
the optimizer's states are there. A share of the variants; LOADLINE_ALL_SETTINGS=1 tries each of them for each family."""

import json
import os
import subprocess
import tempfile
import unittest

from common import PROGRAM

try:
    import torch
    import transformers
    from forward.tracer import Trace, storages
except ImportError:
    torch = None
try:
    import peft
except ImportError:
    peft = None

WITHIN, FAR = 0.03, 0.11
BATCH, SEQUENCE = 2, 128


def configs():
    """Without dropout: what it keeps depends on the device."""
    t = transformers
    plain = dict(hidden_size=256, num_attention_heads=8, vocab_size=1000)
    llama = dict(**plain, intermediate_size=704, num_hidden_layers=4, num_key_value_heads=2)
    no_dropout = dict(attention_dropout=0.0, hidden_dropout=0.0)
    return {
        "llama": t.LlamaConfig(**llama),
        "llama_tied": t.LlamaConfig(**{**llama, "vocab_size": 8000}, tie_word_embeddings=True),
        "mistral": t.MistralConfig(**llama, sliding_window=None),
        "qwen2": t.Qwen2Config(**llama),
        "qwen3": t.Qwen3Config(**llama, head_dim=48),
        "smollm3": t.SmolLM3Config(**llama, pad_token_id=0),
        "granite": t.GraniteConfig(**llama),
        "phi3": t.Phi3Config(**llama, pad_token_id=0),
        "gpt2": t.GPT2Config(n_embd=256, n_layer=4, n_head=8, vocab_size=1000, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0),
        "gpt_neox": t.GPTNeoXConfig(**plain, num_hidden_layers=4, intermediate_size=1024, **no_dropout),
        "opt": t.OPTConfig(**plain, ffn_dim=1024, num_hidden_layers=4, word_embed_proj_dim=256, dropout=0.0),
        "olmo2": t.Olmo2Config(**llama),
        # windows shorter than the sequence, norms that work in F32, biases
        "windows": t.MistralConfig(**llama, sliding_window=32),
        "gemma3": t.Gemma3TextConfig(**llama, head_dim=32, sliding_window=32),
        "phi": t.PhiConfig(**plain, num_hidden_layers=4, intermediate_size=1024, resid_pdrop=0.0),
    }


# Each with one that is not the default: optimizer, layers that run again, type.
VARIANTS = [
    ("full", "adamw", False, "float32"),
    ("full", "adamw_fused", False, "float32"),
    ("full", "sgd", False, "float32"),
    ("full", "sgd", True, "float32"),
    ("full", "sgd", False, "bfloat16"),
    ("lora", "adamw", False, "float32"),
    ("lora", "sgd", False, "bfloat16"),
    ("lora", "adafactor", True, "float32"),
    ("full", "adafactor", False, "float32"),
    ("full", "momentum", False, "bfloat16"),
    ("full", "adafactor", False, "bfloat16"),
    ("lora", "adamw", True, "bfloat16"),
]


# What is further off, and why.
SMALL = "adapters beside layers that run again: a few sums of gradients weigh more than what is kept"
EXPLAINED = {(family, "lora", kind, True, dtype): SMALL
             for family, kind, dtype in (("phi3", "adamw", "bfloat16"), ("gpt2", "adamw", "bfloat16"), ("gpt2", "adafactor", "float32"),
                                         ("opt", "adafactor", "float32"), ("olmo2", "adamw", "bfloat16"), ("phi", "adamw", "bfloat16"))}


def optimizer(kind, parameters):
    optim = torch.optim
    return {
        "adamw": lambda: optim.AdamW(parameters, foreach=True),
        "adamw_fused": lambda: optim.AdamW(parameters, fused=True),
        "sgd": lambda: optim.SGD(parameters, foreach=True),
        "momentum": lambda: optim.SGD(parameters, momentum=0.9, foreach=True),
        "adafactor": lambda: optim.Adafactor(parameters),
    }[kind]()


def traced(config, weights, kind, checkpoints, dtype, explain=False):
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa", dtype=getattr(torch, dtype))
    model.config.use_cache = not checkpoints
    given = storages([*model.parameters(), *model.buffers()])
    if weights == "lora":
        model = peft.get_peft_model(model, peft.LoraConfig(r=8, target_modules="all-linear", lora_dropout=0.0))
    model.train()
    if checkpoints:
        model.gradient_checkpointing_enable()
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    ids = torch.randint(0, config.vocab_size, (BATCH, SEQUENCE))
    updates = optimizer(kind, trained)
    with Trace(given | storages([ids]), explain=explain) as trace:
        for parameter in trained:
            trace.follow(parameter, "adapter")
        for _ in range(2):
            trace.peak = trace.now
            loss = model(input_ids=ids, labels=ids).loss
            loss.backward()
            del loss
            updates.step()
            updates.zero_grad()
    return trace


def projected(config, weights, kind, checkpoints, dtype):
    with tempfile.TemporaryDirectory() as folder:
        config.dtype = dtype
        config.architectures = [transformers.AutoModelForCausalLM._model_mapping[type(config)].__name__]
        config.save_pretrained(folder)
        answer = json.loads(subprocess.run(
            [PROGRAM, "plan", f"{folder}/config.json", "--batch", str(BATCH), "--seq", str(SEQUENCE), "--train", weights,
             "--optimizer", kind, "--method", "staged_ring", "--json", *(["--grad-checkpointing"] if checkpoints else [])],
            capture_output=True, text=True, check=True).stdout)
    return answer["rows"][0]["peak"]["device"] - answer["bytes"]


@unittest.skipIf(torch is None, "needs torch and transformers")
class TrainingStep(unittest.TestCase):
    def test_peaks(self):
        print(f"\n  torch {torch.__version__}, transformers {transformers.__version__}, peft {peft.__version__ if peft else 'absent'}")
        for number, (family, config) in enumerate(configs().items()):
            for variant in VARIANTS if "LOADLINE_ALL_SETTINGS" in os.environ else VARIANTS[number % 4::4]:
                if variant[0] == "lora" and peft is None:
                    continue
                with self.subTest(family=family, variant=variant):
                    real, ours = traced(config, *variant).peak, projected(config, *variant)
                    reason = EXPLAINED.get((family, *variant))
                    print(f"  {family:12} {' '.join(map(str, variant)):32} traced {real:>12,} projected {ours:>12,} "
                          f"ratio {ours / real:.4f}{'  ' + reason if reason else ''}", flush=True)
                    self.assertLess(abs(ours / real - 1), WITHIN if reason is None else FAR)


if __name__ == "__main__":
    unittest.main()
