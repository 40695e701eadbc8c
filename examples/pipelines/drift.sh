#!/usr/bin/env bash
# Every night: exit status 1 if something differs from the configuration, or a query has failed.
source "$(dirname "$0")/common.sh"
init
status=0
tf plan -input=false -lock=false -detailed-exitcode -var-file="$variables" -out="$out/plan.bin" || status=$?
[ "$status" -ne 1 ] || exit 1
if [ "$status" -eq 2 ]; then
  tf show -json "$out/plan.bin" | python3 "$here/review.py" | tee "$out/review.md" || true
  echo "$environment differs from its configuration." >&2
  exit 1
fi
echo "$environment is as configured."
