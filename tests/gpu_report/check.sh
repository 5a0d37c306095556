#!/bin/sh
# A report is whole, valid and without outside addresses.
# usage: check.sh FOLDER [GPU-REPORT [OPTIONS]]; with GPU-REPORT a small one is made first, on the software GPU.
set -u
folder=$1
shift
fail() { echo "$1"; exit 1; }
if [ $# -gt 0 ]; then
  program=$1
  shift
  for driver in /usr/share/vulkan/icd.d/lvp_icd*.json; do # every machine the same
    [ ! -e "$driver" ] || export VK_ICD_FILENAMES="$driver"
  done
  export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0" # an unloaded driver has no names
  rm -rf "$folder"
  "$program" "$folder" --size 16MiB --rounds 1 "$@" || fail "gpu-report: $?"
fi
page=$folder/gpu-report.html json=$folder/gpu-report.json
[ "$(ls "$folder")" = "$(printf 'gpu-report.html\ngpu-report.json')" ] || fail "other files: $(ls "$folder")"
! grep -q 'http:\|https:\| src=\| href=' "$page" || fail "the page asks for something outside"
grep -q '<h2>GPU tests</h2>' "$page" || fail "no tests on the page"
grep -q '"failed": \[\]' "$json" || fail "tests failed"
if command -v tidy >/dev/null; then tidy -q -e "$page" 2>&1 || fail "the page is not valid"; fi
if command -v python3 >/dev/null; then python3 -m json.tool "$json" >/dev/null || fail "the JSON is not valid"; fi
