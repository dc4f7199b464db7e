// What every engine command shares: the ranks, the device, the facts of the machine and where
// results go.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "comm/rank_group.hpp"
#include "config/run_config.hpp"
#include "measure/batch_search.hpp"
#include "measure/start_line.hpp"
#include "platform/platform.hpp"
#include "session/handover.hpp"
#include "train/device_backend.hpp"

namespace scalemark {

/// Made once a process. The constructor settles everything that can go wrong before a model is
/// built, in the order in which a user would want to hear of it, and all ranks leave together when
/// one of them fails: singletons behind a launcher (EnvironmentError), configuration that differs
/// between ranks (ConfigError), a --preflight that is none (ConfigError, ResultError), device, two
/// ranks on one GPU (EnvironmentError).
class Session {
 public:
  Session(LoadedConfig loaded, RankGroup world);

  const RunConfig& config() const { return loaded.config; }
  bool is_root() const { return world.rank() == 0; }
  /// One line on stderr, from rank 0 only.
  void say(const std::string& line) const;

  LoadedConfig loaded;  ///< a curve puts that of each of its points here
  RankGroup world;
  std::map<std::string, std::string>
      environment;  ///< of this process, whole; never recorded as it is
  Handover handover;
  SystemInfo system;
  Affinity affinity;
  std::unique_ptr<DeviceBackend> device;
  std::optional<BatchSearch> batch_search;  ///< of --batch_size max, once it is found
  Json preflight = nullptr;  ///< at rank 0: what records say of --preflight; null: none is named
  StartLine* start_line = nullptr;  ///< of `run` and `infer`; null: nowhere to wait

 private:
  void refuse_singletons() const;
  void compare_configurations();
  void read_preflight();
  void open_device();
};

/// "tcmalloc", "jemalloc" or "glibc": whose malloc this process runs on.
std::string allocator_name();

}  // namespace scalemark
