# How long a build will still take, in tenths of a second.
#   awk -v jobs=J -v elapsed=SECONDS -f scripts/compile_left.awk what=weights WEIGHTS what=before LOG \
#     what=now LOG what=said OUTPUT
# WEIGHTS: of compile_weights.awk. LOG: ninja's .ninja_log before the build and by now. OUTPUT: what ninja has said,
# "[DONE/ALL] Building ... FILE" for each finished step.
what == "weights" { weight[$1] = $2; left += $2; open++ }
what == "before" { old[$0] }
what == "now" && NF == 5 && !($0 in old) {
  if (!(($1, $2, $5) in step)) taken += ($2 - $1) / 1000  # one of several outputs
  step[$1, $2, $5]
  if (!($4 in weight) || ($4 in finished)) next
  finished[$4]
  weighed += ($2 - $1) / 1000
  done += weight[$4]
  left -= weight[$4]
  open--
}
what == "said" && /^\[[0-9]+\/[0-9]+\]/ && !/\] Re-(checking|running)/ {
  split(substr($0, 2, index($0, "]") - 2), count, "/")
}
END {
  prior = (done + left) / 10  # until a tenth is done, the weights count too, as of a machine that they fit
  steps = count[2] ? count[2] - count[1] : open
  # Of a build that is not from scratch nobody knows the files to come, only their number.
  if (steps < open || steps > 2 * open + 10) left *= open > 0 ? steps / open : 0
  running = steps < jobs ? (steps > 0 ? steps : 1) : jobs
  slowness = done + prior > 0 ? (weighed + prior) / (done + prior) : 1
  # What of their time the jobs have not spent on finished files, they have spent on those that are being compiled.
  begun = slowness > 0 ? (jobs * elapsed - taken) / slowness : 0
  if (begun < 0) begun = 0
  if (begun > 0.95 * left) begun = 0.95 * left
  printf "%d\n", 10 * (left - begun) * slowness / running + 0.5
}
