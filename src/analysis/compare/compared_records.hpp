// Which records a comparison reads, and nodes as preflight measured them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "result/result_set.hpp"

namespace scalemark {

/// Of a preflight record with status ok: one a host, with the numbers of docs/preflight.md by
/// "CHECK.STATISTIC" ("gemm.fp32.flops"); of a statistic a rank the mean over the host's ranks.
/// What is of all hosts together, the collectives, has the first.
std::vector<MeasuredLaunch> preflight_launches(const Json& record,
                                               const std::filesystem::path& path);

/// Reads the kinds of records that may have one of the metrics; all others are left out.
RecordReader reader_of(const std::vector<std::string>& metrics);

}  // namespace scalemark
