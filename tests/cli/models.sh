#!/bin/bash
# What lies on the disk, and what of it runs: what is said of each model is tried.  usage: models.sh LOADLINE FOLDER
set -u
program=$1
cd "$2" || exit 1
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
fail() { echo "$1"; cat "$work"/out; exit 1; }
export XDG_CONFIG_HOME=$work/config HF_HUB_CACHE=$work/hub OLLAMA_MODELS=$work/ollama HOME=$work
mkdir -p "$work"/config/loadline/targets "$work"/ollama/blobs \
  "$work"/ollama/manifests/registry.ollama.ai/library/mine "$work"/models
cat >"$work"/config/loadline/targets/small.json <<'END'
{"id": "small", "name": "A small device", "class": "board", "memory": "discrete", "device_bytes": "64MiB",
 "options": {"staging": "1MiB"}, "source": "made up"}
END
ln -s "$PWD"/demo "$work"/models/demo
ln -s "$PWD"/eight.gguf "$work"/models/eight.gguf
head -c 3000 demo/model-00001-of-00003.safetensors >"$work"/models/cut.safetensors || exit 1
mkdir "$work"/models/cut && mv "$work"/models/cut.safetensors "$work"/models/cut/model.safetensors

"$program" models "$work"/models --target small >"$work"/out || fail "models"
grep -Eq '^A small device: 64.00 MiB on the device$' "$work"/out || fail "the target"
grep -Eq '^cut +folder .* byte 40: tensor .model.embed_tokens.weight.: its dat' "$work"/out || fail "a cut file"
grep -Eq '^eight.gguf +folder +gguf +BF16 +8.03 B +14.96 GiB +1[0-9.]* GiB over +no quantization runs, the smallest has [0-9.]+ GiB$' "$work"/out || fail "a large model"
best=$(sed -nE 's/^demo .* weights fit, room for .*, not 512 .* ([A-Za-z0-9_]+), [0-9.]+ MiB$/\1/p' "$work"/out)
[ -n "$best" ] || fail "a model that is a little too large"
"$program" convert demo "$work"/best.gguf --outtype "$best" >"$work"/out || fail "convert to $best"
"$program" plan "$work"/best.gguf --target small --method staged_ring --seq 512 >"$work"/out ||
  fail "$best was said to run"

# the stores of other programs
ln -s "$work"/best.gguf "$work"/ollama/blobs/sha256-abc
printf '{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:abc", "size": 8}]}' \
  >"$work"/ollama/manifests/registry.ollama.ai/library/mine/small
mkdir -p "$work"/hub/models--org--demo/snapshots/abc "$work"/hub/models--org--demo/blobs "$work"/hub/models--org--demo/refs
printf abc >"$work"/hub/models--org--demo/refs/main
for file in demo/*; do
  cp "$file" "$work"/hub/models--org--demo/blobs/"${file##*/}"
  ln -s ../../blobs/"${file##*/}" "$work"/hub/models--org--demo/snapshots/abc/"${file##*/}"
done
"$program" models --target rtx-4060-8gb >"$work"/out || fail "stores"
grep -Eq '^org/demo +hub +safetensors .* fits, 7.* GiB left, all 2,048 tokens' "$work"/out || fail "the hub cache"
grep -Eq '^mine:small +ollama +gguf .* fits, ' "$work"/out || fail "Ollama"
grep -q '^2 of 2 models run' "$work"/out || fail "the sum"
"$program" models --target rtx-4060-8gb --prompt 4000 --fits >"$work"/out || fail "a long prompt"
grep -q '^0 of 2 models run' "$work"/out || fail "a prompt of more tokens than positions"
"$program" models --target rtx-4060-8gb --context 256 >"$work"/out || fail "a short context"
grep -q '^The prompt is 256 tokens and not 512: the context holds no more.$' "$work"/out || fail "the prompt of a short context"
rm "$work"/hub/models--org--demo/blobs/model-00002-of-00003.safetensors
"$program" models --target rtx-4060-8gb --json >"$work"/out || fail "json"
python3 - "$work"/out <<'END' || exit 1
import json, sys
models = {model["name"]: model for model in json.load(open(sys.argv[1]))["models"]}
assert models["mine:small"]["runs"] and models["mine:small"]["verdict"]["state"] == "fits"
assert not models["org/demo"]["runs"] and models["org/demo"]["incomplete"], models["org/demo"]
END

# without a configuration nobody knows what a prompt needs
mkdir "$work"/models/bare && cp demo/*.safetensors "$work"/models/bare/ && cp demo/*.index.json "$work"/models/bare/
"$program" models "$work"/models/bare --target rtx-4060-8gb >"$work"/out || fail "a model without a configuration"
grep -q 'weights fit, what a prompt needs is not known' "$work"/out || fail "an unknown prompt"
"$program" models "$work"/models/eight.gguf --target rtx-4060-8gb >"$work"/out || fail "a file"
grep -Eq '^eight.gguf ' "$work"/out || fail "a file"
"$program" models "$work"/nothing >"$work"/out 2>&1 && fail "a folder that is not there"

# what was read is known the next time, until it changes; a cache that is damaged or of another program is none
cp "$work"/best.gguf "$work"/models/kept.gguf
run() { "$program" models "$work"/models/kept.gguf --target rtx-4060-8gb "$@" >"$work"/out 2>&1; }
kept=$work/.cache/loadline/models.json
run || fail "a model to keep"
cp "$work"/out "$work"/first
grep -q kept.gguf "$kept" || fail "nothing is kept"
touch -r "$work"/models/kept.gguf "$work"/time
dd if=/dev/zero of="$work"/models/kept.gguf bs=64 count=1 conv=notrunc 2>/dev/null
touch -r "$work"/time "$work"/models/kept.gguf
run || fail "a model that is known"
cmp -s "$work"/out "$work"/first || fail "what was kept is not what was read"
run --no-cache || fail "--no-cache"
grep -q '^0 of 1 model run' "$work"/out || fail "--no-cache did not read"
cp "$work"/best.gguf "$work"/models/kept.gguf
for damage in 's/"program":"/&x/' 's/"models":\[/&[[[/' 's/"weights":/&-/' 's/"state":2/"state":77/' 's/"bytes":/"bytes":1e9,"x":/'; do
  run || fail "a model to keep again"
  sed -i "$damage" "$kept"
  run || fail "a damaged cache"
  cmp -s "$work"/out "$work"/first || fail "a cache damaged by $damage"
done
run --context 64k || fail "a long context"
grep -q '65,536 tokens' "$work"/out && grep -q '^0 of 1 model run' "$work"/out || fail "a context of 64k"
run --seq 1k --context 2k || fail "a short context"
grep -q -- '--seq 1024 --past 1024' "$work"/out && grep -q '^1 of 1 model run' "$work"/out || fail "a context of 2k"
run --seq lots && fail "no number of tokens"

# this machine gives what the system has available
"$program" targets this >"$work"/out || fail "this machine"
grep -q '^this: This machine' "$work"/out || fail "this machine as a target"
"$program" plan demo --target this --method staged_ring --seq 512 --context max >"$work"/out || fail "a small model here"
