// What preflight tells a person: formats what the record says.
#pragma once

#include <string>

#include "result/records.hpp"

namespace scalemark {

/// Numbers of every rank, collectives, checks (those that did not pass first to be seen: with their
/// message), verdict. Ends with a newline.
std::string preflight_table(const Json& record);

/// Rank, host, cores, NUMA nodes, threads, GPU, binding asked for and achieved; then what is wrong.
std::string pinning_table(const Json& record);

}  // namespace scalemark
