# shellcheck shell=bash
# Clocks of a node: what prolog and epilog beside it share. SYSFS and STATE are other folders in tests only.
# A governor or GPU that cannot be set is said and left: a prolog that fails takes its node out of service.

PATH=${PATH:+$PATH:}/usr/sbin:/usr/bin:/sbin:/bin  # Slurm gives a prolog none
SYSFS=${SYSFS:-/sys}
STATE=${STATE:-/run/scalemark-clocks}

say() { echo "scalemark clocks: $*" >&2; }

governors() {
  local file
  for file in "$SYSFS"/devices/system/cpu/cpufreq/policy*/scaling_governor; do
    if [[ -e $file ]]; then echo "$file"; fi
  done
}

gpu_clocks() { # FIELD: "UUID, MEMORY MHz, GRAPHICS MHz" of every GPU; nothing without a driver
  command -v nvidia-smi >/dev/null || return 0
  nvidia-smi --query-gpu="uuid,clocks.$1.memory,clocks.$1.graphics" --format=csv,noheader,nounits || true
}

set_governor() { # FILE GOVERNOR
  [[ $(<"$1") == "$2" ]] || echo "$2" 2>/dev/null >"$1" || say "$1 cannot be set to $2"
}

set_gpus() { # lines of gpu_clocks
  local uuid memory graphics
  while IFS=', ' read -r uuid memory graphics; do
    if [[ ! $memory$graphics =~ ^[0-9]+$ ]]; then continue; fi # "[N/A]": this GPU has no such clocks
    nvidia-smi -i "$uuid" -ac "$memory,$graphics" >/dev/null || say "$uuid cannot be set to $memory,$graphics MHz"
  done
}

save_clocks() { # to $STATE/found, whole or not at all
  local file
  {
    while IFS= read -r file; do echo "governor $file $(<"$file")"; done < <(governors)
    gpu_clocks applications | sed 's/^/gpu /'
  } >"$STATE/found.new"
  mv "$STATE/found.new" "$STATE/found"
}

fix_clocks() {
  local file
  while IFS= read -r file; do set_governor "$file" performance; done < <(governors)
  gpu_clocks max | set_gpus
}

restore_clocks() {
  local file governor
  while read -r _ file governor; do set_governor "$file" "$governor"; done < <(grep '^governor ' "$STATE/found")
  sed -n 's/^gpu //p' "$STATE/found" | set_gpus
  rm "$STATE/found"
}

# One job at a time changes them.
mkdir -p "$STATE/jobs" || exit 0
exec {lock}>"$STATE/lock"
flock "$lock"
