// See first_to_say.hpp.
#include "platform/first_to_say.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>

namespace scalemark {
namespace {

/// Ranks of a host and a launch have the same parent or the same namespace.
std::string launch_name() {
  for (const char* name : {"PMIX_NAMESPACE", "PMI_JOBID"})
    if (const char* value = std::getenv(name)) return value;
  return std::to_string(getppid());
}

}  // namespace

// An abstract socket, which the kernel forgets with its process.
bool is_first_to_say(const std::string& what) {
  const std::string name =
      fmt::format("scalemark-says-{}-{:x}", launch_name(), std::hash<std::string>{}(what));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data() + name.size() - length, length);
  const int held = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);  // until this process ends
  return held < 0 ||
         bind(held, reinterpret_cast<const sockaddr*>(&address),
              static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length)) == 0 ||
         errno != EADDRINUSE;
}

}  // namespace scalemark
