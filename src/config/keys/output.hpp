// Defines the keys of what is shown and where it is written, and of faults for tests.
#pragma once

#include "config/keys/group.hpp"
#include "config/text.hpp"
#include "config/value_syntax.hpp"

namespace scalemark {

enum class ProgressKind { text, jsonl };
constexpr auto names_of(ProgressKind) { return Names{"text", "jsonl"}; }

struct OutputSettings {
  std::optional<std::string> output;  ///< path of the record
  bool overwrite = false;             ///< a measurement that is there is not kept
  bool json = false;                  ///< the record on stdout, nothing else
  bool quiet = false;                 ///< no messages but warnings and errors
  std::int64_t display_every = 10;
  ProgressKind progress = ProgressKind::text;  ///< of what stderr says
  std::optional<std::string> openmetrics;      ///< path of a file for monitoring
  std::optional<std::string> mllog;            ///< path of a log as MLPerf's tools read
  std::optional<std::string> trace;            ///< path of a trace
  std::int64_t trace_steps = 3;
  bool timestamps = false;              ///< a timestamp before every console line
  bool dry_run = false;                 ///< print the plan and its memory, start nothing
  std::optional<double> device_memory;  ///< of a rank, GiB, for the plan
  std::optional<std::string> label;
  std::optional<std::string> preflight;  ///< path of a preflight's record, which the record names
  std::optional<Injection> inject;

  static void describe(auto& rows) {
    using S = OutputSettings;
    rows.group("Output", Role::output, kTraining);
    rows.add("output", &S::output, "FILE", "where the record is written")
        .otherwise("no file")
        .of(kEverywhere)
        .is(Trait::presentation)
        .often_used();
    rows.add("overwrite", &S::overwrite, "",
             "a finished measurement in the file of --output is replaced; without this it is kept "
             "as FILE.~1~, FILE.~2~, ...")
        .of(kEverywhere)
        .is(Trait::presentation);
    rows.add("json", &S::json, "", "the record on stdout, nothing else")
        .of(kEverywhere)
        .is(Trait::presentation)
        .often_used();
    rows.add("quiet", &S::quiet, "", "stderr has warnings and errors alone")
        .of(kEverywhere)
        .is(Trait::presentation);
    rows.add("display_every", &S::display_every, "N", "steps between two console lines")
        .in(1, 1e9)
        .of(kWithModel);
    rows.add("timestamps", &S::timestamps, "", "a timestamp before every console line")
        .of(kWithModel)
        .is(Trait::presentation);
    rows.add("progress", &S::progress, "FORM",
             "stderr in text, or as JSON objects, a line each, for programs")
        .of(kEverywhere)
        .is(Trait::presentation);
    rows.add("openmetrics", &S::openmetrics, "FILE",
             "rewritten every second with the state of the run, for node_exporter's textfile "
             "collector and other readers of OpenMetrics")
        .otherwise("no file")
        .of(kWithModel)
        .is(Trait::presentation);
    rows.add("mllog", &S::mllog, "FILE",
             "the run as lines of MLPerf's logging (:::MLLOG), once it is over")
        .otherwise("no file")
        .of({Command::run})
        .is(Trait::presentation);
    rows.add(
            "trace", &S::trace, "FILE",
            "after the measurement, a few more steps are recorded: operators, buckets and waits of "
            "every rank, for Perfetto and chrome://tracing")
        .otherwise("no file")
        .of(kWithModel)
        .is(Trait::presentation);
    rows.add("trace_steps", &S::trace_steps, "N", "of --trace: at most so many steps (or queries)")
        .in(1, 1000)
        .of(kWithModel)
        .is(Trait::presentation);
    rows.add("dry_run", &S::dry_run, "", "print batches, memory and bytes, start nothing")
        .is(Trait::presentation)
        .often_used();
    rows.add("device_memory", &S::device_memory, "GIB",
             "of each rank: --dry_run says whether the plan fits in it")
        .in(1e-3, 1e6)
        .otherwise("it does not say")
        .is(Trait::presentation);
    rows.add("label", &S::label, "TEXT", "free text kept in the record")
        .otherwise("no label")
        .of(kEverywhere);
    rows.add("preflight", &S::preflight, "FILE",
             "record of a preflight of these nodes: the result names it, and says where it warned "
             "or failed")
        .otherwise("none is named")
        .of(kWithModel);
    rows.group("Testing", Role::identity, kEverywhere);
    rows.add("inject", &S::inject, "KIND[:rank=R][:step=S][:milliseconds=M]",
             "a deliberate fault: " + join(injection_kinds(), ", "))
        .otherwise("no fault");
  }

  static void check(const auto& whole) {
    if (whole.given.device_memory && !whole.given.dry_run)
      whole.refuse("--device_memory is for the plan of --dry_run; add it, or leave it out");
    const auto& trace = whole.given.trace;
    if (trace && trace->ends_with(".gz"))
      whole.refuse("--trace {}: the file is plain JSON; leave .gz out, and pack it with gzip",
                   *trace);
  }
};

}  // namespace scalemark
