#!/bin/bash
# What advice prints, fits: each command line that it shows is run.  usage: advice.sh LOADLINE FOLDER
set -u
program=$1
cd "$2" || exit 1
loadline() { "$program" "$@" >/dev/null; }
mkdir -p "it's a model" && cp demo/config.json "it's a model/" || exit 1

# plan's options, and how many command lines at least
check() {
  least=$1 && shift
  text=$("$program" plan "$@")
  lines=$(printf '%s\n' "$text" | sed -n 's/^  (\(loadline plan .*\))$/\1/p')
  count=0
  while IFS= read -r line; do
    [ -n "$line" ] || continue
    eval "$line"
    code=$?
    [ $code -eq 0 ] || { echo "plan $*: '$line' gives $code"; exit 1; }
    count=$((count + 1))
  done <<<"$lines"
  [ $count -ge "$least" ] || { echo "plan $*: $count command lines, expected $least"; echo "$text"; exit 1; }
}

check 3 xl --method state_dict --device-budget 6GiB
check 3 xl --method staged_ring --device-budget 6GiB --host-budget 20MiB
check 3 xl --method staged_ring --staging 32MiB --slots 2 --device-budget 5GiB
check 3 xl --method all --runai-buffer 1GB --device-budget 5GiB
check 3 xl --method runai --host-budget 1GiB
check 3 xl --method fastsafetensors_copy --device-budget 8GiB
check 2 xl/config.json --method executorch_before --order forward --memory unified --device-budget 11908MiB
check 3 xl --method all --memory unified --device-budget 5GiB
check 3 xl --method accelerate --memory unified --device-budget 5GiB
check 1 xl --method accelerate --target rtx-4060-8gb --require-peak 3GiB --place 'name:*=device'
check 1 xl --method all --device-budget 6GiB
check 3 70b --method all --device-budget 8GiB --host-budget 32GiB
check 3 70b --method state_dict --device-budget 80GiB --host-budget 32GiB --seq 64 --batch 2 --page-cache-budget 4GiB
check 2 70b --method accelerate --device-budget 24GiB --host-budget 16GiB
check 1 "it's a model" --method state_dict --device-budget 64MiB

# half a model fits nothing, and no advice helps
mkdir -p half && cp 70b/config.json 70b/*.index.json 70b/model-0000[1-9]-of-*.safetensors half/ || exit 1
expect() {
  wanted=$1 && shift
  text=$("$program" plan half "$@" 2>/dev/null)
  code=$?
  [ $code -eq "$wanted" ] || { echo "plan half $*: exit $code, expected $wanted"; exit 1; }
}
expect 1 --device-budget 10TiB --host-budget 10TiB
grep -q ' incomplete$' <<<"$text" && ! grep -q ' fits$' <<<"$text" || { echo "half a model fits: $text"; exit 1; }
grep -q 'This model is not whole' <<<"$(tail -4 <<<"$text")" || { echo "the last lines do not say it: $text"; exit 1; }
expect 1 --device-budget 10TiB --host-budget 10TiB --json
! grep -q '"fits": {[^}]*true' <<<"$(tr -d '\n' <<<"$text")" || { echo "JSON says that half a model fits"; exit 1; }
expect 3 --device-budget 1KiB --json
! grep -q '"advice"' <<<"$text" || { echo "advice for half a model"; exit 1; }
