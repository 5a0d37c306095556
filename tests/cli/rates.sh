#!/bin/sh
# Rates are measured, kept and used, with and without a device.  usage: rates.sh LOADLINE FOLDER
set -u
rm -rf "$2" && mkdir -p "$2/disk" && cd "$2" || exit 1
export XDG_CONFIG_HOME="$2/config"
fail() { echo "$1"; exit 1; }
times_line() { "$1" plan ../xl --method per_tensor,staged_ring --order file,name | grep '^Times by'; }

times_line "$1" | grep -q 'assumed rates' || fail "rates before any were measured"
"$1" devices --measure --measure-dir disk >out.txt || fail "devices --measure: $?"
grep -q 'disk read .*512.00 MiB on .*median of' out.txt || fail "no rate of the disk: $(cat out.txt)"
grep -q 'random read .*reads of 4 KiB' out.txt || fail "no seeks: $(cat out.txt)"
grep -Eq 'staging to device +[0-9.]+ .B/s|keeps its assumed rates: ' out.txt || fail "the device is not told of"
[ -z "$(ls -A disk)" ] || fail "left behind: $(ls -A disk)"
times_line "$1" | grep -q 'rates measured on 20' || fail "measured rates are not used"
times_line "$1" >line.txt; grep -q "$(sed -n 's/.*"measured": "\(.*\)".*/\1/p' config/loadline/rates.json)" line.txt || fail "another date"
"$1" plan ../xl --method per_tensor --json | grep -q '"measured": "20' || fail "no date in JSON"
"$1" plan ../xl --method per_tensor --rates assumed --json | grep -q '"measured": null' || fail "--rates assumed"
mv config/loadline/rates.json mine.json
"$1" plan ../xl --method per_tensor --rates mine.json --json | grep -q '"measured": "20' || fail "--rates FILE"

# a file that is wrong is left out where nobody asked for it, and an error where somebody did
echo '{"measured": "x", "disk_read": -1}' >config/loadline/rates.json
times_line "$1" 2>err.txt | grep -q 'assumed rates' || fail "a wrong file is used"
"$1" plan ../xl --method per_tensor 2>&1 >out.txt | grep -q "ignored: .*rates.json: line 1, .*'disk_read' is -1" || fail "not told"
"$1" plan ../xl --rates config/loadline/rates.json >out.txt 2>&1; [ $? -eq 1 ] || fail "a wrong file that was asked for"

# no driver: the machine around the device alone; its disk has been seen above
[ -w /dev/shm ] && disk=/dev/shm || disk=disk
VK_ICD_FILENAMES=/nonexistent VK_DRIVER_FILES=/nonexistent "$1" devices --measure --measure-dir $disk --json >out.txt || fail "without a driver: $?"
grep -q '"missing": "' out.txt || fail "nothing is missing without a driver"
grep -q '"memory_copy": ' out.txt || fail "no memory rate without a driver"
