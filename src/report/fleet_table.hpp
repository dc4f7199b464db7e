// The hosts of a preflight beside each other.
#pragma once

#include <string>

#include "json.hpp"

namespace scalemark {

/// What each host reaches, as its worst rank has it, and the fraction of the median of all hosts;
/// the worst host first, and no more than 30. Empty for one host.
std::string fleet_table(const Json& record);

}  // namespace scalemark
