#!/usr/bin/env bash
# For a pull request: format, validate, plan with a read-only token, review. Writes plan.bin and review.md into OUT.
source "$(dirname "$0")/common.sh"
tf fmt -check -recursive
init
tf validate
# A plan with a read-only token changes nothing; -lock=false because it writes no state.
tf plan -input=false -lock=false -var-file="$variables" -out="$out/plan.bin"
tf show -json "$out/plan.bin" | python3 "$here/review.py" | tee "$out/review.md"
