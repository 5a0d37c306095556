#!/bin/sh
# Ctrl-C while values are read: exit code 130, soon.  usage: interrupt_stats.sh LOADLINE MODEL (of many gigabytes)
set -u
# a shell starts background jobs with SIGINT ignored
env --default-signal=INT "$1" inspect "$2" --stats >/dev/null &
reader=$!
sleep 0.5
kill -INT $reader || { echo "it was over before it could be interrupted"; exit 1; }
start=$(date +%s)
wait $reader
code=$?
[ $code -eq 130 ] || { echo "exit code $code, expected 130"; exit 1; }
[ $(($(date +%s) - start)) -le 5 ] || { echo "it went on for seconds"; exit 1; }
