# What each compiled or linked file of a build will take: "FILE<tab>SECONDS" a line.
#   ninja -t commands TARGET... | awk -f scripts/compile_weights.awk what=table scripts/compile_seconds \
#     [what=log .ninja_log] what=commands -
# A file that the log knows takes what it took last; another one its share of its target's row in the table. An object's
# name holds its target's: src/CMakeFiles/scalemark_core.dir/unit.cpp.o. A link takes a second.
what == "table" && /^[a-z]/ { of_target[$2] = $3 }
what == "log" && NF == 5 { last[$4] = ($2 - $1) / 1000 }
what == "commands" && match($0, / -o [^ ]+/) {
  file = substr($0, RSTART + 4, RLENGTH - 4)
  if (file in target) next
  target[file] = ""
  if (match(file, /CMakeFiles\/[^\/]+\.dir\//)) {
    target[file] = substr(file, RSTART + 11, RLENGTH - 16)
    files[target[file]]++
  }
}
END {
  for (file in target) {
    name = target[file]
    seconds = name == "" ? 1 : (name in of_target) ? of_target[name] / files[name] : 3
    printf "%s\t%.2f\n", file, (file in last) ? last[file] : seconds
  }
}
