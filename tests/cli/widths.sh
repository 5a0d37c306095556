#!/bin/bash
# Help fits a page, and help and plan's table fit 80 columns.  usage: widths.sh LOADLINE FOLDER
set -u
program=$1
cd "$2" || exit 1
export LC_ALL=C.UTF-8
fail() { echo "$1"; exit 1; }
# lines of standard input that are longer than 80 characters
long_lines() { awk 'length($0) > 80'; }

commands=$("$program" --help | sed -n '/^Commands:/,/^[A-Z].*:$/s/^  \([a-z]*\) .*/\1/p')
[ "$(wc -w <<<"$commands")" -ge 13 ] || fail "commands in --help: $commands"
for command in "" $commands; do
  # shellcheck disable=SC2086
  text=$("$program" $command --help) || fail "loadline $command --help: $?"
  lines=$(wc -l <<<"$text")
  [ "$lines" -le 67 ] || fail "loadline $command --help has $lines lines"
  [ "$lines" -ge 5 ] || fail "loadline $command --help has only $lines lines"
  long=$(long_lines <<<"$text")
  [ -z "$long" ] || fail "loadline $command --help has long lines:"$'\n'"$long"
  [ -z "$command" ] || grep -q "^  loadline $command" <<<"$text" || fail "loadline $command --help has no example"
done

# plan's options; the table ends at the second empty line
table() {
  text=$("$program" plan xl "$@" | awk '/^$/ { blocks++ } blocks == 1')
  [ "$(wc -l <<<"$text")" -ge 8 ] || fail "plan xl $*: no table: $text"
  long=$(long_lines <<<"$text")
  [ -z "$long" ] || fail "plan xl $*: lines that are too long:"$'\n'"$long"
}
table
table --method all
table --method all --device-budget 6GiB
table --method all --memory unified --device-budget 6GiB
table --order file,largest,forward --device-budget 6GiB
table --explain
table --allocator torch --device-budget 6GiB
