// See instance_launch.hpp.
#include "launch/instance_launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "config/injection.hpp"
#include "config/keys.hpp"
#include "launch/engine_start.hpp"
#include "launch/launch.hpp"
#include "launch/log_tail.hpp"
#include "measure/clock.hpp"
#include "platform/memory_limit.hpp"
#include "rendezvous/start_line.hpp"
#include "result/handover.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

/// In the child: its place, and the line at which it waits.
void settle(const Slot& slot, Device device, const Starter& starter, std::size_t line) {
  pin_to(slot.cpus);
  setenv("SMK_INTERNAL_BINDING", ("slot " + format_cpu_list(slot.cpus)).c_str(), 1);
  unsetenv(kHandoverVariable);
  // A slot of CPUs sees no GPU.
  if (!slot.uuid.empty() || device != Device::cpu)
    setenv("CUDA_VISIBLE_DEVICES", slot.uuid.c_str(), 1);
  starter.hand_over(line);
}

class Launch {
 public:
  Launch(const InstancesRequest& request, const std::vector<std::size_t>& slots,
         const fs::path& folder, const std::string& name)
      : request_(request), slots_(slots), stem_(folder / name), starter_(slots.size()) {}

  LaunchedInstances run() {
    Supervision how;
    how.grace_seconds = request_.plan.config.config.timeout + 10;
    how.end_seconds = 0;
    how.limit_seconds = request_.launch_timeout;
    how.inputs = [this] { return starter_.inputs(); };
    // An instance that is asked to stop may still come to the line: nobody is let go for it.
    const double limit = steady_seconds() + request_.launch_timeout;
    const auto listen = [&] {
      if (steady_seconds() < limit) starter_.update();
    };
    how.on_wake = listen;
    exits_ = supervise_all(processes(), how);
    listen();  // to what was said last

    LaunchedInstances launched;
    for (std::size_t i = 0; i < slots_.size(); ++i) read(launched.launch, i);
    set_outcome(launched);
    for (std::size_t i = 0; i < slots_.size(); ++i) keep_log(launched.launch, i);
    return launched;
  }

 private:
  fs::path file(std::size_t i, const char* extension) const {
    return stem_.string() + fmt::format("-slot{}{}", slots_[i], extension);
  }
  const Slot& slot(std::size_t i) const { return request_.plan.slots[slots_[i]]; }
  std::string title(std::size_t i) const {
    return fmt::format("the instance on slot {} ({})", slots_[i], slot(i).title());
  }

  std::vector<ChildProcess> processes() const {
    std::vector<ChildProcess> made;
    const Device device = request_.plan.config.config.device;
    for (std::size_t i = 0; i < slots_.size(); ++i)
      made.push_back({instance_command(request_, slots_[i], file(i, ".json")),
                      file(i, ".log").string(),
                      [this, i, device] { settle(slot(i), device, starter_, i); }});
    return made;
  }

  /// What instance i left.
  void read(InstanceLaunch& launch, std::size_t i) {
    InstanceResult result;
    result.slot = slots_[i];
    records_.emplace_back();
    try {
      if (fs::exists(file(i, ".json"))) records_.back() = read_record(file(i, ".json"));
    } catch (const Error&) {  // whatever wrote it, it is no record of ours
    }
    const Json& record = records_.back();
    const auto window = starter_.window(i);
    if (!record.is_null() && record.at("status") == "ok" && window)
      result = instance_result(record, slots_[i], *window);
    else
      complete_ = false;
    if (!record.is_null()) {
      result.run_id = record.at("id");
      result.run_path = file(i, ".json").string();
    }
    launch.instances.push_back(std::move(result));
  }

  void set_outcome(LaunchedInstances& launched) const {
    Outcome& outcome = launched.launch.outcome;
    if (exits_.stopped_by_us)
      outcome = {Status::interrupted, "stopped from outside"};
    else if (exits_.overdue)
      outcome = {Status::timeout, late()};
    else if (!exits_.first_failed && !complete_)
      outcome = {Status::failed,
                 "an instance ended without a record or without its measured window"};
    launched.code = exit_code_of(outcome.status);
    if (!outcome.ok() || !exits_.first_failed) return;
    const std::size_t i = *exits_.first_failed;
    launched.code = map_launcher_exit({exits_.raw_status[i]}, std::nullopt);
    outcome = {status_of_failed(launched.code, records_[i]), cause(i)};
  }

  /// Of an instance that failed by itself: nobody has stopped it.
  static Status status_of_failed(ExitCode code, const Json& record) {
    if (record.is_null()) return status_of_launch(code, /*stopped=*/false);
    const Status status = status_of(record);
    return status == Status::timeout || status == Status::invalid ? status : Status::failed;
  }

  std::string late() const {
    std::string names;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (!exits_.ran_out[i]) continue;
      const bool waited = starter_.is_ready(i) && !starter_.has_started();
      names += fmt::format("{}{}{}", names.empty() ? "" : ", ", title(i),
                           waited ? " (waiting for the others)" : "");
    }
    return fmt::format("not over after {:g} s (--launch_timeout): {}", request_.launch_timeout,
                       names);
  }

  std::string cause(std::size_t i) const {
    const int status = exits_.raw_status[i];
    const Json& record = records_[i];
    const std::string reason = record.is_null() ? "" : record.value("reason", "");
    if (!reason.empty()) return fmt::format("{}: {}", title(i), reason);
    const std::string tail = last_lines(file(i, ".log"));
    return fmt::format("{}: {}{}; {}", title(i), end_words(status), memory_kills_.told(),
                       tail.empty() ? "its log is empty" : "its log ends: " + tail);
  }

  void keep_log(InstanceLaunch& launch, std::size_t i) const {
    const fs::path log = file(i, ".log");
    std::error_code ignored;
    if (launch.outcome.ok())
      fs::remove(log, ignored);
    else if (fs::exists(log, ignored))
      launch.instances[i].log_path = log.string();
  }

  const InstancesRequest& request_;
  const std::vector<std::size_t>& slots_;
  fs::path stem_;
  Starter starter_;
  SupervisedExits exits_;
  MemoryKills memory_kills_;
  std::vector<Json> records_;  ///< null: it left none
  bool complete_ = true;
};

}  // namespace

std::vector<std::string> instance_command(const InstancesRequest& request, std::size_t slot,
                                          const fs::path& record) {
  const LoadedConfig& loaded = request.plan.config;
  std::vector<std::string> words{own_path().string(), std::string(name_of(loaded.command))};
  words.insert(words.end(), request.arguments.begin(), request.arguments.end());
  const auto number = static_cast<std::int64_t>(slot);
  if (request.inject && (request.inject->rank < 0 || request.inject->rank == number)) {
    Injection fault = *request.inject;
    fault.rank = std::min<std::int64_t>(fault.rank, 0);  // an instance has one rank
    words.push_back("--inject=" + to_string(fault));
  }
  const auto& folder = loaded.config.checkpoint_dir;
  if (folder) words.push_back(fmt::format("--checkpoint_dir={}/slot{}", *folder, slot));
  if (loaded.command == Command::run) words.emplace_back("--dry_run=false");
  words.emplace_back("--json=false");
  words.push_back("--output=" + record.string());
  return words;
}

LaunchedInstances launch_instances(const InstancesRequest& request,
                                   const std::vector<std::size_t>& slots, const fs::path& folder,
                                   const std::string& name) {
  return Launch(request, slots, folder, name).run();
}

}  // namespace scalemark
