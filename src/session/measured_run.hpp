// One measured run of a trainer on a group of ranks with one communicator, and its record.
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

/// A group of ranks that runs together: a point of a curve, or the whole world of `run`.
struct RunGroup {
  RankGroup ranks;
  std::unique_ptr<Communicator> communicator;
  MeasuredConfig measured;
  BatchPlan batch;
  bool data_checked = false;
  std::optional<double> gemm_flops;  ///< of all ranks together, measured once
};

/// Looks at this rank's machine from now on; null without --window_seconds.
std::unique_ptr<MachineWatch> watch_machine(const Session& session, const RankGroup& ranks,
                                            const ResolvedConfig& config);
/// Ends the watch, if there is one; of the measured loop alone.
std::vector<MachineReading> readings_of(MachineWatch* watch, const Samples& samples);

/// What every kind of measurement reports of a rank; gradient_buffer_bytes is left to the caller.
RankReport rank_report(const Session& session, int rank, Samples samples,
                       const NoiseEvidence& noise);

/// Those of all ranks, in their order, at rank 0; none elsewhere. All of them call it.
std::vector<RankReport> gather_reports(RankGroup& ranks, const RankReport& mine);

/// Rate of large matrix products in the compute type, FLOP/s of all ranks of the group at once; all
/// of them call it. None without --roofline.
std::optional<double> measure_gemm_peak(Session& session, const ResolvedConfig& config,
                                        RankGroup& ranks);

/// FLOPs of one sample's forward pass; `counted`: of a network of the user's. 0 (unknown) for
/// sequences of varying length and for images of another size or number of classes than the
/// catalog's.
double forward_flops_per_sample(const ResolvedConfig& config, double counted);

/// Made by every rank of the group; resolves `--communicator` for its size, which with `--reducer
/// c10d` is Gloo or NCCL for one rank too. `baseline`:
/// communicator none whatever is configured.
RunGroup make_run_group(Session& session, RankGroup ranks, const MeasuredConfig& measured,
                        bool baseline);

/// The mean step and the throughput without communication on the same ranks, where they were
/// measured.
struct BaselineRate {
  double throughput = 0;
  double step_seconds = 0;
};

/// Data check and GEMM peak (once a group, before the clock), then the measured loop; gathers the
/// reports. All ranks of the group call it together; the result is at its rank 0, none elsewhere.
/// Throws AgreedError, or an error of one rank alone (then the caller aborts the job). The loop
/// begins at the session's start line.
std::optional<RunResult> measure_run(Session& session, Trainer& trainer, RunGroup& group,
                                     const std::optional<BaselineRate>& baseline,
                                     const StepObserver& observer);

}  // namespace scalemark
