#!/bin/sh
# Data sheets and profiles of the user's own are named like those that are built in.
# usage: own_assets.sh LOADLINE FOLDER PROFILES
set -u
program=$1
cd "$2" || exit 1
fail() { echo "$1"; exit 1; }
export XDG_CONFIG_HOME="$PWD/own_assets"
rm -rf own_assets && mkdir -p own_assets/loadline/targets own_assets/loadline/profiles || exit 1
cat >own_assets/loadline/targets/mine.json <<'TARGET'
{"id": "mine", "name": "My device", "class": "board", "memory": "discrete", "device_bytes": "63MiB", "source": "the box"}
TARGET
sed 's/"profile": *"fused"/"profile": "my_profile"/' "$3/fused.json" >own_assets/loadline/profiles/my_profile.json || exit 1
grep -q my_profile own_assets/loadline/profiles/my_profile.json || fail "the profile has no id to change"

"$program" targets mine | grep -q '^mine: My device, board' || fail "targets"
"$program" plan demo --method per_tensor,state_dict --target mine >own_assets/out.txt || fail "plan --target mine: $?"
grep -q '^On My device: 63.00 MiB' own_assets/out.txt || fail "no budget of the data sheet: $(cat own_assets/out.txt)"
grep -q '^state_dict .* 59.03 MiB over$' own_assets/out.txt || fail "other verdicts: $(cat own_assets/out.txt)"
"$program" plan demo --method per_tensor --target mine --save-request own_assets/r.json >own_assets/out.txt || fail "--save-request: $?"
"$program" plan --request own_assets/r.json | cmp - own_assets/out.txt || fail "a saved request names it in vain"
"$program" plan demo --target mien 2>own_assets/err.txt; [ $? -eq 2 ] || fail "--target mien"
grep -q -- "--target: no data sheet is called 'mien'; did you mean mine?" own_assets/err.txt || fail "$(cat own_assets/err.txt)"
"$program" plan demo --method per_tensor --seq 8 --profile my_profile --json >own_assets/out.txt || fail "--profile: $?"
grep -q '"profile": "my_profile"' own_assets/out.txt || fail "no pass by the profile"
"$program" plan demo --method per_tensor --seq 8 --profile nope 2>own_assets/err.txt; [ $? -eq 2 ] || fail "--profile nope"
grep -q -- "--profile: no profile is called 'nope'; there are: .*my_profile" own_assets/err.txt || fail "$(cat own_assets/err.txt)"
