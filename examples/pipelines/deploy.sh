#!/usr/bin/env bash
# After the merge: plan, review, apply exactly that plan, and wait until every query has caught up.
source "$(dirname "$0")/common.sh"
init
tf plan -input=false -var-file="$variables" -out="$out/plan.bin"
tf show -json "$out/plan.bin" | python3 "$here/review.py" | tee "$out/review.md"
tf apply -input=false "$out/plan.bin"
leat query wait --max-lag "${MAX_LAG:-1000}" --timeout "${TIMEOUT:-900}"
