// Finds the address under which peers reach a rank, and formats c10d's errors.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <vector>

#include "error.hpp"
#include "platform/platform.hpp"
#include "train/c10d/process_group.hpp"

namespace scalemark {
namespace {

struct Interface {
  std::string name, address;
  bool loopback;
};

std::string text_of(const sockaddr* address) {
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text, sizeof text);
  return text;
}

/// Returns the interfaces that are up and have an IPv4 address, in the order of the kernel.
std::vector<Interface> interfaces() {
  std::vector<Interface> found;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return found;
  for (const ifaddrs* it = first; it; it = it->ifa_next)
    if (it->ifa_addr && it->ifa_addr->sa_family == AF_INET && (it->ifa_flags & IFF_UP))
      found.push_back({it->ifa_name, text_of(it->ifa_addr), (it->ifa_flags & IFF_LOOPBACK) != 0});
  freeifaddrs(first);
  return found;
}

std::set<std::string> addresses_of(const std::string& host) {
  std::set<std::string> found;
  addrinfo hints{}, *first = nullptr;
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &first) != 0) return found;
  for (const addrinfo* it = first; it; it = it->ai_next) found.insert(text_of(it->ai_addr));
  freeaddrinfo(first);
  return found;
}

}  // namespace

std::string own_address(bool one_host) {
  const std::vector<Interface> all = interfaces();
  if (const char* names = std::getenv("GLOO_SOCKET_IFNAME"); names && *names) {
    const std::string name = std::string(names).substr(0, std::string(names).find(','));
    for (const Interface& interface : all)
      if (interface.name == name) return interface.address;
    throw EnvironmentError(
        fmt::format("GLOO_SOCKET_IFNAME={}: host {} has no interface \"{}\" that is up and has an "
                    "IPv4 address (see ip address)",
                    names, host_name(), name));
  }
  if (one_host) return "127.0.0.1";
  // Many hosts give their own name a loopback address, which no other host can reach.
  std::vector<std::string> reachable;
  for (const Interface& interface : all)
    if (!interface.loopback) reachable.push_back(interface.address);
  for (const std::string& address : addresses_of(host_name()))
    if (std::find(reachable.begin(), reachable.end(), address) != reachable.end()) return address;
  return reachable.empty() ? host_name() : reachable.front();
}

}  // namespace scalemark
