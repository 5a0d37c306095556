#!/bin/bash
# What a file holds reaches a terminal escaped, from files of every kind through every command that opens them.
# usage: escaping.sh LOADLINE FOLDER SOURCES
set -u
program=$1 sources=$3
. "$(dirname "$0")/script_support.sh"
rm -rf "$2" && mkdir -p "$2/config/loadline/lessons" "$2/models" && cd "$2" || exit 1
export XDG_CONFIG_HOME="$PWD/config"
runs=0

# Control characters but line ends; marks that reorder, hide or break lines; bytes that are no UTF-8; texts of libraries.
unsafe='[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\x8b-\x8f\xa8-\xae]|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf'
texts='json\.exception|filesystem error|pthread_create|unexpected failure|basic_string'
clean() {
  "$program" "$@" >out.txt 2>errors.txt </dev/null
  local code=$?
  [ $code -le 4 ] || fail "loadline $*: exit $code: $(cat -v errors.txt)"
  for stream in out.txt errors.txt; do
    if LC_ALL=C grep -aPq "$unsafe" $stream || ! iconv -f utf-8 -t utf-8 $stream >/dev/null 2>&1 ||
      grep -aEq "$texts" $stream; then
      fail "loadline $*: $(cat -v $stream | head -c 3000)"
    fi
    awk 'length > 4000 { exit 1 }' $stream || [[ " $* " == *" --json "* ]] || fail "loadline $*: a line of $(wc -L <$stream)"
  done
  runs=$((runs + 1))
}

# --- Models: three bytes of a text become a mark that turns the line around, which is as long.
bidi=$'\xe2\x80\xae'
look() {
  for view in --tree --tensors --metadata --doctor --json; do clean inspect "$1" $view; done
  clean plan "$1" --seq 4 --alive 2
  clean pack "$1" --time-limit 0.01
  clean diff "$1" "$sources/tests/fuzz/corpus/safetensors/two" --no-values
  clean verify "$1" "$sources/tests/fuzz/corpus/safetensors/two"
  clean report "$1" -o out.html
  clean convert "$1" out.npz --outtype f32 --dry-run
  clean convert "$1" out.gguf --names keep --force
}
for kind in safetensors gguf onnx ptd pte tflite torch_legacy npy npz; do
  for file in "$sources/tests/fuzz/corpus/$kind"/*; do
    for nth in 1 4; do
      LC_ALL=C sed -z -E "s/[A-Za-z_]{3}([A-Za-z_.])/$bidi\\1/$nth" "$file" >models/m
      cmp -s "$file" models/m || look models/m
    done
    [ $kind = npz ] || [ $kind = torch_legacy ] || break # the largest of each kind comes first
  done
done
# Escapes that JSON can hold, in every place of a header and of settings beside it.
bad='\\u001b]0;owned\\u0007\\u001b[31m\\u202e\\u009b'
header='{"__metadata__":{"KEY":"VALUE"},"NAME":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
safetensors() { printf "\\x$(printf %02x $((${#1} % 256)))\\x$(printf %02x $((${#1} / 256)))\\0\\0\\0\\0\\0\\0%s\\0\\0\\x80?" "${1//\\/\\\\}"; }
for place in KEY VALUE NAME F32; do
  text=${header/$place/$(printf '%b' "${bad//\\\\/\\\\\\\\}")}
  safetensors "$text" >models/s.safetensors
  look models/s.safetensors
done
mkdir -p models/folder
safetensors "$header" >models/folder/model.safetensors
for settings in config.json generation_config.json tokenizer_config.json tokenizer.json model.safetensors.index.json adapter_config.json; do
  for text in "{\"model_type\":\"$bad\"}" "{\"$bad\":1,\"model_type\":\"llama\"}" "{\"weight_map\":{\"NAME\":\"$bad\"}}" \
    "{\"weight_map\":{\"$bad\":\"model.safetensors\"}}" "$bad" '{"model_type":[{}]}'; do
    printf '%b' "${text//\\\\/\\\\}" >models/folder/$settings
    clean plan models/folder
    clean convert models/folder out.gguf --dry-run
    clean merge models/folder models/folder out.gguf --dry-run
  done
  rm models/folder/$settings
done
# A name of the file itself.
cp models/folder/model.safetensors "models/$(printf '\033[31m\351\342\200\256').safetensors"
look models/*31m*

# --- Settings: saved requests, orders, lists of jobs, buffers, data sheets, profiles, lessons.
mutate() { # mutate FILE COMMAND...: each text of a JSON file in turn
  local file=$1 count i
  shift
  count=$(grep -o '"[^"]*"' "$file" | wc -l)
  for ((i = 1; i <= count && i <= 24; ++i)); do
    awk -v n="$i" -v bad="$bad" 'BEGIN { RS = "\"" ; ORS = "" } { if (NR > 1) print "\""; if (NR == 2 * n) { gsub(/\\\\/, "\\", bad); print bad }; print }' "$file" >mutant.json
    cp mutant.json "$target"
    clean "$@"
  done
}
model=models/folder/model.safetensors
echo "{\"schema_version\": 2, \"model\": \"$model\", \"options\": {\"method\": [\"direct\"], \"order\": [\"name\"], \"target\": \"l4-24gb\", \"place\": [\"name:a=host\"], \"rates\": \"assumed\"}}" >request.json
target=q.json mutate request.json plan --request q.json
target=q.json mutate request.json report --request q.json -o out.html
echo "{\"jobs\": [{\"in\": \"$model\", \"out\": \"o.npz\", \"options\": {\"outtype\": \"f32\", \"order\": \"name\"}}]}" >jobs.json
target=j.json mutate jobs.json batch j.json
target=j.json mutate jobs.json batch j.json --json
printf 'NA\033[31m%s\nNAME\n' "$bidi" >order.txt
clean plan $model --order order.txt
clean convert $model o.gguf --order order.txt --dry-run
printf 'id,lower,upper,size\n\033[31m%s,0,1,1\nb,x%s,1,1\n' "$bidi" "$bidi" >buffers.csv
clean pack buffers.csv
printf 'id,lower,upper,size\n\033[31m%s,0,1,1\n' "$bidi" >buffers.csv
clean pack buffers.csv
for kind in targets profiles; do
  mkdir -p config/loadline/$kind
  for file in "$sources/assets/$kind"/[flr]*.json; do
    target=config/loadline/$kind/own.json mutate "$file" plan $model --seq 4
    break
  done
  clean targets
  rm -r config/loadline/$kind
done
lesson=$sources/assets/lessons/six-ways
cp "$lesson.md" config/loadline/lessons/own.md
target=config/loadline/lessons/own.json mutate "$lesson.json" lesson check config/loadline/lessons/own.json
cp "$lesson.json" config/loadline/lessons/own.json
sed $'s/ is / \x1b]0;owned\x07\x1b[31m\xe2\x80\xaeis /g' "$lesson.md" >config/loadline/lessons/own.md
clean lesson list
clean lesson run own --no-run
grep -qF '\x1b]0;owned\x07\x1b[31m\u{202e}is' out.txt || fail "the lesson has lost its text: $(head -c 500 out.txt)"
clean lesson run own --no-run --json
[ $runs -gt 300 ] || fail "only $runs runs"

# --- Names of a megabyte are shortened.
long=$(head -c 60000 /dev/zero | tr '\0' n)
safetensors "${header/NAME/$long}" >models/long.safetensors
clean convert models/long.safetensors out.gguf --names keep
[ "$(wc -c <errors.txt)" -lt 600 ] || fail "$(wc -c <errors.txt) bytes about a long name"
grep -q '60000 bytes' errors.txt || fail "does not say how long: $(cat errors.txt)"

# --- A list of jobs is not called something else, and its size is the file's.
{ echo '{"jobs": ['; head -c 1200000 /dev/zero | tr '\0' ' '; echo ']}'; } >j.json
run 1 batch j.json
says "j.json: has $(wc -c <j.json) bytes, the limit is 1048576"
echo '[]' >j.json
run 1 batch j.json
says "the file is a list, an object expected"

# --- What a killed lesson leaves is found.
mkdir -p temporary
TMPDIR=$PWD/temporary "$program" lesson run meta-device >/dev/null 2>&1 &
victim=$!
for ((i = 0; i < 200; ++i)); do
  [ -z "$(ls -A temporary)" ] || break
  sleep 0.02
done
kill -9 $victim
wait $victim 2>/dev/null
left=$(ls -A temporary)
[ -n "$left" ] || fail "nothing to remove: the lesson makes no files"
run 0 clean temporary --dry-run
says "would remove $left"
run 0 clean temporary
[ -z "$(ls -A temporary)" ] || fail "left: $(ls -A temporary)"
run 0 clean temporary
says "Nothing to remove"

# --- Commands that say --json print JSON.
run 0 lesson check "$lesson.json" --json
says '"faults": []'
run 0 lesson check "$lesson.json"
says "no errors"
