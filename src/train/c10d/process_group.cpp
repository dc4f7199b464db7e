// Connects the ranks by c10d. They meet in a TCPStore of rank 0, whose address is sent by MPI; then
// Gloo or NCCL connects them. The torch wheel contains c10d but not the headers of Gloo: those of
// libgloo-dev declare the same types, of which only pointers are used here. libgloo itself is not
// linked.
#define USE_C10D_GLOO  // the setting with which LibTorch was built
#include "train/c10d/process_group.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <memory>
#include <set>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "error.hpp"
#include "measure/bus_bandwidth.hpp"
#include "platform/platform.hpp"
#include "train/c10d_reducer.hpp"

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

/// Returns a timeout above --timeout, so that the watchdog, which can name the rank, reports a hang
/// first.
C10dTimeout timeout_above(const Watchdog& watchdog) {
  constexpr double margin = 10, longest = 1e6;  // seconds
  return C10dTimeout(static_cast<long>(1e3 * (std::min(watchdog.timeout(), longest) + margin)));
}

/// Lets all ranks call `f` or leave together. What c10d cannot do before the run counts as an error
/// of the environment.
template <typename F>
void agree_to_connect(RankGroup& group, F f) {
  group.agree_on([&] {
    try {
      f();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& error) {
      throw EnvironmentError(
          fmt::format("--reducer c10d: the ranks cannot connect: {}. Several hosts: "
                      "GLOO_SOCKET_IFNAME names the "
                      "interface to use (see ip address).",
                      words_of(error)));
    }
  });
}

c10::intrusive_ptr<c10d::Store> meet(RankGroup& group, const std::string& address,
                                     C10dTimeout timeout) {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = group.rank() == 0;
  options.waitWorkers = false;
  options.timeout = timeout;
  options.useLibUV = false;  // some builds of LibTorch lack it
  c10::intrusive_ptr<c10d::TCPStore> store;
  agree_to_connect(group, [&] {
    if (group.rank() == 0) store = c10::make_intrusive<c10d::TCPStore>(address, options);
  });
  const std::string host = group.broadcast(address);
  const std::string port = group.broadcast(store ? std::to_string(store->getPort()) : "");
  agree_to_connect(group, [&] {
    if (group.rank() == 0) return;
    options.port = static_cast<std::uint16_t>(std::stoi(port));
    store = c10::make_intrusive<c10d::TCPStore>(host, options);
  });
  return store;
}

c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const c10::intrusive_ptr<c10d::Store>& store,
                                                    const RankGroup& group,
                                                    const std::string& address,
                                                    C10dTimeout timeout) {
  using Gloo = c10d::ProcessGroupGloo;
  const char* names = std::getenv("GLOO_SOCKET_IFNAME");
  auto options =
      names && *names ? Gloo::Options::create_default(timeout) : Gloo::Options::create(timeout);
  if (options->devices.empty()) options->devices.push_back(Gloo::createDeviceForHostname(address));
  return c10::make_intrusive<Gloo>(store, group.rank(), group.size(), options);
}

at::ScalarType scalar_type(DataType type) {
  switch (type) {
    case DataType::f64:
      return at::kDouble;
    case DataType::f32:
      return at::kFloat;
    case DataType::bf16:
      return at::kBFloat16;
    case DataType::f16:
      return at::kHalf;
    case DataType::i64:
      return at::kLong;
    case DataType::i32:
      return at::kInt;
    case DataType::u8:
      return at::kByte;
  }
  throw CommError("allreduce of an unknown data type");
}

class WorkPending : public Pending {
 public:
  explicit WorkPending(c10::intrusive_ptr<c10d::Work> work) : work_(std::move(work)) {}
  /// The buffer is written to until the operation is complete, so the destructor waits.
  ~WorkPending() override {
    try {
      wait();
    } catch (const std::exception&) {  // whoever wanted the sum would have called wait()
    }
  }
  void wait() override {
    if (std::exchange(waited_, true)) return;
    try {
      work_->wait();
    } catch (const std::exception& error) {
      throw CommError("allreduce failed: " + words_of(error));
    }
  }
  std::optional<OperationTimes> times() override { return std::nullopt; }

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  bool waited_ = false;
};

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

ProcessGroupCommunicator::ProcessGroupCommunicator(RankGroup& group, int cuda_device)
    : Communicator({.name = cuda_device < 0 ? "gloo" : "nccl", .size = group.size()}),
      cuda_device_(cuda_device) {
  const PhaseScope phase(group.watchdog(), "c10d start-up");
  const C10dTimeout timeout = timeout_above(group.watchdog());
  std::string address;
  group.agree_on([&] { address = own_address(group.local_size() == group.size()); });
  const auto store = meet(group, address, timeout);
  c10::intrusive_ptr<c10d::Backend> backend;
  agree_to_connect(group, [&] {
    backend = cuda_device < 0
                  ? make_gloo_backend(store, group, address, timeout)
                  : make_nccl_backend(store, group.rank(), group.size(), cuda_device, timeout);
  });
  const auto type = cuda_device < 0 ? c10d::ProcessGroup::BackendType::GLOO
                                    : c10d::ProcessGroup::BackendType::NCCL;
  process_group_ = c10::make_intrusive<c10d::ProcessGroup>(store, group.rank(), group.size());
  process_group_->setDefaultBackend(type);
  process_group_->setBackend(cuda_device < 0 ? at::kCPU : at::kCUDA, type, backend);
}

/// Destroys NCCL's group, which in its destructor would warn and abort. While an exception unwinds,
/// peers may be inside an operation that this rank will never join, so nothing waits for them.
ProcessGroupCommunicator::~ProcessGroupCommunicator() {
  try {
    if (cuda_device_ < 0) return;
    if (std::uncaught_exceptions() > 0)
      process_group_->abort();
    else
      process_group_->shutdown();
  } catch (const std::exception&) {  // a device that has failed: whoever works with it says so
  }
}

std::string ProcessGroupCommunicator::algorithm() const {
  return cuda_device_ < 0 ? "ring" : "chosen by NCCL (wire bytes as of a ring)";
}

std::int64_t ProcessGroupCommunicator::wire_bytes(std::int64_t bytes) const {
  return ring_allreduce_bytes(bytes, size());
}

std::unique_ptr<Pending> ProcessGroupCommunicator::start_allreduce(const Buffer& buffer, Stream) {
  auto options = at::TensorOptions().dtype(scalar_type(buffer.type));
  if (cuda_device_ >= 0)
    options = options.device(at::kCUDA, static_cast<c10::DeviceIndex>(cuda_device_));
  std::vector<at::Tensor> tensors{
      at::from_blob(buffer.data, {static_cast<std::int64_t>(buffer.count)}, options)};
  return std::make_unique<WorkPending>(process_group_->allreduce(tensors));
}

bool has_c10d() { return true; }

std::unique_ptr<Communicator> make_c10d_communicator(RankGroup& group, int cuda_device) {
  return std::make_unique<ProcessGroupCommunicator>(group, cuda_device);
}

}  // namespace scalemark
