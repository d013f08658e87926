#!/usr/bin/env bash
# steps.sh - tests/gpu/steps.sh without a GPU: what is counted when a step passes, fails, takes longer than it may, or is
# cut short by the deadline of all.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
log=$(mktemp -d)
trap 'rm -rf "$log"' EXIT
budget=100
. tests/gpu/steps.sh
right=0 wrong=0

# expect WHAT PASSED FAILED SKIPPED: the counts so far, which begin again.
expect() {
  if [ "$passed $failed $skipped" = "$2 $3 $4" ]; then right=$((right + 1)); else
    wrong=$((wrong + 1))
    echo "$1: $passed passed, $failed failed, $skipped skipped"
  fi
  passed=0 failed=0 skipped=0
}

# begun FILE…: are these commands begun, and no others?
begun() {
  [ "$(cd "$log" && echo *.begun)" = "$*" ] && right=$((right + 1)) && return
  wrong=$((wrong + 1))
  echo "begun, not only $*: $(ls "$log")"
}

step 60 "passes" true
expect "a step that passes" 1 0 0
step 60 "counts" echo "4 passed, 0 failed, 2 skipped"
expect "a step that counts" 4 0 2
step 60 "fails" bash -c 'echo "4 passed, 0 failed, 2 skipped"; exit 1'
expect "a step that fails" 4 1 2
step 1 "slow" sleep 20
expect "a step that runs over its own limit" 0 1 0

# holds TEXT: does $log/kept have this text?
holds() {
  [ "$(cat "$log/kept")" = "$1" ] && right=$((right + 1)) && return
  wrong=$((wrong + 1))
  echo "kept has '$(cat "$log/kept")', not '$1'"
}

kept 60 "is kept" "$log/kept" echo "one word"
expect "a step whose output is kept" 1 0 0
holds "one word"
kept 60 "fails" "$log/kept" bash -c 'echo half; exit 1'
expect "a step that fails behind half of its output" 0 1 0
kept 1 "is slow" "$log/kept" bash -c 'echo half; sleep 20'
expect "a step that is cut short behind half of its output" 0 1 0
holds "one word"

files=(a.sched b.sched)
each 60 every 2 bash -c "'touch $log/{}.begun; test {} = a.sched'"
expect "a step for each file" 1 1 0
begun a.sched.begun b.sched.begun

deadline=$((EPOCHSECONDS + 5))
files=(ends.sched ignores.sched)  # when it is told to
each 60 cut 2 bash -c "'[ {} = ends.sched ] || trap \"\" TERM; echo 4 passed, 0 failed, 2 skipped; sleep 20'"
expect "steps that the deadline cuts short" 8 0 6
step 60 "late" touch "$log/late.begun"
expect "a step without time" 0 0 1
files=(c.sched d.sched)
each 60 late 2 touch "$log/{}.begun"
expect "a step for each file without time" 0 0 2
begun a.sched.begun b.sched.begun

passed=1 skipped=1
count >/dev/null && right=$((right + 1)) || wrong=$((wrong + 1))
failed=1
count >/dev/null && wrong=$((wrong + 1)) || right=$((right + 1))
echo "$right passed, $wrong failed, 0 skipped"
[ "$wrong" -eq 0 ]
