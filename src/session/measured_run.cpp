// Measures one run of a trainer and gathers what its record needs from all ranks.
#include "session/measured_run.hpp"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <set>

#include "analysis/diagnosis/diagnose.hpp"
#include "config/names.hpp"
#include "error.hpp"
#include "measure/clock.hpp"
#include "models/catalog.hpp"
#include "probe/gemm.hpp"
#include "record/wire.hpp"
#include "session/announce.hpp"
#include "train/arithmetic.hpp"
#include "train/c10d_reducer.hpp"

namespace scalemark {
namespace {

/// Checks the data path. It is checked before the clock starts and again after it, since what broke
/// in between has made the figures wrong.
void check_data(Trainer& trainer, RunGroup& group, CheckTime when) {
  group.ranks.watchdog().enter("data check");
  group.ranks.agree_on([&] {
    try {
      trainer.check_data(*group.communicator, group.ranks.rank(), when);
    } catch (const CommError& error) {
      if (when == CheckTime::before) throw;
      throw CommError(fmt::format("{}; it was right before the measurement", error.what()));
    }
  });
}

/// Does all that may fail or take long, before the clock starts: checks the data path and measures
/// the GEMM peak.
void prepare(Session& session, Trainer& trainer, RunGroup& group) {
  if (!group.data_checked) check_data(trainer, group, CheckTime::before);
  if (group.measured.config().checkpoint_every > 0) {  // also of a trainer that was made since
    group.ranks.watchdog().enter("checkpoint folder");
    group.ranks.agree_on([&] { trainer.open_checkpoints(group.ranks); });
  }
  if (group.data_checked) return;
  group.gemm_flops = measure_gemm_peak(session, group.measured.config(), group.ranks);
  group.data_checked = true;
}

/// Returns what a rank sends to sum `bytes` of values over all ranks, within and between groups of
/// --shard_ranks.
std::int64_t wire_bytes_of_sum(const Communicator& communicator, std::int64_t bytes) {
  const std::int64_t within = communicator.wire_bytes(bytes);
  const Communicator* between = communicator.replicas();
  return between ? within + between->wire_bytes(bytes / communicator.size()) : within;
}

EmbeddingFacts embedding_facts(const ResolvedConfig& config, Trainer& trainer,
                               const Communicator& communicator) {
  const bool converted = config.embedding_gradients == EmbeddingGradients::sparse_as_dense;
  EmbeddingFacts facts;
  facts.strategy = to_string(config.embedding_gradients);
  facts.tied_gradient = to_string(converted ? TiedGradient::sparse : config.tied_gradient);
  const auto buckets = trainer.parameters().gradient_buffers();
  for (const TableRows& rows : trainer.parameters().tables()) {
    facts.tables.push_back({rows.table.name, rows.table.rows, rows.table.width, rows.table.tied});
    if (!rows.table.reduced()) continue;
    const Buffer& bucket = buckets[static_cast<std::size_t>(rows.bucket)];
    const std::int64_t elements = rows.table.rows * rows.table.width;
    const auto share = static_cast<double>(elements) / static_cast<double>(bucket.count);
    facts.reduced_bytes += 4 * elements;
    facts.reduced_wire_bytes +=
        std::llround(share * static_cast<double>(wire_bytes_of_sum(
                                 communicator, communicator.payload_bytes(bucket))));
  }
  return facts;
}

/// Names what carries the bytes within groups of --shard_ranks and between them, where that
/// differs.
std::string transport_of(const Communicator& communicator) {
  const std::string within = communicator.transport();
  const std::string between =
      communicator.replicas() ? communicator.replicas()->transport() : within;
  return within == between ? within : fmt::format("{}, between groups {}", within, between);
}

RunFacts run_facts(const Session& session, Trainer& trainer, const RunGroup& group,
                   const std::optional<BaselineRate>& baseline) {
  const ResolvedConfig& config = group.measured.config();
  RunFacts facts;
  facts.unit = unit_of(config);
  facts.units_per_step = trainer.units_per_step_of_rank() * group.ranks.size();
  facts.batch = group.batch;
  facts.batch_search = group.measured.batch_search;
  facts.world_size = group.ranks.size();
  facts.device = session.device->device().is_cuda() ? "cuda" : "cpu";
  facts.device_name = session.device->name();
  facts.communicator = group.communicator->name();
  facts.wire_dtype = to_string(group.communicator->wire_dtype());
  facts.transport = transport_of(*group.communicator);
  facts.algorithm = group.communicator->algorithm();
  facts.allocator = allocator_name();
  facts.precision_native = session.device->native(config.precision);
  facts.parameters = trainer.parameter_count();
  facts.flops_per_sample =
      forward_flops_per_sample(config, trainer.counted_flops()) * (config.forward_only ? 1 : 3);
  facts.records_steps = trainer.records_steps();
  if (group.communicator->moves_data()) facts.reducer = to_string(config.reducer);
  if (!config.forward_only && !trainer.parameters().tables().empty())
    facts.embedding = embedding_facts(config, trainer, *group.communicator);
  facts.gemm_flops = group.gemm_flops;
  if (baseline) {
    facts.baseline_throughput = baseline->throughput;
    facts.baseline_step_seconds = baseline->step_seconds;
  }
  return facts;
}

void add_traffic(RunFacts& facts, const StepTraffic& traffic) {
  facts.bytes_per_step = traffic.bytes;
  facts.wire_bytes_per_step = traffic.wire_bytes;
  facts.messages_per_step = traffic.messages;
}

}  // namespace

std::unique_ptr<MachineWatch> watch_machine(const Session& session, const RankGroup& ranks,
                                            const ResolvedConfig& config) {
  if (!config.window_seconds) return nullptr;
  constexpr double kLooksInAWindow = 4;
  return std::make_unique<MachineWatch>(
      Watched{session.affinity.cpus, ranks.local_rank() == 0, session.device->uuid()},
      *config.window_seconds / kLooksInAWindow);
}

std::vector<MachineReading> readings_of(MachineWatch* watch, const Samples& samples) {
  if (!watch) return {};
  std::vector<MachineReading> readings = watch->stop();
  for (MachineReading& reading : readings) reading.at -= samples.began;
  std::erase_if(readings, [](const MachineReading& reading) { return reading.at < 0; });
  return readings;
}

RankReport rank_report(const Session& session, int rank, Samples samples,
                       const NoiseEvidence& noise) {
  RankReport report;
  report.rank = rank;
  report.host = host_name();
  report.affinity = affinity_of_threads(session.affinity);
  report.affinity_requested = requested_binding(session.environment);
  if (RequestedBinding& asked = report.affinity_requested; !asked.cores)
    asked.cores = cores_of_policy(asked.text, report.affinity.cpus);
  report.cpus_of_host = session.cpus_of_host();
  if (session.device->device().is_cuda()) report.gpu = session.device->device().index();
  report.gpu_uuid = session.device->uuid();
  if (!report.gpu_uuid.empty()) {
    const GpuList list = visible_gpus();
    if (const GpuInfo* gpu = gpu_of(list.gpus, report.gpu_uuid))
      report.near_cpus_of_gpu = gpu->near_cpus;
  }
  report.threads = at::get_num_threads();
  report.samples = std::move(samples);
  report.noise = noise;
  report.peak_rss_bytes = peak_rss_bytes();
  report.peak_gpu_bytes = session.device->peak_memory_bytes();
  return report;
}

std::vector<RankReport> gather_reports(RankGroup& ranks, const RankReport& mine) {
  ranks.watchdog().enter("gather results");
  std::vector<RankReport> reports;
  for (const auto& text : ranks.gather(to_wire(mine)))
    reports.push_back(from_wire<RankReport>(text));
  return reports;
}

std::optional<double> measure_gemm_peak(Session& session, const ResolvedConfig& config,
                                        RankGroup& ranks) {
  if (!config.roofline || config.precision == Precision::int8) return std::nullopt;
  ranks.watchdog().enter("GEMM peak");
  ranks.barrier();  // all ranks multiply at once, as they compute at once
  const bool cuda = session.device->device().is_cuda();
  const double mine =
      measure_gemm_flops(*session.device, compute_dtype(config.precision), cuda ? 8192 : 1024, 0.3);
  return ranks.all_sum({mine}).front();
}

double forward_flops_per_sample(const ResolvedConfig& config, double counted) {
  if (config.brings_model()) return config.model_flops.value_or(counted);
  const ModelFacts model = *find_model(config.model);
  if (config.length_distribution != LengthDistribution::fixed) return 0;
  if (model.sequence_length > 0)
    return forward_flops_at(model, config.sequence_length.value_or(model.sequence_length));
  if (config.image_size.value_or(model.image_size) != model.image_size ||
      config.num_classes != 1000)
    return 0;
  return model.forward_flops_per_sample;
}

namespace {

/// Tells of ranks of one host that send to each other by TCP although nobody asked for that.
void warn_of_tcp_within_host(Session& session, const RunGroup& group) {
  const std::set<std::string> hosts(session.hosts.begin(), session.hosts.end());
  if (hosts.size() > 1 || session.environment.contains("OMPI_MCA_btl") ||
      group.measured.config().reducer != Reducer::scalemark ||
      group.communicator->transport() != "tcp")
    return;
  session.warn_once(
      "the ranks of this host send to each other by TCP: Open MPI has found no room for shared "
      "memory (df -h /dev/shm; of a container --shm-size=1g)");
}

}  // namespace

RunGroup make_run_group(Session& session, RankGroup ranks, const MeasuredConfig& measured,
                        bool baseline) {
  const ResolvedConfig& config = measured.config();
  const bool cuda = session.device->device().is_cuda();
  const auto kind = baseline ? CommunicatorKind::none
                             : resolve_communicator(config.communicator, cuda, ranks.size());
  RunGroup group{std::move(ranks), nullptr, measured, {}, false, std::nullopt};
  group.batch = plan_batch(config, group.ranks.size());
  const int cuda_device = cuda ? session.device->device().index() : -1;
  group.ranks.agree_on([&] {
    if (!baseline && config.reducer == Reducer::c10d)
      group.communicator = make_c10d_communicator(group.ranks, cuda_device);
    else
      group.communicator =
          make_shard_communicator(kind, group.ranks, cuda_device, config.wire_dtype,
                                  static_cast<int>(ranks_of_shards(config, group.ranks.size())));
  });
  warn_of_tcp_within_host(session, group);
  return group;
}

RunGroup without(const RunGroup& group, LeaveOut what) {
  RunGroup same{group.ranks, group.communicator, group.measured, group.batch, false, std::nullopt};
  same.measured.loaded.config.leave_out = what;
  return same;
}

std::optional<RunResult> measure_run(Session& session, Trainer& trainer, RunGroup& group,
                                     const std::optional<BaselineRate>& baseline,
                                     const StepObserver& observer) {
  trainer.set_batch(group.batch);
  trainer.leave_out(group.measured.config().leave_out);
  prepare(session, trainer, group);

  RunFacts facts = run_facts(session, trainer, group, baseline);
  if (session.loaded.command == Command::run)  // a curve has said already how long it takes
    announce_time(session, group.ranks, group.measured.config(),
                  facts.flops_per_sample * static_cast<double>(group.batch.global_batch_size),
                  facts.gemm_flops);
  group.ranks.watchdog().enter("choice of kernels");
  trainer.meet_shapes(group.ranks, *group.communicator);  // not part of the measurement
  wait_for_idle(session, group.ranks);
  facts.started_at = utc_timestamp();
  session.device->reset_peak_memory();
  reset_peak_rss();
  const NoiseSnapshot before = session.noise_now();
  const double cpu_before = group.ranks.communication_cpu_seconds();
  const bool first_of_host = group.ranks.local_rank() == 0;
  EnergyMeter meter(first_of_host, session.device->uuid());
  const auto watch = watch_machine(session, group.ranks, group.measured.config());
  Samples samples =
      trainer.measure(group.ranks, *group.communicator, observer, session.start_barrier);
  const double cpu_seconds = group.ranks.communication_cpu_seconds() - cpu_before;
  const Energy energy = meter.stop();
  const NoiseEvidence noise = noise_between(before, session.noise_now());
  std::vector<MachineReading> readings = readings_of(watch.get(), samples);

  if (group.communicator->moves_data() && !session.config().forward_only)
    add_traffic(facts, trainer.last_traffic());
  RankReport report = rank_report(session, group.ranks.rank(), std::move(samples), noise);
  report.communication_cpu_seconds = cpu_seconds;
  report.energy = energy;
  report.readings = std::move(readings);
  report.energy_of_host = first_of_host;
  report.gradient_buffer_bytes = trainer.gradient_buffer_bytes();
  report.weight_bytes = trainer.weight_bytes();
  report.optimizer_state_bytes = trainer.optimizer_state_bytes();
  report.batch_bytes = trainer.batch_bytes();
  check_data(trainer, group, CheckTime::after);
  const auto reports = gather_reports(group.ranks, report);
  if (group.ranks.rank() != 0) return std::nullopt;
  RunResult run = make_run(session.record_context(group.measured.loaded), facts, reports);
  diagnosis::add_findings(run);
  return run;
}

}  // namespace scalemark
