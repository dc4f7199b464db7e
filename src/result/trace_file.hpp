// A trace as a file in the Trace Event Format, which Perfetto and chrome://tracing open: a process
// is a rank, and all ranks' times lie on one axis.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "json.hpp"
#include "measure/rank_trace.hpp"
#include "result/records.hpp"

namespace scalemark {

/// The events of a rank, a line each, with commas between them. `on_axis` gives the place on the
/// common axis, s; it must not change the order of times. By thread and time, what holds others
/// before them.
std::string trace_events(const RankTrace& trace, int rank, const std::string& host,
                         const std::function<double(double seconds)>& on_axis);

/// The file, written rank by rank. It is in place, whole, after finish().
class TraceFile {
 public:
  /// Probes the place as ResultFile does. ResultError.
  explicit TraceFile(const std::filesystem::path& path) : file_(path, 1 << 20, "--trace") {}

  const std::filesystem::path& path() const { return file_.path(); }
  /// Events of trace_events(); of an empty text nothing.
  void add(std::string_view events);
  /// `about`: what readers show beside the events.
  void finish(const Json& about);

 private:
  ResultFile file_;
  bool begun_ = false, any_ = false;
};

}  // namespace scalemark
