// Measures one run of a trainer on a group of ranks with one communicator, and makes its record.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "platform/machine_watch.hpp"
#include "result/run_record.hpp"
#include "session/batch_choice.hpp"
#include "session/session.hpp"
#include "train/trainer.hpp"

namespace scalemark {

/// Holds a group of ranks that runs together: a point of a curve, or the whole world of `run`.
struct RunGroup {
  RankGroup ranks;
  std::shared_ptr<Communicator> communicator;
  MeasuredConfig measured;
  BatchPlan batch;
  bool data_checked = false;
  std::optional<double> gemm_flops;  ///< of all ranks together, measured once per group
};

/// Starts to watch this rank's machine. Returns null without --window_seconds.
std::unique_ptr<MachineWatch> watch_machine(const Session& session, const RankGroup& ranks,
                                            const ResolvedConfig& config);
/// Ends the watch, if there is one, and returns the readings of the measured loop alone.
std::vector<MachineReading> readings_of(MachineWatch* watch, const Samples& samples);

/// Returns what every kind of measurement reports of a rank. The caller adds gradient_buffer_bytes.
RankReport rank_report(const Session& session, int rank, Samples samples,
                       const NoiseEvidence& noise);

/// Returns the reports of all ranks, in their order, at rank 0, and an empty list elsewhere. All
/// ranks call it.
std::vector<RankReport> gather_reports(RankGroup& ranks, const RankReport& mine);

/// Measures the rate of large matrix products in the compute type, in FLOP/s of all ranks of the
/// group at once. All of them call it. Returns nothing without --roofline.
std::optional<double> measure_gemm_peak(Session& session, const ResolvedConfig& config,
                                        RankGroup& ranks);

/// Returns the FLOPs of one sample's forward pass. `counted` are those of a network of the user's.
/// Returns 0 (unknown) for sequences of varying length, and for images of another size or number of
/// classes than the catalog's.
double forward_flops_per_sample(const ResolvedConfig& config, double counted);

/// Makes a group with its communicator. Every rank of the group calls it. It resolves
/// `--communicator` for the group's size; with `--reducer c10d` that is Gloo or NCCL for a single
/// rank too. With `baseline` the communicator is none, whatever is configured.
RunGroup make_run_group(Session& session, RankGroup ranks, const MeasuredConfig& measured,
                        bool baseline);
/// Returns the same ranks and communicator for runs without one collective.
RunGroup without(const RunGroup& group, LeaveOut what);

/// Holds the mean step and the throughput without communication on the same ranks, where they were
/// measured.
struct BaselineRate {
  double throughput = 0;
  double step_seconds = 0;
};

/// Checks the data and measures the GEMM peak (once per group, before the clock starts), then runs
/// the measured loop, which begins at the session's start line, and gathers the reports. All ranks
/// of the group call it together. Returns the result at the group's rank 0, and nothing elsewhere.
/// Throws AgreedError, or an error of one rank alone, for which the caller aborts the job.
std::optional<RunResult> measure_run(Session& session, Trainer& trainer, RunGroup& group,
                                     const std::optional<BaselineRate>& baseline,
                                     const StepObserver& observer);

}  // namespace scalemark
