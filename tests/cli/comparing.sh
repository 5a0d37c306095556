#!/bin/bash
# verify and diff on models that differ in every way.  usage: comparing.sh LOADLINE FOLDER
set -u
program=$1
rm -rf "$2" && mkdir -p "$2" && cd "$2" || exit 1
fail() { echo "$1"; exit 1; }
# run EXIT ARGUMENT...: standard output in $text
run() {
  local expected=$1 code
  shift
  text=$("$program" "$@" 2>errors)
  code=$?
  [ "$code" -eq "$expected" ] || fail "loadline $*: exit $code"$'\n'"$text$(cat errors)"
}
says() { [[ "$text" == *"$1"* ]] || fail "does not say '$1':"$'\n'"$text"; }

# model FILE HEADER DATA: a safetensors file; DATA in printf's escapes
model() {
  local length=${#2}
  { printf "\\x$(printf %02x "$length")\\0\\0\\0\\0\\0\\0\\0"; printf %s "$2"; printf "$3"; } >"$1"
}
two() { echo "{\"x\":{\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[0,4]},\"$1\":{\"dtype\":\"$2\",\"shape\":[$3],\"data_offsets\":[4,8]}}"; }
model a.safetensors "$(two y F32 1)" '\1\2\3\4\0\0\x80\x3f'
model same.safetensors "$(two y F32 1)" '\1\2\3\4\0\0\x80\x3f'
model value.safetensors "$(two y F32 1)" '\1\2\3\4\0\0\x80\xbf'
model byte.safetensors "$(two y F32 1)" '\1\2\11\4\0\0\x80\x3f'
model type.safetensors "$(two y I32 1)" '\1\2\3\4\0\0\x80\x3f'
model name.safetensors "$(two 'z\u001b[2J' F32 1)" '\1\2\3\4\0\0\x80\x3f'
model more.safetensors "$(two y F32 1)" '\1\2\3\4\0\0\x80\x3ftrailing'

run 0 verify a.safetensors same.safetensors
says "2 tensors equal, byte for byte"
run 4 verify a.safetensors value.safetensors
says "1 of 1 element differs"
says "the first at [0]: A 1, B -1"
says "largest difference 2, or 2 of the larger number"
says "2 tensors in A, 2 in B: 1 equal, 1 with other values."
run 0 verify a.safetensors value.safetensors --tolerance 2
says "2 tensors equal, within 2"
run 4 verify a.safetensors byte.safetensors --tolerance 100
says "U8 [2, 2], 1 of 4 elements differs"
says "the first at [1, 0]: A 3, B 9"
run 4 verify a.safetensors type.safetensors
says "A F32, B I32, [1]"
says "--tolerance 0 does that"
run 4 verify a.safetensors name.safetensors
says "Only in A, 1 tensor:"
says 'z\x1b[2J'
[[ "$text" == *$'\e'* ]] && fail "an escape reached the terminal"
run 4 verify a.safetensors name.safetensors --json
says '"kind": "only_b"'
run 1 verify a.safetensors more.safetensors
grep -q ": 8 bytes " errors || fail "$(cat errors)"
head -c 60 a.safetensors >cut.safetensors
run 1 verify a.safetensors cut.safetensors
# in every width a person may have
run 4 verify a.safetensors value.safetensors
[ "$(awk 'length($0) > 80' <<<"$text")" = "" ] || fail "long lines: $text"

run 4 diff a.safetensors value.safetensors
says "2 tensors in A, 2 in B: 1 equal, 1 with other values."
run 4 diff a.safetensors type.safetensors
says "y                              1  F32 32.00  I32 32.00      0"
run 0 diff a.safetensors value.safetensors --no-values
says "Nothing differs."
run 1 diff a.safetensors more.safetensors
grep -q ": 8 bytes " errors || fail "$(cat errors)"
run 0 diff a.safetensors more.safetensors --no-values
mkdir one two
cp a.safetensors one/model.safetensors
cp a.safetensors two/model.safetensors
printf '{"hidden_size": 64, "name\\u001b": "x"}' >one/config.json
printf '{"hidden_size": 65}' >two/config.json
run 4 diff one two
says "config.json: hidden_size"$'\n'"    A: 64"$'\n'"    B: 65"
says 'config.json: name\x1b'
# numbers that are equal within a tolerance still have other types
"$program" convert a.safetensors a.npz --quiet >/dev/null
run 4 diff a.safetensors type.safetensors --tolerance 0
[ "$(awk 'length($0) > 80' <<<"$text")" = "" ] || fail "long lines: $text"
