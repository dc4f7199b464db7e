# Of the fault tests, which source it with `mpirun` and `program` set: runs a job, and looks at how it ended.
tag="scalemark-fault-$$"
output=$(mktemp)
trap 'rm -f "$output"' EXIT
failures=0

wrong() { echo "FAILED: $*"; failures=$((failures + 1)); }
left_behind() { pgrep -f "[ ]$tag" || true; }

# run NAME LIMIT_SECONDS RANKS ARGUMENT...: runs the job; its status in $status.
run() {
  name=$1
  echo "== $name"
  local start=$SECONDS limit=$2
  timeout -k 1 "$limit" "$mpirun" "$3" "$program" "${@:4}" "$tag" >"$output" 2>&1
  status=$?
  if [ $status = 124 ] || { [ $status = 137 ] && [ $((SECONDS - start)) -ge "$limit" ]; }; then
    wrong "$name: still running after $limit s"
  fi
  for _ in 1 2 3 4 5 6 7 8 9 10; do [ -z "$(left_behind)" ] && break; sleep 0.2; done
  [ -z "$(left_behind)" ] && return
  wrong "$name: processes left behind: $(left_behind | tr '\n' ' ')"
  left_behind | xargs -r kill -9
}
expect_status() { [ "$status" = "$1" ] || { wrong "$name: exit code $status, expected $1; its output:"; cat "$output"; }; }
expect_text() { grep -qE -- "$1" "$output" || { wrong "$name: no '$1' in:"; cat "$output"; }; }
expect_no_text() { ! grep -qE -- "$1" "$output" || { wrong "$name: '$1' in:"; cat "$output"; }; }
# expect_order FIRST THEN: where THEN stands, FIRST stands above it.
expect_order() {
  local first then
  first=$(grep -nE -m1 -- "$1" "$output" | cut -d: -f1) then=$(grep -nE -m1 -- "$2" "$output" | cut -d: -f1)
  [ -n "$first" ] && [ "$first" -lt "${then:-99999}" ] || { wrong "$name: '$1' does not come before '$2' in:"; cat "$output"; }
}
finish() {
  [ $failures = 0 ] && echo "all faults end as promised"
  exit $((failures > 0))
}
