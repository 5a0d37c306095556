"""Every setting of every described family, changed once: tensors and caches that Loadline tells from the configuration
alone are those of transformers, or it names the setting. LOADLINE_ALL_SETTINGS=1 tries all, not every twelfth."""

import collections
import json
import os
import pathlib
import subprocess
import tempfile
import unittest
import warnings
import zlib

import torch
import transformers
from common import PROGRAM
from safetensors import safe_open
from settings_values import variants
from test_architectures import CASES, NOT_DESCRIBED, PREFIXES
from test_cache_estimates import held
from test_settings import configuration

# In every configuration of such a class: numbers between the layers are F32 then, which changes no tensor and no cache.
NAMED = {"residual_in_fp32"}
# Published files hold the layers that predict further tokens, which transformers leaves out; and it takes a null beside a
# text model for "not tied", where every text model's class refuses one.
# A part's own settings are those of its class; without them it has the sizes of a published model.
NOT_JUDGED = {"num_nextn_predict_layers", "tie_word_embeddings null", "text_config", "vision_config"}
EVERY = 1 if os.environ.get("LOADLINE_ALL_SETTINGS") else 12
TOKENS = 24


def told(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments), "--json"], capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout)


def saved_shapes(kind, net, folder):
    """Of the tensors that save_pretrained writes: tied weights once, experts one by one."""
    net = net.to_empty(device="cpu")
    net.tie_weights()
    net.save_pretrained(folder)
    theirs, ours = PREFIXES.get(kind, ("", ""))
    with safe_open(folder / "model.safetensors", "pt") as file:
        return {ours + name.removeprefix(theirs): file.get_slice(name).get_shape() for name in file.keys()}


def hears(kind):
    return kind.startswith("Whisper") and kind != "WhisperForCausalLM"


def tokens_of(kind):
    return 9 if kind.startswith("Whisper") else TOKENS  # half of its positions are more


def cache_bytes(kind, net):
    """Of all tokens, and of those before the last for an encoder, or of its sound; None for what has no cache."""
    ids = torch.zeros((1, tokens_of(kind)), dtype=torch.long, device="meta")
    if hears(kind):
        sound = (1, net.config.num_mel_bins, 2 * net.config.max_source_positions)
        inputs = {"input_features": torch.zeros(sound, dtype=torch.bfloat16, device="meta"), "decoder_input_ids": ids}
    elif kind in ("T5ForConditionalGeneration", "MT5ForConditionalGeneration"):
        inputs = {"input_ids": ids[:, 1:], "decoder_input_ids": ids}
    elif kind.endswith(("ForCausalLM", "LMHeadModel")) and not kind.startswith(("Bert", "Roberta")):
        inputs = {"input_ids": ids}
    else:
        return None
    with torch.no_grad():
        out = net(**inputs, use_cache=True)
    return held(out.past_key_values if hasattr(out, "past_key_values") else out.cache_params, set())


class SettingSizes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name) / "config.json"
        transformers.logging.disable_progress_bar()
        transformers.logging.set_verbosity_error()
        warnings.simplefilter("ignore")

    def built(self, kind, config):
        with torch.device("meta"):
            return getattr(transformers, kind)(config).to(torch.bfloat16).eval()

    def judged(self, kind, config, changes):
        """The verdict, and of a wrong one the figures."""
        try:
            changed = configuration(config, changes) if changes else config
            net = self.built(kind, changed)
            cache = cache_bytes(kind, net)
            right = saved_shapes(kind, net, self.path.parent / "saved")
        except Exception:  # the class or the model refuses the value
            return "not built", None
        settings = {**changes, **json.loads(changed.to_json_string()), "architectures": [kind], "dtype": "bfloat16"}
        self.path.write_text(json.dumps(settings))
        code, inspected = told("inspect", self.path, "--tensors")
        if code:
            return "refused", None
        others = NOT_DESCRIBED.get(kind, ())
        ours = {tensor["name"]: tensor["shape"] for tensor in inspected["tensors"]}
        if set(inspected["unaccounted"]) - NAMED:
            return "named", inspected["unaccounted"]
        different = sorted({str(item) for item in ours.items()} ^ {str(item) for item in right.items() if not item[0].startswith(others)})
        if different:
            return "wrong", different[:4]
        if cache is not None:
            code, plan = told("plan", self.path, "--method", "staged_ring", "--seq", 1, "--past", tokens_of(kind) - 1, "--cache-dtype", "bf16", "--profile", "hf_sdpa")
            forward = plan.get("forward", {})
            least, most = forward.get("kv_bytes_least", 0), forward.get("kv_bytes", 0)
            # a layer with a window keeps one position less than it
            if not (least <= cache <= most or (cache < most and most - cache <= most / 8)):
                return "wrong", [f"cache: {least} to {most}, transformers {cache}"]
        return "right", None

    def test_each(self):
        print(f"transformers {transformers.__version__}, every {EVERY}th setting")
        totals, named, classes = collections.Counter(), collections.Counter(), set()
        for kind, name, arguments in CASES:
            if name in classes:
                continue
            classes.add(name)
            config = getattr(transformers, name)(**arguments)
            usual, figures = self.judged(kind, config, {})
            with self.subTest(kind):
                self.assertEqual((usual, figures), ("right", None))
            counts = collections.Counter()
            for setting, choices in variants(config):
                if setting in NOT_JUDGED or zlib.crc32(f"{kind} {setting}".encode()) % EVERY:
                    continue
                for changes in choices:
                    verdict, figures = self.judged(kind, config, changes)
                    if verdict != "not built":
                        break
                counts[verdict] += 1
                with self.subTest(f"{kind}: {setting} {changes}"):
                    self.assertNotEqual(verdict, "wrong", figures)
                    if verdict == "named":
                        named[", ".join(figures)] += 1
            totals += counts
            print(f"  {kind}: {dict(counts)}", flush=True)
        print(f"  all: {dict(totals)}; named: {dict(named)}")
        self.assertGreater(totals["right"], 4 * totals["refused"])


if __name__ == "__main__":
    unittest.main()
