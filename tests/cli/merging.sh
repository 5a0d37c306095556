#!/bin/bash
# merge on a model of one number.  usage: merging.sh LOADLINE FOLDER
set -u
program=$1
rm -rf "$2" && mkdir -p "$2" && cd "$2" || exit 1
fail() { echo "$1"; exit 1; }
# run EXIT ARGUMENT...: standard output and errors in $text
run() {
  local expected=$1 code
  shift
  text=$("$program" "$@" 2>&1)
  code=$?
  [ "$code" -eq "$expected" ] || fail "loadline $*: exit $code"$'\n'"$text"
}
says() { [[ "$text" == *"$1"* ]] || fail "does not say '$1':"$'\n'"$text"; }
# model FILE HEADER DATA: a safetensors file; DATA in printf's escapes
model() {
  { printf "\\x$(printf %02x "${#2}")\\0\\0\\0\\0\\0\\0\\0"; printf %s "$2"; printf "$3"; } >"$1"
}
one() { echo "\"$1\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[$2,$(($2 + 4))]}"; }
mkdir base lora
model base/model.safetensors "{$(one x.weight 0),$(one y.weight 4)}" '\0\0\x80\x3f\0\0\x80\x3f'
echo '{"model_type": "tiny"}' >base/config.json
echo tokens >base/tokenizer.json
model lora/adapter_model.safetensors "{$(one base_model.model.x.lora_A.weight 0),$(one base_model.model.x.lora_B.weight 4)}" \
  '\0\0\0\x40\0\0\x40\x40'
echo '{"peft_type": "LORA", "r": 1, "lora_alpha": 0.5}' >lora/adapter_config.json
# 1 + 0.5 * 3 * 2 = 4, and 1
model wanted.safetensors "{$(one x.weight 0),$(one y.weight 4)}" '\0\0\x80\x40\0\0\x80\x3f'

run 0 merge base lora out
says "lora: 1 weight merged, 0 replaced"
run 0 verify out wanted.safetensors
[ -f out/tokenizer.json ] && [ -f out/config.json ] || fail "the folder is not whole"
run 0 merge base lora/adapter_model.safetensors out.gguf --names keep --verify --quiet
run 0 verify out.gguf wanted.safetensors
run 0 merge base lora out.npz --json --outtype f16 --dry-run
says '"merged": 1'
[ -f out.npz ] && fail "--dry-run wrote"
run 2 merge base lora out
says "exists"
run 2 merge base lora base --force
says "is the folder of the model being read"
run 2 merge base lora lora --force
says "is the folder of the model being read"
run 0 inspect lora
says "LoRA, rank 1, alpha 0.5"
echo '{"peft_type": "LORA", "r": 1, "lora_alpha": 0.5, "of_nobody": 3}' >lora/adapter_config.json
run 1 merge base lora out2
says "adapter_config.json: 'of_nobody' is 3: "
run 0 merge base lora out3 --ignore of_nobody
run 0 verify out3 wanted.safetensors
run 0 inspect lora
says "known but for 'of_nobody' is 3"
echo '{"peft_type": "LORA", "r": 1, "lora_alpha": 0.5, "use_dora": true}' >lora/adapter_config.json
run 0 inspect lora
says "a merge refuses it: "
run 1 merge base lora out2
says "lora/adapter_config.json: use_dora: "
head -c 120 lora/adapter_model.safetensors >cut && mv cut lora/adapter_model.safetensors
run 1 merge base lora out2
[ -e out2 ] && fail "something was written"
cp base/model.safetensors a.safetensors
run 0 convert a.safetensors adapter.gguf
run 1 merge base adapter.gguf out2
says "is a GGUF adapter; llama.cpp adds it"
exit 0
