#!/bin/sh
# Ctrl-C in the middle of writing: exit code 130 and nothing left.  usage: interrupt.sh LOADLINE FOLDER
set -u
rm -rf "$2" && mkdir -p "$2" && cd "$2" || exit 1
# timeout, because a shell starts background jobs with SIGINT ignored
timeout --preserve-status -s INT 0.5 "$1" synth llama-3.2-1b model --random 1
code=$?
[ $code -eq 130 ] || { echo "exit code $code, expected 130"; exit 1; }
[ -z "$(ls -A)" ] || { echo "left behind:"; ls -lA . model; exit 1; }
