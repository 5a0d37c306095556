#!/bin/sh
# Runs a command with a display of its own, or says why not and exits 77 (skipped).
command -v Xvfb >/dev/null || { echo "skipped: Xvfb is not installed"; exit 77; }
folder=$(mktemp -d)
Xvfb -displayfd 3 -screen 0 1600x1000x24 -nolisten tcp -noreset 3>"$folder/number" 2>"$folder/log" &
server=$!
trap 'kill $server 2>/dev/null; wait $server 2>/dev/null; rm -rf "$folder"' EXIT
left=1200
while [ ! -s "$folder/number" ]; do
  left=$((left - 1))
  [ $left -gt 0 ] || { echo "Xvfb names no display within a minute"; exit 1; }
  kill -0 $server 2>/dev/null || { cat "$folder/log"; echo "skipped: Xvfb does not start"; exit 77; }
  sleep 0.05
done
DISPLAY=:$(cat "$folder/number")
export DISPLAY
"$@"
