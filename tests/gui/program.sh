#!/bin/bash
# The program itself in a window: what a person types becomes files, and Ctrl+Q ends it. program.sh LOADLINE
set -euo pipefail
program=$1
command -v xdotool >/dev/null || { echo "skipped: xdotool is not installed"; exit 77; }
folder=$(mktemp -d)
export XDG_CONFIG_HOME=$folder/config HOME=$folder
trap 'kill "$window" 2>/dev/null && wait "$window" || true; rm -rf "$folder"' EXIT

fail() {
  cat "$folder/log"
  # neither display nor driver
  grep -q '^loadline: window: cannot\|Vulkan' "$folder/log" && { echo "skipped: no window can be opened"; exit 77; }
  echo "$1"
  exit 1
}
ended() { ! kill -0 "$window" 2>/dev/null; }
# soon WHAT COMMAND...: until the command succeeds, for a minute at most
soon() {
  local what=$1 left=600
  shift
  until "$@" >/dev/null 2>&1; do
    ! ended || fail "the program ended before: $what"
    left=$((left - 1))
    [ $left -gt 0 ] || fail "never came: $what"
    sleep 0.1
  done
}
run() { # run WORDS: through the palette
  xdotool key ctrl+p
  xdotool type --delay 12 "$1"
  xdotool key Return
}

"$program" synth demo "$folder/small" >/dev/null
"$program" gui "$folder/small" --size 1100x700 >"$folder/log" 2>&1 &
window=$!
soon "a window with the model's name" xdotool search --onlyvisible --name '^small - Loadline$'
run "device_budget 48MiB"
run "method per_tensor"
run "save-request $folder/asked.json"
soon "the saved request" grep -q per_tensor "$folder/asked.json"
grep -q '"device_budget": 50331648' "$folder/asked.json" || fail "another budget: $(cat "$folder/asked.json")"
xdotool key ctrl+t
xdotool key ctrl+q
left=600
until ended; do
  left=$((left - 1))
  [ $left -gt 0 ] || fail "Ctrl+Q does not end it"
  sleep 0.1
done
wait "$window" || fail "the program ended with $?"
state=$(find "$XDG_CONFIG_HOME" -name window.json)
grep -q '"dark": *false' "$state" || fail "the theme is not remembered: $(cat "$state")"
grep -q '"width": *1100' "$state" || fail "the size is not remembered: $(cat "$state")"
grep -q "$folder/small" "$state" || fail "the model is not remembered: $(cat "$state")"
