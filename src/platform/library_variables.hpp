// Variables by which users tune the libraries of communication and of threads, by the first letters
// of their names: the one list for what records show, what is compared, and what reaches ranks on
// other hosts.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace scalemark {

inline constexpr auto kCommunicationVariables = std::to_array<std::string_view>(
    {"NCCL_", "GLOO_", "OMPI_MCA_", "UCX_", "HCOLL_", "SHARP_", "FI_", "PSM2_"});
inline constexpr auto kThreadVariables =
    std::to_array<std::string_view>({"OMP_", "KMP_", "GOMP_", "MKL_"});

inline bool begins_with_one_of(std::string_view name, const auto& prefixes) {
  return std::ranges::any_of(prefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

inline bool is_communication_variable(std::string_view name) {
  return begins_with_one_of(name, kCommunicationVariables);
}

inline bool is_library_variable(std::string_view name) {
  return is_communication_variable(name) || begins_with_one_of(name, kThreadVariables);
}

}  // namespace scalemark
