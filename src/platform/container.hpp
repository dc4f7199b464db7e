// The container that this process runs in, as whoever started it says, or as far as it can be seen.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "json.hpp"
#include "platform/platform.hpp"

namespace scalemark {

/// Tells ranks what they were put into: ContainerFacts::text().
inline constexpr const char* kContainerVariable = "SMK_INTERNAL_CONTAINER";

struct ContainerFacts {
  std::string image, runtime;
  std::string digest;     ///< SHA-256; empty: unknown
  std::string no_digest;  ///< why it is
  std::string mpi;        ///< where the launcher is: "outside" or "inside"; empty: unknown

  std::string text() const;
};

/// `container` of the system of a record; `virtualisation` is that of the same.
void add_container(SystemInfo& info, const std::map<std::string, std::string>& environment,
                   const std::optional<std::string>& virtualisation);

}  // namespace scalemark
