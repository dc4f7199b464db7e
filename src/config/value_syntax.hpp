// Defines values of flags that have a syntax of their own: deliberate faults for tests, `--inject
// KIND[:rank=R][:step=S][:milliseconds=M]`, and masks of CPUs as `srun --cpu-bind=mask_cpu:LIST`
// takes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace scalemark {

/// A deliberate fault, which is recorded and hashed.
struct Injection {
  std::string kind;
  std::int64_t rank = -1;   ///< -1: every rank
  std::int64_t step = 0;    ///< first step (0-based, counted from the first warm-up step)
  double milliseconds = 0;  ///< delay and busy: per step
};

const std::vector<std::string>& injection_kinds();

/// Parses a fault. Throws ConfigError without a place: unknown kind or field (with the nearest), a
/// number that is none, milliseconds missing for `delay` or `busy`, or given to another kind.
Injection parse_injection(std::string_view text);

/// Returns a text that parse_injection() reads back. Fields with their default are left out.
std::string to_string(const Injection& injection);

/// Returns the CPUs of each rank, ascending. "0xff,ff00*2" has those of three ranks: the masks are
/// hexadecimal, CPU 0 is the last bit, and "*2" gives the mask to two ranks. Throws ConfigError
/// with the number of the entry where one is no mask, is empty or has more than 1024 bits, and
/// where they are of more than 1024 ranks.
std::vector<std::vector<int>> parse_cpu_masks(std::string_view list);

}  // namespace scalemark
