#!/bin/sh
# Pages of lessons and reports: whole, the same on a second run, without outside requests, and valid.
# usage: pages.sh LOADLINE FOLDER
set -u
program=$1
cd "$2" || exit 1
fail() { echo "$1"; exit 1; }
rm -rf pages && mkdir pages || exit 1
export XDG_CONFIG_HOME="$PWD/pages/config"
"$program" synth demo pages/demo --random 1 >/dev/null || fail "synth"
"$program" synth deepseek-v3 pages/giant >/dev/null || fail "synth deepseek-v3"
"$program" convert pages/demo pages/demo.gguf --outtype q8_0 >/dev/null 2>&1 || fail "convert"
"$program" report pages/demo --device-budget 40MiB --seq 64 -o pages/a.html >/dev/null || fail "report: $?"
"$program" report pages/demo --device-budget 40MiB --seq 64 -o pages/b.html >/dev/null || fail "report again: $?"
# the page names itself nowhere
cmp pages/a.html pages/b.html || fail "two runs differ"
grep -q 'Changes that make it fit' pages/a.html || fail "no advice"
grep -q -- '--device-budget 40MiB --seq 64' pages/a.html || fail "no command line to repeat it"
"$program" report pages/giant -o pages/giant.html >/dev/null || fail "report of the giant: $?"
[ "$(wc -c <pages/giant.html)" -lt 2000000 ] || fail "$(wc -c <pages/giant.html) bytes"
"$program" report pages/demo --measured --method sequential -o pages/measured.html >/dev/null || fail "--measured: $?"
grep -q '<td>RssShmem</td>' pages/measured.html || fail "nothing measured"
"$program" report pages/demo pages/demo.gguf -o pages/two.html >/dev/null || fail "report of two: $?"
grep -q 'other type: 58' pages/two.html || fail "no difference"
"$program" report pages/demo --values -o pages/x.html 2>pages/err; [ $? -eq 2 ] || fail "--values alone"
"$program" lesson run kv-cache -o pages/lesson.html --worksheet pages/sheet.html --key pages/key.html || fail "lesson: $?"
"$program" lesson run kv-cach 2>pages/err; [ $? -eq 2 ] || fail "an unknown lesson"
grep -q "did you mean kv-cache?" pages/err || fail "$(cat pages/err)"
mkdir -p pages/config/loadline/lessons
echo '{' >pages/config/loadline/lessons/own.json
: >pages/config/loadline/lessons/own.md
"$program" lesson list 2>pages/err | grep -q '^six-ways ' || fail "lesson list"
grep -q 'own.json' pages/err || fail "a broken lesson is not said: $(cat pages/err)"
"$program" lesson check pages/config/loadline/lessons/own.json 2>/dev/null; [ $? -eq 1 ] || fail "a broken lesson is sound"
for page in pages/*.html; do
  ! grep -q 'http:\|https:\| src=' "$page" || fail "$page asks for something outside"
  if command -v tidy >/dev/null; then tidy -q -e "$page" 2>pages/err || fail "$page: $(head -3 pages/err)"; fi
done
command -v tidy >/dev/null || echo "tidy is not installed: pages were not validated"
