#!/bin/sh
# Ctrl-C while values are read: exit code 130, and not much more is read.
# usage: interrupt_stats.sh LOADLINE MODEL (of 131 GiB)
set -u
bytes_read() { awk '/^rchar/ { print $2 }' "/proc/$reader/io" 2>/dev/null; }
# a shell starts background jobs with SIGINT ignored
env --default-signal=INT "$1" inspect "$2" --stats >/dev/null &
reader=$!
until [ "$(bytes_read)" -gt 268435456 ]; do
  kill -0 $reader || { echo "it was over before it could be interrupted"; exit 1; }
done
kill -INT $reader || { echo "it was over before it could be interrupted"; exit 1; }
read=0
while ! grep -q '^State:.Z' "/proc/$reader/status" && now=$(bytes_read) && [ -n "$now" ]; do
  read=$now
done 2>/dev/null
wait $reader
code=$?
[ $code -eq 130 ] || { echo "exit code $code, expected 130"; exit 1; }
[ "$read" -lt 68719476736 ] || { echo "it went on for $read bytes"; exit 1; }
