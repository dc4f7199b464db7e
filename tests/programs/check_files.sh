#!/usr/bin/env bash
# What the repository holds: no source longer than 700 lines, no binary, no carriage return, no absolute home path, and at
# its top only what belongs there.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
if git ls-files >/dev/null 2>&1; then
  mapfile -t files < <(git ls-files --cached --others --exclude-standard)
else
  mapfile -t files < <(find . -type f -not -path './.git/*' -not -path './build/*' -not -path './.venv/*' -not -path './results/*')
fi
((${#files[@]} > 50)) || { echo "found only ${#files[@]} files"; exit 1; }
top=" .ci .clang-format .clang-tidy .containerignore .gitignore CHANGELOG.md CMakeLists.txt CMakePresets.json CONTRIBUTING.md
 LICENSE README.md bench cmake configs docs lab models results scripts src tests "
failed=0
for file in "${files[@]}"; do
  [[ -f $file ]] || continue
  [[ $top =~ [[:space:]]"${file%%/*}"[[:space:]] ]] || { echo "$file: does not belong at the top"; failed=1; }
  case $file in
    *.png | *.svg) continue ;;
    *.cpp | *.hpp | *.py | *.sh | *.cmake | *CMakeLists.txt | scripts/* | lab/*)
      lines=$(wc -l <"$file")
      ((lines <= 700)) || { echo "$file: $lines lines, more than 700"; failed=1; } ;;
  esac
  [[ ! -s $file ]] || LC_ALL=C grep -qI . "$file" || { echo "$file: binary"; failed=1; }
  ! LC_ALL=C grep -q $'\r' "$file" || { echo "$file: carriage returns"; failed=1; }
done
((failed)) || echo "${#files[@]} files"
exit $failed
