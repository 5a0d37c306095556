#!/bin/sh
# Uploads under the validation layer's best-practices checks: every message must be on the allow-list
# beside this file.  usage: best_practices.sh LOADLINE MODEL
# Allowed: the reset flag of the command pool (buffers are recycled one by one, as their submissions end)
# and the debug extension that the messages themselves come through.
set -u
export VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_BEST_PRACTICES_EXT
for method in staged_ring state_dict sequential mmap_assign per_tensor cast_on_host cast_on_device; do
  report=$("$1" upload "$2" --method $method --verify --validation --json 2>/dev/null)
  case "$report" in
    *'"verified": true'*) ;;
    *) echo "$method: not verified"; echo "$report"; exit 1 ;;
  esac
  new=$(printf '%s' "$report" | grep -oE '(UNASSIGNED|VUID|SYNC|BestPractices)-[A-Za-z0-9_-]+' | sort -u | grep -vxFf "${0%.sh}.allow")
  [ -z "$new" ] || { echo "$method: $new"; printf '%s\n' "$report"; exit 1; }
done
