#!/bin/bash
# batch: order, failures, what is skipped.  usage: batches.sh LOADLINE FOLDER MODEL
set -u
program=$1
. "$(dirname "$0")/script_support.sh"
model=$(readlink -f "$3")
rm -rf "$2" && mkdir -p "$2/lists" && cd "$2" || exit 1
ln -s "$model" lists/model
cat >lists/jobs.json <<'END'
{
  "options": {"verify": true},
  "jobs": [
    {"in": "model", "out": "../out/a.gguf"},
    {"in": "absent", "out": "../out/b.gguf"},
    {"in": "model", "out": "../out/c", "options": {"outtype": "f16", "max_shard_size": "30MB"}}
  ]
}
END

run 1 batch lists/jobs.json
says "job 1: lists/../out/a.gguf: 61.0"
says "read back and equal"
says "job 2: "
says "3 jobs: 1 done, 1 failed, 1 not run: --keep-going runs them."
run 1 batch lists/jobs.json --keep-going --jobs 2
says "job 1: lists/../out/a.gguf: is up to date"
says "3 jobs: 1 done, 1 skipped, 1 failed."
run 0 verify "$model" out/a.gguf
run 1 batch lists/jobs.json --json --keep-going
[ "$(wc -l <<<"$text")" -eq 3 ] || fail "not one line for each job: $text"
for line in 1 2 3; do sed -n "${line}p" <<<"$text" | grep -q '^{"schema_version":2,"tool_version":".*}$' || fail "$text"; done
says '"job":2,'
says '"state":"failed","error":{"code":"io"'
[ "$(grep -c '"state":"skipped"' <<<"$text")" -eq 2 ] || fail "$text"

# from another folder the same jobs are known
cd lists
run 1 batch jobs.json --keep-going
says "3 jobs: 0 done, 2 skipped, 1 failed."
cd ..

# the same bytes as one by one
run 0 convert lists/model alone.gguf
cmp alone.gguf out/a.gguf || fail "other bytes than convert"
# an output that is gone is written again; one that was changed is not replaced
rm out/a.gguf
printf x >>out/c/model-00001-of-00003.safetensors
sed -i '/absent/d' lists/jobs.json
run 1 batch lists/jobs.json --keep-going
says "job 1: lists/../out/a.gguf: 61.0"
says "exists"
sed -i 's/"verify": true/"verify": true, "force": true/' lists/jobs.json
run 0 batch lists/jobs.json
says "2 jobs: 2 done."
run 0 batch lists/jobs.json
says "2 jobs: 0 done, 2 skipped."

# what is wrong with the list is said before anything runs
rm -r out
echo '{"jobs": [{"in": "model", "out": "../out/a.gguf"}, {"in": "model", "out": "x", "options": {"oltype": 1}}]}' >lists/wrong.json
run 1 batch lists/wrong.json
says "line 1"
says "'oltype'"
says " outtype?"
[ -e out ] && fail "a job ran"
run 2 batch lists/jobs.json --memory-budget 128KiB --jobs 2
says " 32MiB"
run 1 batch absent.json
echo "no json" >lists/jobs.json.state
run 1 batch lists/jobs.json
says "jobs.json.state: "

# interrupted: the next run goes on, and then no part is left
rm -f lists/jobs.json.state
# a shell starts background jobs with SIGINT ignored
env --default-signal=INT "$program" batch lists/jobs.json >/dev/null 2>&1 &
batch=$!
until [ -n "$(find out -name '.loadline-*' 2>/dev/null)" ]; do
  kill -0 $batch 2>/dev/null || fail "it was over before it could be interrupted"
done
kill -INT $batch
wait $batch
code=$?
[ "$code" -eq 130 ] || fail "interrupted: exit $code"
run 0 batch lists/jobs.json
says "2 jobs:"
[ -z "$(find out -name '.loadline-*')" ] || fail "a part is left"
exit 0
