#!/bin/bash
# edit on small files, and after an interruption.  usage: editing.sh LOADLINE FOLDER MODEL
set -u
program=$1
. "$(dirname "$0")/script_support.sh"
model=$(readlink -f "$3")
rm -rf "$2" && mkdir -p "$2" && cd "$2" || exit 1
backups() { find . -name '.loadline-edit-*' | wc -l; }

run 0 convert "$model" m.gguf --align 4096
run 0 convert "$model" m.safetensors --align 4096
cp m.gguf old.gguf
cp m.safetensors old.safetensors

run 0 edit m.gguf --set general.name=Mine --dry-run
says "1 key would change"
cmp m.gguf old.gguf || fail "--dry-run wrote"
run 2 edit m.gguf --set general.nickname=Mine
says "'general.nickname'"
run 0 edit m.gguf --set general.nickname:string=$'M\e[31m' --set general.architecture=gpt2
says 'new: M\x1b[31m'
says "was llama"
run 0 verify m.gguf old.gguf
run 0 edit m.gguf --remove general.nickname --json
says '"before": "M\u001b[31m"'
says '"after": null'
run 0 edit m.safetensors --set "author=a=b:c"
says "new: a=b:c"
run 0 verify m.safetensors old.safetensors
run 1 edit m.safetensors --set "author=$(head -c 5000 /dev/zero | tr '\0' x)"
says "too few. Convert the model to a new file"
[ "$(backups)" -eq 0 ] || fail "a backup is left"

# what cannot be edited
run 2 edit m.gguf
says "nothing to change"
run 2 edit "$model" --set a=b
says "is a folder"
run 2 edit m.gguf --set novalue
says "'novalue'"
run 1 edit errors.txt --set a=b
run 1 edit absent --set a=b
mkdir blobs && cp m.gguf blobs/abc && ln -s blobs/abc link.gguf
run 2 edit link.gguf --set general.architecture=x
says "lies in a Hugging Face cache"
ln m.gguf second.gguf
run 2 edit m.gguf --set general.architecture=x
says "has 2 names"
rm second.gguf
chmod a-w m.gguf
[ -w m.gguf ] || { run 1 edit m.gguf --set general.architecture=x; says "open for writing"; }
chmod u+w m.gguf

# killed wherever it waits for the disk: nothing is lost, and after an interruption every command says so
cp m.gguf before.gguf
interrupted=0
for wait in 1 2 3 4 5 6; do
  strace -o trace.txt -f -e "inject=fsync,fdatasync:signal=KILL:when=$wait" \
    "$program" edit m.gguf --set general.architecture=killed$wait >/dev/null 2>&1
  if [ "$(backups)" -eq 1 ]; then
    interrupted=$((interrupted + 1))
    run 0 inspect m.gguf
    says "an edit of this file was interrupted"
    run 2 edit m.gguf --set general.architecture=x --dry-run
    says "without --dry-run first"
    run 0 edit m.gguf
    says "an edit had been interrupted"
    [ "$(backups)" -eq 0 ] || fail "the backup is left"
  fi
  run 0 verify m.gguf before.gguf
  run 0 edit m.gguf --set general.architecture=again
done 2>/dev/null
if strace -o trace.txt true 2>/dev/null; then
  [ "$interrupted" -ge 1 ] || fail "no interruption left a backup"
fi
exit 0
