#!/bin/bash
# Saved requests ask for what was asked for, from any folder, and flags go before them.
# usage: requests.sh LOADLINE FOLDER LESSONS
set -u
program=$1 lessons=$3
cd "$2" || exit 1
fail() { echo "$1"; exit 1; }
folder=requests
rm -rf $folder && mkdir -p $folder/elsewhere || exit 1
plan() { "$program" plan "$@" --json; }
# an answer, but for the command lines in it, which name the model by another path
rows() { grep -v '"command"' "$1"; }
# expects exit code $1 and message $2 from the rest
refused() {
  code=$1 words=$2 && shift 2
  message=$("$program" "$@" 2>&1 >$folder/out.txt)
  given=$?
  [ $given -eq "$code" ] || fail "$*: exit code $given, expected $code: $message"
  grep -qF -- "$words" <<<"$message" || fail "$*: '$message' lacks '$words'"
}

# the same rows, from here and from another folder
asked="--method state_dict,staged_ring --order file,largest --device-budget 8GiB --staging 32MiB"
# shellcheck disable=SC2086
plan xl $asked --save-request $folder/r.json >$folder/asked.json || fail "--save-request: $?"
grep -q '"rows"' $folder/asked.json || fail "no rows"
plan --request $folder/r.json >$folder/again.json || fail "--request: $?"
[ "$(rows $folder/asked.json)" = "$(rows $folder/again.json)" ] || fail "a saved request gives other rows"
(cd $folder/elsewhere && "$program" plan --request ../r.json --json >../there.json) || fail "from another folder: $?"
[ "$(rows $folder/asked.json)" = "$(rows $folder/there.json)" ] || fail "other rows from another folder"
[ "$(grep -c '"flush"\|"allocator"' $folder/r.json)" -eq 0 ] || fail "defaults are saved: $(cat $folder/r.json)"

# flags go before the file, one by one; of options that exclude each other the flag's stays
plan --request $folder/r.json --staging 16MiB --order file >$folder/over.json || fail "flags over a request: $?"
plan xl --method state_dict,staged_ring --device-budget 8GiB --staging 16MiB >$folder/line.json
[ "$(rows $folder/over.json)" = "$(rows $folder/line.json)" ] || fail "flags over a request give other rows"
plan xl --method accelerate --place 'name:*=host' --save-request $folder/p.json >/dev/null || fail "--save-request: $?"
plan --request $folder/p.json --auto-map 2GiB >$folder/over.json || fail "--auto-map over place: $?"
plan xl --method accelerate --auto-map 2GiB >$folder/line.json
[ "$(rows $folder/over.json)" = "$(rows $folder/line.json)" ] || fail "--auto-map over place gives other rows"
plan demo --request $folder/r.json | grep -q '"model": "demo"' || fail "a model named on the line does not count"

# what is wrong in a file, and what would be ignored, is told
echo '{"schema_version": 2, "model": "xl", "options": {"device_budgt": 5}}' >$folder/wrong.json
refused 1 "wrong.json: line 1, column 66: no option of a load is called 'device_budgt'; did you mean device_budget?" \
  plan --request $folder/wrong.json
echo '{"schema_version": 2, "model": "../xl", "options": {"slots": "many"}}' >$folder/wrong.json
refused 1 "'slots': 'many' is not a whole number" plan --request $folder/wrong.json
echo '{"schema_version": 2, "options": {}}' >$folder/wrong.json
refused 2 "PATH is required" plan --request $folder/wrong.json
echo '{"schema_version": 2, "model": "../xl", "options": {"method": ["direct"], "slots": 2}}' >$folder/wrong.json
refused 2 "--slots has no effect for direct" plan --request $folder/wrong.json

# an empty list is none of the names that are needed, in every option and in a lesson's scene
for option in order method place dim; do
  echo "{\"schema_version\": 2, \"model\": \"../xl\", \"options\": {\"$option\": []}}" >$folder/wrong.json
  for command in plan rehearse report pack; do
    refused 1 "'$option': a name is needed" $command --request $folder/wrong.json
  done
done
refused 2 "a name is needed" plan xl --order ''
sed 's/"options": {/"options": {"order": [], /' "$lessons/six-ways.json" >$folder/six-ways.json
cp "$lessons/six-ways.md" $folder
grep -q '"order": \[\]' $folder/six-ways.json || fail "no list to empty"
refused 1 "'order': a name is needed" lesson check $folder/six-ways.json

# a request of any path opens again: bytes that are no UTF-8, percent signs, blanks, a dash at the front
mkdir -p $folder/odd
for name in "$(printf 'caf\351 100%%25.safetensors')" '100%41.safetensors' '-a b.safetensors' "it's \"q\".safetensors"; do
  cp demo/model-00001-of-00003.safetensors "$folder/odd/$name"
  for where in $folder/elsewhere/saved.json "$folder/odd/-s $(printf '\351').json"; do
    rm -f "$where"
    "$program" plan "$folder/odd/$name" --method direct --save-request="$where" >$folder/saved.txt || fail "--save-request of $name: $?"
    (cd / && "$program" plan --request="$OLDPWD/$where") >$folder/opened.txt || fail "--request of $name: $?: $(cat "$where")"
    cmp -s <(tail -n +2 $folder/saved.txt) <(tail -n +2 $folder/opened.txt) || fail "another model: $(cat "$where")"
  done
done

# nothing but a saved request is written over
cp demo/config.json $folder/config.json
refused 2 "config.json' exists and is not a saved request" plan xl --save-request $folder/config.json
cmp demo/config.json $folder/config.json || fail "a model's configuration was written over"
refused 2 "does not end in .json" plan xl --save-request $folder/request.txt
[ ! -e $folder/request.txt ] || fail "request.txt was written"
plan xl --method direct --save-request $folder/r.json >/dev/null || fail "a saved request cannot be renewed"
grep -q '"direct"' $folder/r.json || fail "it was not renewed"
