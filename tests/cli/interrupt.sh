#!/bin/sh
# Ctrl-C in the middle of writing: exit code 130 and nothing left.  usage: interrupt.sh LOADLINE FOLDER
set -u
rm -rf "$2" && mkdir -p "$2/work" && cd "$2/work" || exit 1
cat >../config.json <<'CONFIG'
{"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 32,
 "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 32000, "torch_dtype": "bfloat16"}
CONFIG
# a shell starts background jobs with SIGINT ignored
env --default-signal=INT "$1" synth ../config.json model --random 1 &
writer=$!
while [ -z "$(ls -A model 2>/dev/null)" ] && kill -0 $writer; do
  sleep 0.01
done
[ -n "$(ls -A model 2>/dev/null)" ] || { echo "nothing was written"; exit 1; }
kill -INT $writer
wait $writer
code=$?
[ $code -eq 130 ] || { echo "exit code $code, expected 130"; exit 1; }
[ -z "$(ls -A)" ] || { echo "left behind:"; ls -lA . model; exit 1; }
