// Sets up what all commands of the engine share, and refuses what cannot be measured.
#include "session/session.hpp"

#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "config/curves.hpp"
#include "config/keys.hpp"
#include "config/names.hpp"
#include "error.hpp"
#include "platform/binding.hpp"
#include "platform/gpu_health.hpp"
#include "platform/platform.hpp"
#include "result/preflight_reference.hpp"
#include "session/live_report.hpp"
#include "streams.hpp"
#include "train/arithmetic.hpp"
#include "train/batch_search.hpp"

namespace scalemark {
namespace {

/// Returns the keys whose values differ between two configurations, with both values.
std::string differences(const nlohmann::json& mine, const nlohmann::json& other) {
  std::string text;
  for (const auto& [key, value] : mine.items())
    if (other.value(key, nlohmann::json()) != value)
      text += fmt::format("{}{} ({} against {})", text.empty() ? "" : ", ", key, value.dump(),
                          other.value(key, nlohmann::json()).dump());
  return text;
}

/// Returns {"key": value} of all keys except those that may differ between ranks without harm, and
/// of what computes: the build and its MPI.
nlohmann::json comparable(const LoadedConfig& loaded, const std::string& mpi) {
  nlohmann::json values{{"build.mpi (as loaded)", mpi}};
  const Json build = part_json(build_info());
  for (const auto& [key, value] : build.items()) values["build." + key] = value;
  const auto configuration = config_to_json(loaded);
  for (const auto& [key, entry] : configuration.items())
    if (!is_key(key, Trait::presentation)) values[key] = entry["value"];
  return values;
}

}  // namespace

std::string allocator_name() {
  if (dlsym(RTLD_DEFAULT, "tc_malloc")) return "tcmalloc";
  if (dlsym(RTLD_DEFAULT, "mallctl")) return "jemalloc";
  return "glibc";
}

/// Returns the OpenMP runtime of this process. A preloaded runtime takes the place of LibTorch's
/// own.
std::string openmp_runtime() {
  Dl_info library{};
  if (dladdr(dlsym(RTLD_DEFAULT, "omp_get_max_threads"), &library) == 0) return "";
  return std::filesystem::path(library.dli_fname).filename();
}

Session::Session(LoadedConfig loaded_config, RankGroup group)
    : loaded(std::move(loaded_config)),
      warnings(loaded.warnings),
      world(std::move(group)),
      hosts(world.all_gather(host_name())),
      environment(process_environment()),
      handover(environment, world.rank() == 0),
      affinity(achieved_affinity()) {
  for (const auto& warning : warnings) say("warning: " + warning);
  refuse_singletons();
  refuse_other_world();
  tell_of_patient_srun();
  compare_configurations();
  check_placement();
  read_preflight();
  system = system_info();
  set_system(system, "mpi", world.library_version());
  set_system(system, "openmp", openmp_runtime());
  set_system(system, "denormals", denormals_are_flushed() ? "flushed" : "kept");
  open_metrics();
  open_device();
}

RecordContext Session::record_context(LoadedConfig measured) const {
  measured.warnings = warnings;
  return {std::move(measured), system, recorded_environment(environment), preflight};
}

void Session::say(const std::string& line) const {
  if (is_root()) scalemark::say_progress(line);
}

int Session::cpus_of_host() const {
  return static_cast<int>(std::max(0L, sysconf(_SC_NPROCESSORS_ONLN)));
}

NoiseSnapshot Session::noise_now() const {
  return noise_snapshot(start_barrier ? start_barrier->starter() : std::nullopt);
}

void Session::warn(const std::string& warning) {
  say("warning: " + warning);
  warnings.push_back(warning);
}

void Session::warn_once(const std::string& warning) {
  if (std::ranges::find(warnings, warning) == warnings.end()) warn(warning);
}

/// Opens the file of --openmetrics, so that it shows before anything is measured whether it can be
/// written.
void Session::open_metrics() {
  world.agree_on([&] {
    if (is_root() && config().openmetrics)
      replace_text(*config().openmetrics, openmetrics_text(idle_state(*this, world.size())));
  });
}

void Session::refuse_singletons() const {
  const auto hint = launcher_hint(environment);
  if (world.size() > 1 || !hint || hint->tasks <= 1) return;
  throw EnvironmentError(
      fmt::format("{} says that it started {} tasks, but each of them sees a world of one rank: "
                  "the launcher and this program's "
                  "MPI ({}) do not speak the same protocol. Remedy: srun --mpi=pmix (see srun "
                  "--mpi=list), or the mpirun of that "
                  "same MPI. Nothing was measured and no file was written.",
                  hint->name, hint->tasks, world.library_version()));
}

/// Refuses a world of another size than --ranks asks for. The world of a curve is checked in
/// scale_command.cpp.
void Session::refuse_other_world() const {
  const auto& ranks = config().ranks;
  if (loaded.command == Command::scale || ranks.empty() || ranks.front() == world.size()) return;
  throw ConfigError(
      fmt::format("--ranks asks for {} ranks, but this launch has a world of {}: start as many, or "
                  "leave the launcher away and scalemark starts them itself",
                  ranks.front(), world.size()));
}

/// Prints a note where srun may leave the other ranks waiting for one that died. A rank cannot see
/// the flags of its srun.
void Session::tell_of_patient_srun() const {
  const auto hint = launcher_hint(environment);
  const auto set = environment.find("SLURM_KILL_BAD_EXIT");
  if (!hint || hint->name != "srun" || hint->tasks <= 1 ||
      (set != environment.end() && set->second == "1"))
    return;
  say(
      fmt::format("note: where a rank dies the others wait for --timeout ({:g} s), unless srun was "
                  "given --kill-on-bad-exit=1; SLURM_KILL_BAD_EXIT=1 does the same, without this "
                  "note",
                  config().timeout));
}

void Session::compare_configurations() {
  world.watchdog().enter("configuration");
  const auto all = world.all_gather(comparable(loaded, world.library_version()).dump());
  world.agree_on([&] {
    const auto first = nlohmann::json::parse(all.front());
    for (std::size_t rank = 1; rank < all.size(); ++rank)
      if (const auto keys = differences(first, nlohmann::json::parse(all[rank])); !keys.empty())
        throw ConfigError(
            fmt::format("the configuration differs between rank 0 and rank {}: {}. Give every rank "
                        "the same program, arguments, "
                        "configuration file and SCALEMARK_* variables.",
                        rank, keys));
  });
}

/// Checks that ranks are placed as --ranks_per_node asks, since a launcher may do otherwise and
/// only warn.
void Session::check_placement() {
  if (!config().ranks_per_node) return;
  const auto nodes = ranks_of_nodes(hosts);
  const auto asked = static_cast<std::int64_t>(*config().ranks_per_node);
  bool as_asked = true;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    as_asked = as_asked &&
               (nodes[i].second == asked || (i + 1 == nodes.size() && nodes[i].second < asked));
  if (as_asked) return;
  world.agree_on([&] {
    throw EnvironmentError(fmt::format(
        "--ranks_per_node {}: the launcher placed the ranks, in their order, so: {}. Remedy: "
        "srun -N {} --ntasks-per-node={} --distribution=plane={}, or mpirun --map-by ppr:{}:node; "
        "or leave the launcher away and scalemark starts them itself",
        asked, placement_words(nodes), (world.size() + asked - 1) / asked, asked, asked, asked));
  });
}

/// Reads the record of --preflight at rank 0, which may be the only one that can see the file.
void Session::read_preflight() {
  if (!config().preflight) return;
  world.agree_on([&] {
    if (is_root())
      preflight = preflight_reference(read_preflight_record(*config().preflight), hosts);
  });
}

/// Warns of a GPU that is there and not used, which must never pass unnoticed.
void Session::warn_of_unused_gpus() {
  std::string mine;
  if (config().device == Device::automatic && !device->device().is_cuda()) {
    const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
    mine = why_gpus_are_unused(
        visible_gpus(),
        visible == environment.end() ? std::nullopt : std::optional(visible->second),
        why_no_cuda());
    if (!mine.empty()) mine = host_name() + ": " + mine;
  }
  const auto all = world.all_gather(mine);
  for (const std::string& words : std::set(all.begin(), all.end()))
    if (!words.empty()) warn(words);
  const auto kinds = world.all_gather(device->device().is_cuda() ? "cuda" : "cpu");
  const auto other = std::ranges::find_if(kinds, [&](auto& kind) { return kind != kinds[0]; });
  world.agree_on([&] {
    if (other != kinds.end())
      throw EnvironmentError(
          fmt::format("rank 0 computes on {} and rank {} on {}: see the warnings above, or say "
                      "--device cpu",
                      kinds[0], other - kinds.begin(), *other));
  });
}

/// Checks that every rank has a GPU of its own, except where scripts/gpu_check tries NCCL with the
/// only GPU.
void Session::check_gpus_apart() {
  const auto devices = world.all_gather(device->uuid());
  std::set<std::string> seen;
  const auto shared = std::ranges::find_if(
      devices, [&](auto& uuid) { return !uuid.empty() && !seen.insert(uuid).second; });
  if (shared == devices.end()) return;
  if (environment.contains(kSharedGpuVariable)) {
    warn("ranks share a GPU: no speed of this record counts");
    return;
  }
  world.agree_on([&] {
    throw EnvironmentError(
        fmt::format("two ranks use one GPU ({}): start at most as many ranks per host as it has "
                    "visible GPUs, or set CUDA_VISIBLE_DEVICES per rank",
                    *shared));
  });
}

void Session::open_device() {
  world.watchdog().enter("device");
  // Otherwise the front door has set OMP_NUM_THREADS to the achieved CPU mask, or the user has set
  // it.
  if (config().num_intra_threads)
    at::set_num_threads(static_cast<int>(*config().num_intra_threads));
  if (config().num_inter_threads)
    at::set_num_interop_threads(static_cast<int>(*config().num_inter_threads));
  world.agree_on([&] { device = make_device_backend(config().device, world.local_rank()); });
  warn_of_unused_gpus();
  check_gpus_apart();
  std::set<Precision> precisions;
  for (const CurveConfig& curve : curves_of(config())) precisions.insert(curve.config.precision);
  for (const Precision precision : precisions) {
    world.agree_on([&] { device->set_precision(precision); });
    if (!device->native(precision))
      warn(
          fmt::format("{} has no native {} instructions; the run is slow and marked "
                      "precision_native: false",
                      device->name(), to_string(precision)));
  }
}

namespace {

/// Says how much memory the rank has held at most.
std::string held_words(const Session& session) {
  const auto mebibytes = [](std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  if (const auto peak = session.device ? session.device->peak_memory_bytes() : std::nullopt)
    return fmt::format("this rank's tensors held {:.0f} MiB of {}'s memory at most",
                       mebibytes(*peak), session.device->name());
  return fmt::format("this rank held {:.0f} MiB at most", mebibytes(peak_rss_bytes()));
}

std::string batch_words(const Session& session) {
  if (session.config().largest_batch) return "--batch_size max";
  const BatchPlan batch = plan_batch(session.config(), session.world.size());
  return fmt::format("{} samples a rank in micro-batches of {}", batch.batch_size_per_rank,
                     batch.micro_batch_size);
}

}  // namespace

std::string measuring_words(const std::exception& error, const Session& session) {
  if (!is_out_of_memory(error)) return words_of(error);
  return fmt::format(
      "out of memory with {}; {}: {}. Remedy: a smaller --batch_size or --micro_batch_size, fewer "
      "ranks on this host, or --batch_size max, which finds what fits",
      batch_words(session), held_words(session), words_of(error));
}

}  // namespace scalemark
