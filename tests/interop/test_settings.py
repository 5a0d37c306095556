"""Every setting of every mapped family, changed once: llama.cpp computes what transformers does, or convert refuses it.
LOADLINE_ALL_SETTINGS=1 tries all settings, not every third, prints each, and writes what is refused all the same: what a list
of refused settings, as the maps had one once, would have let through. The last line counts families and variants."""

import collections
import fnmatch
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zlib

import numpy
import torch
import transformers

import llama
from common import PROGRAM
from settings_values import variants
from test_gguf_names import configurations, model_of

TOKENS = [1] + [(i * 7919) % 310 + 3 for i in range(100)]
START = [0, 5, 9, 42]
# The same classes again.
LEFT_OUT = {"llama3", "llama_biases", "qwen2_yarn", "t5_gated", "falcon_grouped"}
EFFECT = 1e-4
LEAST = 1e-3
ALL = bool(os.environ.get("LOADLINE_ALL_SETTINGS"))
EVERY = 1 if ALL else 3
# Every so many of them: it has 27 layers for the sake of llama.cpp.
FEW = {"deepseek_v2": 4}

# What the maps refused when they had lists of what to refuse.
SILU = {"hidden_act", "rope_parameters.rope_type"}
DENIED = {**dict.fromkeys(("llama", "mistral", "mixtral", "qwen2", "qwen3", "smollm3", "gpt_oss"), SILU),
          **dict.fromkeys(("qwen2_moe", "qwen3_moe"), SILU | {"norm_topk_prob"}),
          **dict.fromkeys(("gemma2", "gemma3"), {"query_pre_attn_scalar", "hidden_activation", "hidden_act"}),
          "gemma": {"hidden_activation", "hidden_act"}, "bert": {"position_embedding_type"}, "falcon": {"alibi"},
          **dict.fromkeys(("deepseek_v2", "deepseek_v3"), {"scoring_func", "rope_parameters.rope_type"})}
TABLE = pathlib.Path(__file__).parents[2] / "core" / "forward" / "family" / "settings.cpp"


def reasons():
    """(pattern, why) of the settings that change nothing in any family, as the program has them."""
    text = TABLE.read_text()
    words = dict(re.findall(r'(k\w+) = "([^"]+)"', text))
    rows = re.findall(r'\{"([^"]+)", Reach::(?:nothing|sizes),\s*(?:(k\w+)|"([^"]+)")\}', text)
    return [(pattern, words.get(name, own)) for pattern, name, own in rows]

# In a process of its own: a file that llama.cpp does not expect can end it.
WORKER = """
import json, sys, numpy, llama
for line in sys.stdin:
    ask = json.loads(line)
    try:
        numpy.save(ask["out"], getattr(llama, ask["call"])(*ask["arguments"]))
        print(json.dumps({"done": True}), flush=True)
    except Exception as error:
        print(json.dumps({"done": False, "why": str(error)}), flush=True)
"""


class Judge:
    def __init__(self, folder):
        self.out, self.process = str(folder / "result.npy"), None

    def ask(self, call, *arguments):
        if self.process is None:
            self.process = subprocess.Popen([sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, text=True)
        self.process.stdin.write(json.dumps({"call": call, "arguments": arguments, "out": self.out}) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:  # the library prints, too
            if line.startswith('{"done"'):
                answer = json.loads(line)
                return numpy.load(self.out) if answer["done"] else None
        self.close()
        return None

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.stdout.close()
            self.process.wait()
            self.process = None


def fill(name, net):
    """Weights that depend on names and shapes alone, wide enough that settings show."""
    for key, weight in [*net.named_parameters(), *((key, buffer) for key, buffer in net.named_buffers() if "e_score" in key)]:
        mean, std = 0.0, 0.2
        if weight.dim() == 1:
            mean, std = 1.0 if ("norm" in key.lower() or "ln_" in key) and not name.startswith("gemma") else 0.0, 0.1
        elif any(part in key for part in ("q_proj", "k_proj", "qkv", "c_attn", "query_key", "q_b_proj", "kv_a_proj", ".q.", ".k.")):
            std = 0.4
        elif any(part in key for part in ("embed", "wte", "shared")):
            std = 0.5
        generator = torch.Generator().manual_seed(zlib.crc32(key.encode()))
        with torch.no_grad():
            weight.copy_(torch.randn(weight.shape, generator=generator) * (std * 0.3 if name.startswith("gemma") else std) + mean)


def families():
    found = {name: config for name, config in configurations().items() if name not in LEFT_OUT}
    usual = {key: getattr(found["t5"], key) for key in ("vocab_size", "d_model", "d_kv", "d_ff", "num_layers", "num_heads", "decoder_start_token_id")}
    return {**found, "t5_multilingual": transformers.MT5Config(**usual)}


def computed(name, net):
    with torch.inference_mode():
        if name.endswith("bert"):
            return net(torch.tensor([TOKENS])).last_hidden_state[0].mean(0).numpy()
        if name.startswith("t5"):
            return net(input_ids=torch.tensor([TOKENS]), decoder_input_ids=torch.tensor([START])).logits[0].numpy()
        return net(torch.tensor([TOKENS])).logits[0].float().numpy()


def difference(name, found, expected):
    if found is None or found.shape != expected.shape:
        return float("inf")
    if name.endswith("bert"):
        return float(1 - found @ expected / numpy.linalg.norm(found) / numpy.linalg.norm(expected))
    return float(abs(found - expected).max())


def configuration(config, changes):
    """The class's own checks decide. What follows from other settings is made anew."""
    settings = config.to_dict()
    for key in ("layer_types", "no_rope_layers", "_sliding_window_pattern"):
        if key not in changes:
            settings.pop(key, None)
    settings.update(changes)
    if "_sliding_window_pattern" in changes:
        settings.pop("layer_types", None)
    for key in ("model_type", "transformers_version", *(key for key in ("layer_types", "no_rope_layers", "rope_parameters") if settings.get(key, 0) is None)):
        settings.pop(key, None)
    return type(config)(**settings)


@unittest.skipIf(llama.library() is None, "xllamacpp and llama-cpp-py-sync are not installed")
class Settings(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.judge = Judge(self.folder)
        self.answers = {}  # of the judge, by file
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        self.addCleanup(torch.set_num_threads, threads)
        self.addCleanup(self.judge.close)
        transformers.utils.logging.disable_progress_bar()
        transformers.utils.logging.set_verbosity_error()

    def built(self, name, config, changes):
        changed = configuration(config, changes)
        net = model_of(name, changed, attn_implementation="eager").eval()
        fill(name, net)
        result = computed(name, net)
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        net.save_pretrained(folder)
        path = folder / "config.json"  # transformers leaves some out
        path.write_text(json.dumps({**changes, **json.loads(path.read_text())} if changes else json.loads(path.read_text())))
        return changed, net, result

    def first_built(self, name, config, choices):
        for changes in choices:
            try:
                return self.built(name, config, changes)
            except Exception:  # the class or the model refuses the value
                continue
        return None

    def converted(self, name, config, *more):
        out = self.folder / (name + ".gguf")
        done = subprocess.run([PROGRAM, "convert", self.folder / name, out, "--force", "--outtype", "f32", *more], capture_output=True, text=True)
        if done.returncode:
            self.assertEqual(done.returncode, 1, done.stderr)
            return done.stderr, None
        digest = hashlib.sha256(out.read_bytes()).digest()
        if digest not in self.answers:
            self.answers[digest] = self.asked(name, out)
        found = self.answers[digest]
        scaled = found is not None and "are not scaled" in done.stderr  # as a note of T5 says
        return "", found / config.d_model**0.5 if scaled else found

    def asked(self, name, out):
        if name.endswith("bert"):
            return self.judge.ask("embedding", str(out), TOKENS, 1)
        if name.startswith("t5"):
            return self.judge.ask("decoder_logits", str(out), TOKENS, START)
        return self.judge.ask("prompt_logits", str(out), TOKENS)

    def refusal(self, name, config, why, expected):
        """Whether a list would have named what is refused; if not, what its file computes."""
        settings = re.findall(r"'([\w.]+)' is ", why.split(": llama.cpp's")[0])
        if not settings:
            return "tensors", why.split("config.json: ")[-1][:90]
        told = ", ".join(settings)
        if DENIED.get(name, set()) & set(settings):
            return "listed", told
        if not ALL:
            return "not listed", told
        _, found = self.converted(name, config, "--ignore", "*")
        error = difference(name, found, expected)
        return ("not loaded" if found is None else "computes something else" if error > 1e-3 else "computes the same"), f"{told}: {error:.2g}"

    def show(self, name, rows):
        """Prints the verdicts on a family's settings; of those without effect the reasons."""
        known, counts, why = reasons(), collections.Counter(verdict for verdict, _ in rows.values()), collections.Counter()
        for setting, (verdict, _) in rows.items():
            if verdict == "without effect":
                bare = setting.split()[0]
                why[next((reason for pattern, reason in known if fnmatch.fnmatchcase(bare, pattern)), "the family computes the same with it")] += 1
        print(f"  {name}: {', '.join(f'{count} {verdict}' for verdict, count in sorted(counts.items()))}", flush=True)
        if ALL:
            for verdict in ("followed", "refused", "without effect"):
                print(f"    {verdict}: {', '.join(setting for setting, row in rows.items() if row[0] == verdict)}")
            for setting, (verdict, note) in rows.items():
                if verdict == "refused":
                    print(f"      {setting}: {note[0]} ({note[1]})")
            print(f"    why without effect: {dict(why)}", flush=True)
        return counts, why

    def test_each(self):
        print(f"xllamacpp {llama.version()}, transformers {transformers.__version__}")
        all_verdicts, all_why, refused = collections.Counter(), collections.Counter(), collections.Counter()
        within = collections.Counter()  # of followed variants
        tried = collections.Counter()  # by family
        for name, config in families().items():
            _, net, usual = self.built(name, config, {})
            shapes = {key: weight.shape for key, weight in net.state_dict().items()}
            _, found = self.converted(name, config)
            own = difference(name, found, usual)  # GELU is a table of F16 in llama.cpp
            rows = {}
            for setting, choices in variants(config):
                if name in FEW and zlib.crc32(setting.encode()) % FEW[name] or zlib.crc32(f"{name} {setting}".encode()) % EVERY:
                    continue
                made = self.first_built(name, config, choices)
                if made is None:
                    rows[setting] = "not built", None
                    continue
                changed, net, expected = made
                why, found = self.converted(name, changed)
                if why:
                    rows[setting] = "refused", self.refusal(name, changed, why, expected)
                    refused[rows[setting][1][0]] += 1
                    continue
                error = difference(name, found, expected)
                same = {key: weight.shape for key, weight in net.state_dict().items()} == shapes and difference(name, expected, usual) < EFFECT
                rows[setting] = "without effect" if same else "followed", None
                scale = max(1.0, float(abs(expected).max()) / 10)
                if not same:
                    within[error < LEAST * scale] += 1
                with self.subTest(f"{name}: {setting}"):
                    # two more layers of gpt-oss differ by 1.7e-3
                    least = 2e-3 if name == "gpt_oss" else LEAST
                    self.assertLess(error, max(least, 3 * own) * scale)
            verdicts, why = self.show(name, rows)
            tried[name] = sum(count for verdict, count in verdicts.items() if verdict != "not built")
            all_verdicts += verdicts
            all_why += why
        print(f"  all: {dict(all_verdicts)}")
        print(f"  without effect: {dict(all_why)}")
        unlisted = sum(refused.values()) - refused["tensors"] - refused["listed"]
        print(f"  refused: {dict(refused)}; a list of refused settings lets {unlisted} of {sum(refused.values())} through")
        print(f"  {len(tried)} families x {min(tried.values())} to {max(tried.values())} variants, {sum(tried.values())} in all: "
              f"{all_verdicts['followed']} followed ({within[True]} within {LEAST:g}, {within[False]} within three times what the family's own "
              f"activation differs by), {all_verdicts['refused']} refused by name, {all_verdicts['without effect']} without effect")
        self.assertGreaterEqual(len(tried), 25)
        self.assertGreaterEqual(min(tried.values()), 5)


if __name__ == "__main__":
    unittest.main()
