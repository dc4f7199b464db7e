# For scripts that take minutes (sourced): how long it will take, and a bar with the time left, redrawn every second on a
# terminal, elsewhere a line every 30 seconds.
#   progress_plan SECONDS...   what the stages to come are expected to take, in their order
#   progress_stage WHAT        the next stage of the plan begins
#   progress_stop              no bar from here on
#   progress_say TEXT          a line with the time since the start, beside the bar
# shellcheck shell=bash disable=SC2034
progress_stages=() progress_bar=

spoken_time() { # SECONDS
  if (($1 < 90)); then echo "$1 s"; else echo "$(($1 / 60)) min $(($1 % 60)) s"; fi
}

progress_plan() {
  progress_stages=("$@")
}

progress_left() { # the sum of what is still to come
  local seconds sum=0
  for seconds in "${progress_stages[@]}"; do sum=$((sum + seconds)); done
  echo "$sum"
}

progress_stage() {
  progress_stop
  ((${#progress_stages[@]} > 0)) || return 0
  local pause=30 begin=$SECONDS expected=${progress_stages[0]} later
  if [[ -t 2 ]]; then pause=1; fi
  progress_stages=("${progress_stages[@]:1}")
  later=$(progress_left)
  # It ends with its parent, however that ends, and holds none of its locks. Waiting is a read of nothing: a child that
  # sleeps would outlive it and keep a reader of our output waiting.
  {
    exec {nothing}<> <(:)
    while kill -0 "$$" 2>/dev/null; do
      read -rt "$pause" -u "$nothing" || progress_draw "$1" $((SECONDS - begin)) "$expected" "$later"
    done
  } 9>&- &
  progress_bar=$!
}

# A stage that takes longer than expected is all but done for as long as it takes.
progress_draw() { # WHAT ELAPSED EXPECTED LATER
  local left=$(($3 - $2)) least=$(($3 / 20 + 1)) filled line
  if ((left < least)); then left=$least; fi
  left=$((left + $4))
  printf -v filled '%*s' $((20 * SECONDS / (SECONDS + left))) ''
  printf -v line '%-20s' "${filled// /#}"
  line="[setup $(printf %4d "$SECONDS") s] [${line// /-}] about $(spoken_time "$left") left: $1"
  if [[ -t 2 ]]; then printf '\r\033[K%s' "$line" >&2; else printf '%s\n' "$line" >&2; fi
}

progress_stop() {
  [[ -n $progress_bar ]] || return 0
  kill "$progress_bar" 2>/dev/null || true
  wait "$progress_bar" 2>/dev/null || true
  progress_bar=
  if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
}

progress_say() {
  if [[ -n $progress_bar && -t 2 ]]; then printf '\r\033[K' >&2; fi
  printf '[setup %4d s] %s\n' "$SECONDS" "$*" >&2
}

# What a build from scratch takes, for estimates alone, and how much of it at once.
readonly FRONT_DOOR_CPU_SECONDS=150 ENGINE_CPU_SECONDS=220
default_jobs() { # a LibTorch file takes up to 2 GiB to compile
  local by_memory by_cpu
  by_memory=$(awk '/^MemAvailable/ {print int($2 / 2097152)}' /proc/meminfo)
  by_cpu=$(nproc)
  echo $((by_memory < 1 ? 1 : by_memory < by_cpu ? by_memory : by_cpu))
}
