# For scripts that take minutes (sourced, in the repository's root): how long it will take, and a bar with the time left,
# redrawn every second on a terminal, elsewhere a line every 30 seconds. The time left never rises: where it was too short
# it goes down more slowly than the clock.
#   progress_plan SECONDS...   what the stages to come are expected to take, in their order
#   progress_stage WHAT        the next stage of the plan begins
#   progress_compiling WHAT FOLDER NINJA_LOG JOBS
#                              the next stage too; its time left is that of compile_left.awk, of compile_weights and
#                              compile_before in the folder, and of build.log there from its end on
#   progress_stop              no bar from here on
#   progress_say TEXT          a line with the time since the start, beside the bar
# progress_state: a file that keeps the time left from stage to stage.
# shellcheck shell=bash disable=SC2034
progress_stages=() progress_bar= progress_state=/dev/null

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

progress_stage() { # WHAT
  ((${#progress_stages[@]} > 0)) || return 0
  progress_begin "$1" progress_left_by_time "${progress_stages[0]}"
}

progress_compiling() { # WHAT FOLDER NINJA_LOG JOBS
  progress_begin "$1" progress_left_by_steps "${@:2}" $(($(wc -l <"$2/build.log") + 1))
}

progress_begin() { # WHAT FUNCTION [WORD...]: the function says what is left of the stage, in tenths of a second
  progress_stop
  local what=$1 pause=30 begin=$SECONDS last=$SECONDS shown=
  shift
  if [[ -t 2 ]]; then pause=1; fi
  progress_stages=("${progress_stages[@]:1}")
  # It ends with its parent, however that ends, and holds none of its locks. Waiting is a read of nothing: a child that
  # sleeps would outlive it and keep a reader of our output waiting.
  {
    shown=$(cat "$progress_state" 2>/dev/null) || true
    exec {nothing}<> <(:)
    while kill -0 "$$" 2>/dev/null; do
      read -rt "$pause" -u "$nothing" && continue
      shown=$(progress_lower "${shown:-0}" $(($("$@" $((SECONDS - begin))) + 10 * $(progress_left))) $((SECONDS - last)))
      last=$SECONDS
      { echo "$shown" >"$progress_state"; } 2>/dev/null || true
      progress_draw "$what" $(((shown + 5) / 10))
    done
  } 9>&- &
  progress_bar=$!
}

# A stage that takes longer than expected has a quarter of that time left, for as long as it takes.
progress_left_by_time() { # EXPECTED ELAPSED
  local left=$((10 * ($1 - $2))) least=$((10 * $1 / 4))
  echo $((left > least ? left : least))
}

progress_left_by_steps() { # FOLDER NINJA_LOG JOBS LINE ELAPSED
  tail -n "+$4" "$1/build.log" | awk -v jobs="$3" -v elapsed="$5" -f scripts/compile_left.awk \
    what=weights "$1/compile_weights" what=before "$1/compile_before" what=now "$2" what=said -
}

# What is shown next, in tenths of a second: what is left, but less than was shown by an eighth of the seconds that have
# passed; so it stays below what is left until both meet. SHOWN is 0 where nothing was.
progress_lower() { # SHOWN LEFT PASSED
  local next=$2 most=$(($1 - 10 * $3 / 8))
  if (($1 > 0 && next > most)); then next=$most; fi
  echo $((next < 10 ? 10 : next))
}

progress_draw() { # WHAT LEFT
  local filled line
  printf -v filled '%*s' $((20 * SECONDS / (SECONDS + $2))) ''
  printf -v line '%-20s' "${filled// /#}"
  line="[setup $(printf %4d "$SECONDS") s] [${line// /-}] about $(spoken_time "$2") left: $1"
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
compile_seconds() { # PART...: CPU-seconds
  awk -v parts=" $* " 'index(parts, " " $1 " ") { sum += $3 } END { print sum + 0 }' scripts/compile_seconds
}
default_jobs() { # a LibTorch file takes up to 3 GiB to compile
  local by_memory by_cpu
  by_memory=$(awk '/^MemAvailable/ {print int($2 / 3145728)}' /proc/meminfo)
  by_cpu=$(nproc)
  echo $((by_memory < 1 ? 1 : by_memory < by_cpu ? by_memory : by_cpu))
}
