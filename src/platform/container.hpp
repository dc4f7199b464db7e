// Describes the container that this process runs in, as told by whoever started it or as far as it
// can be detected.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "json.hpp"
#include "platform/platform.hpp"

namespace scalemark {

/// This variable tells ranks their container; its value is ContainerFacts::text().
inline constexpr const char* kContainerVariable = "SMK_INTERNAL_CONTAINER";

/// What is known about the container of this process.
struct ContainerFacts {
  std::string image, runtime;
  std::string digest;     ///< SHA-256; empty: unknown
  std::string no_digest;  ///< why it is
  std::string mpi;        ///< "outside" or "inside", where the launcher runs; empty: unknown

  std::string text() const;
};

/// Adds the key `container` to the system object of a record. `virtualisation` is the value of that
/// key of the same object.
void add_container(SystemInfo& info, const std::map<std::string, std::string>& environment,
                   const std::optional<std::string>& virtualisation);

}  // namespace scalemark
