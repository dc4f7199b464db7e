// All rules in the order of docs/report.md, whose table is made from this one.
#include <array>

#include "analysis/diagnosis/rules.hpp"

namespace scalemark::diagnosis {
namespace {

constexpr std::array kRules{
    Rule{"scales", "", "scales, or does not, to N ranks",
         "efficiency of the largest point is at least 90 %, or below, and so is its whole "
         "interval; else \"may\"",
         "more ranks; a baseline; more repeats"},
    Rule{"link", "the link", "ranks wait for gradients",
         "exposed communication above 5 % of the step",
         "bf16 wire, overlap, a faster link, larger batches"},
    Rule{"small_batch", "small batch", "too little computing to hide communication",
         "the same, and communication takes longer than the rest of the step",
         "larger batches, gradient accumulation"},
    Rule{"small_share", "small batch per rank",
         "strong scaling: a small batch per rank computes less efficiently",
         "throughput without communication is below 95 % of ideal",
         "a larger global batch, fewer ranks"},
    Rule{"host", "the host", "weak scaling: ranks slow each other down without communication",
         "the same", "more cores or bandwidth per rank, binding"},
    Rule{"baseline", "a slow baseline", "the baseline is slower than the measurement",
         "throughput without communication is more than 5 % below that with it",
         "measure again; a quiet machine"},
    Rule{"dip", "a dip", "a point is worse than its neighbours suggest", "`trend.dip`",
         "placement, the allreduce"},
    Rule{"better_than_ideal", "a slow base", "look at the base",
         "the interval of the efficiency is above 105 %", "measure again"},
    Rule{"noise", "noise", "small differences are not shown",
         "a 95 % interval is wider than 10 % to each side",
         "more, longer repeats; a quiet machine"},
    Rule{"straggler", "a straggler",
         "a rank holds the others up; a note beside other processes, or where ranks take turns",
         "`ranks[].straggler`", "preflight on its host"},
    Rule{"input", "", "ranks wait for batches", "above 5 % of a step", "`--input device`"},
    Rule{"checkpoint", "", "checkpoints take time", "above 5 % of a step",
         "a longer interval, node writers"},
    Rule{"drift", "", "a run became slower or faster", "`windows.drift.verdict`",
         "clocks, other load, warm-up"},
    Rule{"diverged", "", "the loss diverged", "`loss.diverged`", "learning rate"},
    Rule{"server", "", "holds its latency bound, or does not", "`server.holds`",
         "another rate, more ranks"},
    Rule{"tail", "", "some queries take far longer", "p99 above 3 x p50",
         "load, clocks, the queue"},
    Rule{"neighbours", "", "jobs side by side slow each other down, or do not",
         "efficiency of the most jobs below 95 %", "other slots"},
    Rule{"compared", "", "faster, slower, or too few launches", "`points[].verdict`",
         "more repeats"},
    Rule{"gate", "", "regressed, pass, inconclusive", "`verdict`", "more pairs"},
    Rule{"history", "", "the newest set is slower, a change of level", "`newest`, `changes`",
         "a gate between both builds"},
    Rule{"projected", "", "the model held on unseen points, or did not",
         "all or not all of `errors.points` in the band", "more rank counts"},
    Rule{"study", "", "the published effect shows, or not every one does", "`figures[].verdict`",
         "more repeats, the full profile"},
    Rule{"preflight", "", "checks failed, on which node or between which two", "a check is `fail`",
         "mend the node, look at the link; beside other processes measure again"},
};

}  // namespace

std::span<const Rule> all_rules() { return kRules; }

}  // namespace scalemark::diagnosis
