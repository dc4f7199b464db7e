#!/usr/bin/env bash
# Every shell and Python script parses, the batch templates included; shellcheck, where it is installed, finds nothing.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
failed=0 shell=(scripts/slurm/site.conf) python=()
while IFS= read -r file; do
  case $(head -n 1 "$file" | tr -d '\0') in
    '#!'*bash*) shell+=("$file") ;;
    '#!'*python*) python+=("$file") ;;
    '#!'*) echo "$file: neither bash nor python in its first line"; failed=1 ;;
  esac
  [[ $(head -c 2 "$file" | tr -d '\0') != '#!' || -x $file || $file == *.py ]] || { echo "$file: not executable"; failed=1; }
done < <(find scripts lab tests .ci -type f)
python+=(scripts/packaging/spack/packages/scalemark/package.py)
((${#shell[@]} >= 5 && ${#python[@]} >= 3)) || { echo "found too few scripts: ${shell[*]} ${python[*]}"; exit 1; }
for file in "${shell[@]}"; do bash -n "$file" || failed=1; done
python3 - "${python[@]}" <<'PY' || failed=1
import ast, sys
for path in sys.argv[1:]:
    ast.parse(open(path, encoding="utf-8").read(), path)
PY
if command -v shellcheck >/dev/null; then shellcheck -x --source-path=SCRIPTDIR "${shell[@]}" || failed=1; else echo "shellcheck is not installed"; fi
echo "${#shell[@]} shell and ${#python[@]} Python scripts"
exit $failed
