# steps.sh - sourced by tests/gpu/run: steps with a limit each and one deadline for all, their logs, and the count.
# A step that runs over its own limit has failed. One for which the deadline leaves no time, or which the deadline cuts
# short, is skipped: what it had counted until then still counts.
# The sourcing script sets `log` (a folder), `budget` (seconds from now on) and, for `each`, `files`.
deadline=$((EPOCHSECONDS + budget))
passed=0 failed=0 skipped=0 skips=()

skip() {
  echo "$1: skipped: $2"
  skips+=("$1: $2")
  skipped=$((skipped + 1))
}

# timed SECONDS FILE COMMAND…: what it says goes to FILE, how it ended and its seconds to FILE.end. `over`: the deadline.
timed() {
  local own=$1 file=$2 limit=$((deadline - EPOCHSECONDS)) end=over begun=$SECONDS
  shift 2
  [ "$limit" -gt "$own" ] && limit=$own
  : >"$file"  # what an earlier run left there is not of this one
  if [ "$limit" -ge 5 ] || [ "$limit" -eq "$own" ]; then
    timeout -k 5 "$limit" "$@" >"$file" 2>&1
    end=$?
    if [ "$end" -eq 137 ] && [ "$EPOCHSECONDS" -ge "$deadline" ]; then end=124; fi  # killed: it did not end when told to
    if [ "$end" -eq 124 ] && [ "$limit" -lt "$own" ]; then end=over; fi
  fi
  echo "$end $((SECONDS - begun))" >"$file.end"
}

# A step's log says "N passed, N failed, N skipped" (all such lines count), or how it ended does.
report() {
  local name=$1 file=$2 end seconds p f s why=
  read -r end seconds <"$file.end"
  read -r p f s < <(grep -aoE '[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped' "$file" |
    awk '{ p += $1; f += $3; s += $5 } END { print p + 0, f + 0, s + 0 }')
  case $end in
    0) [ $((p + f + s)) -gt 0 ] || p=1 ;;
    over) s=$((s + 1)) why="the $budget s are over" ;;
    *)
      [ "$f" -gt 0 ] || f=1
      [ "$end" -ne 124 ] || why="TIMED OUT"
      ;;
  esac
  [ "$end" != over ] || skips+=("$name: $why")
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  printf '%-36s %5d passed %4d failed %4d skipped  %4ds%s\n' "$name" "$p" "$f" "$s" "$seconds" "${why:+  $why}"
  if [ "$f" -gt 0 ]; then grep -av '^  skipped:' "$file" | tail -25 | sed 's/^/    /'; fi
}

# step SECONDS NAME COMMAND…
step() {
  local file="$log/${2//[ \/]/-}.log"
  timed "$1" "$file" "${@:3}"
  report "$2" "$file"
}

# kept SECONDS NAME FILE COMMAND…: what it says replaces FILE once it has ended well. Until then FILE is what it was.
kept() {
  local part="$log/${2//[ \/]/-}.part"
  step "$1" "$2" bash -c '"${@:3}" >"$1" && mv "$1" "$2"' - "$part" "$3" "${@:4}"
}

# each SECONDS NAME JOBS COMMAND…: the command with each of `files` for {}, JOBS at a time, each with its limit.
each() {
  local limit=$1 name=$2 jobs=$3 file
  shift 3
  printf '%s\n' "${files[@]}" | NAME=$name LOG=$log xargs -P "$jobs" -I{} \
    bash -c "timed $limit \"\$LOG/\$NAME-\$(basename {} .sched).log\" $*"
  for file in "${files[@]}"; do
    file=$(basename "$file" .sched)
    report "$name $file" "$log/$name-$file.log"
  done
}

# The last line, and whether nothing failed.
count() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" -eq 0 ]
}

export deadline
export -f timed  # for `each`
