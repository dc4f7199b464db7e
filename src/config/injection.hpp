// Deliberate faults for tests: `--inject KIND[:rank=R][:step=S][:milliseconds=M]`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/run_config.hpp"

namespace scalemark {

const std::vector<std::string>& injection_kinds();

/// Throws ConfigError without a place: unknown kind or field (with the nearest), a number that is
/// none, milliseconds missing for `delay` or `busy`, or given to another kind.
Injection parse_injection(std::string_view text);

/// What parse_injection() reads back; fields with their default are left out.
std::string to_string(const Injection& injection);

}  // namespace scalemark
