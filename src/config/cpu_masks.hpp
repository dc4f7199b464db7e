// Masks of CPUs as `srun --cpu-bind=mask_cpu:LIST` takes them.
#pragma once

#include <string_view>
#include <vector>

namespace scalemark {

/// Of "0xff,ff00*2" the CPUs of each of three ranks, ascending: hexadecimal, CPU 0 is the last bit,
/// "*2" is the mask of two ranks. Throws ConfigError with the number of the entry where one is no
/// mask, is empty or has more than 1024 bits, and where they are of more than 1024 ranks.
std::vector<std::vector<int>> parse_cpu_masks(std::string_view list);

}  // namespace scalemark
