// Holds what every engine command shares: the ranks, the device, the facts of the machine and where
// results go.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/rank_group.hpp"
#include "platform/platform.hpp"
#include "rendezvous/start_barrier.hpp"
#include "result/handover.hpp"
#include "result/record_context.hpp"
#include "train/device_backend.hpp"

namespace scalemark {

/// Is made once per process. The constructor settles everything that can go wrong before a model is
/// built, in the order in which a user would want to hear of it, and all ranks leave together when
/// one of them fails. It refuses singletons behind a launcher (EnvironmentError), configuration
/// that differs between ranks (ConfigError), a --preflight that is not a record of one
/// (ConfigError, ResultError), a device that cannot be used, and two ranks on one GPU
/// (EnvironmentError).
class Session {
 public:
  Session(LoadedConfig loaded, RankGroup world);

  const ResolvedConfig& config() const { return loaded.config; }
  bool is_root() const { return world.rank() == 0; }
  /// Returns what every record of this session says. `measured` is the configuration that the
  /// record is about.
  RecordContext record_context(LoadedConfig measured) const;
  /// Prints one line on stderr, from rank 0 only.
  void say(const std::string& line) const;
  int cpus_of_host() const;  ///< logical ones that are online; 0: unknown
  /// Returns the noise counters of this rank and its host. Processes that are measured beside this
  /// one count as ours.
  NoiseSnapshot noise_now() const;
  /// Prints a warning, which also stands in every record made from now on.
  void warn(const std::string& warning);
  /// Prints a warning once, however often it is called with it.
  void warn_once(const std::string& warning);
  /// The record of the command is where it belongs: whatever becomes of ranks from now on costs
  /// neither it nor its exit code.
  void settle(ExitCode code) {
    handover.publish_exit_code(code);
    settled_ = true;
  }
  bool is_settled() const { return settled_; }
  /// world.agree_on() of what reads or writes files at rank 0, which may take longer than
  /// --timeout.
  template <typename F>
  void agree_on_files(const F& work) {
    const StoragePhase phase(world.watchdog());
    world.agree_on(work);
  }

  const LoadedConfig loaded;          ///< the configuration of the whole command
  std::vector<std::string> warnings;  ///< that the user has been told
  RankGroup world;
  std::vector<std::string> hosts;  ///< by rank
  std::map<std::string, std::string>
      environment;  ///< of this process, complete; never recorded as it is
  Handover handover;
  SystemInfo system;
  Affinity affinity;
  std::unique_ptr<DeviceBackend> device;
  std::optional<record::PreflightReference> preflight;  ///< of --preflight, at rank 0
  StartBarrier* start_barrier = nullptr;  ///< of `run` and `infer`; null: nowhere to wait

 private:
  void refuse_singletons() const;
  void refuse_other_world() const;
  void tell_of_patient_srun() const;
  void compare_configurations();
  void check_placement();
  void read_preflight();
  void open_device();
  void open_metrics();
  void warn_of_unused_gpus();
  void check_gpus_apart();

  std::atomic<bool> settled_ = false;
};

/// Returns whose malloc this process uses: "tcmalloc", "jemalloc" or "glibc".
std::string allocator_name();

/// Returns words_of() an error that ends a measurement. Where memory ran out, the text also names
/// the batch, what this rank has held, and the remedy.
std::string measuring_words(const std::exception& error, const Session& session);

}  // namespace scalemark
