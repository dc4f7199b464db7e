#!/usr/bin/env bash
# check_documentation.sh FRONT_DOOR: what README, CONTRIBUTING, configs/, docs/ and lab/ tell the reader to type exists:
# scripts are executable, subcommands answer --help, configuration and source files and linked pages are there.
set -uo pipefail
front_door=$1
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
mapfile -t pages < <(find README.md CONTRIBUTING.md configs docs lab -name '*.md')
((${#pages[@]} >= 2)) || { echo "README.md or CONTRIBUTING.md is missing"; exit 1; }
failed=0 checked=0
complain() { echo "$1"; failed=1; }
mentioned() { grep -ohE "$1" "${pages[@]}" | sort -u; }

while IFS= read -r script; do
  checked=$((checked + 1))
  if [[ $script == scripts/slurm* || $script == scripts/packaging* || $script == lab/tests* ]]; then  # files that ctest runs, or to copy
    [[ -e $script ]] || complain "$script is mentioned, but does not exist"
  else
    [[ -x $script || -d $script ]] || complain "$script is mentioned, but is neither an executable script nor a folder"
  fi
done < <(mentioned '\b(scripts|lab)/[a-z_]+(/[a-z_]+)*(\.[a-z]+)?')
while IFS= read -r subcommand; do
  checked=$((checked + 1))
  "$front_door" "$subcommand" --help >/dev/null 2>&1 || complain "scalemark $subcommand --help fails"
done < <(mentioned '\./scalemark [a-z]+' | cut -d' ' -f2 | sort -u)
while IFS= read -r config; do
  checked=$((checked + 1))
  [[ -f $config ]] || complain "$config is mentioned, but does not exist"
done < <(mentioned '\bconfigs/[a-z0-9_/]+\.json')
while IFS= read -r source; do
  checked=$((checked + 1))
  [[ -f $source ]] || complain "$source is mentioned, but does not exist"
done < <(mentioned '\b(src|models|bench|tests|lab|cmake)/[A-Za-z0-9_/]+\.(cpp|hpp|inc|py|sh|json|md|txt|cmake)\b' | grep -vE '(NAME|MODEL)')
for page in "${pages[@]}"; do
  while IFS= read -r link; do
    checked=$((checked + 1))
    [[ -e $(dirname "$page")/${link%%#*} ]] || complain "$page links to $link, which does not exist"
  done < <(grep -oE '\]\([^)]+\)' "$page" | sed 's/^](//; s/)$//' | grep -vE '^(https?:|#)')
done
((checked >= 5)) || complain "only $checked mentions found"
((failed)) || echo "$checked mentions checked in ${#pages[@]} pages"
exit $failed
