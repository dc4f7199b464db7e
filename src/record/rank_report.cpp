// The keys of a rank's report, in the form in which it travels: no units and no limits, since only
// the same program reads it.
#include "record/rank_report.hpp"

#include "measure/rank_trace.hpp"

namespace scalemark {
namespace {
constexpr const char* kNotFinite = "not a finite number";
}  // namespace

template <>
struct Description<Affinity> {
  static void of(Fields& fields) {
    fields.add("cpus", &Affinity::cpus);
    fields.add("numa", &Affinity::numa);
    fields.add("partial_numa", &Affinity::partial_numa);
    fields.add("usable", &Affinity::usable);
    fields.add("cores", &Affinity::cores);
  }
};

template <>
struct Description<RequestedBinding> {
  static void of(Fields& fields) {
    fields.add("text", &RequestedBinding::text);
    fields.add("cores", &RequestedBinding::cores);
  }
};

template <>
struct Description<NoiseEvidence> {
  static void of(Fields& fields) {
    fields.add("steal", &NoiseEvidence::steal);
    fields.add("busy_cpu_seconds", &NoiseEvidence::busy_cpu_seconds);
    fields.add("family_cpu_seconds", &NoiseEvidence::family_cpu_seconds);
    fields.add("own_cpu_seconds", &NoiseEvidence::own_cpu_seconds);
    fields.add("seconds", &NoiseEvidence::seconds);
    fields.add("throttled_seconds", &NoiseEvidence::throttled_seconds);
    fields.add("load1", &NoiseEvidence::load1);
    fields.add("context_switches", &NoiseEvidence::context_switches);
    fields.add("nic_bytes", &NoiseEvidence::nic_bytes);
    fields.add("link_bytes", &NoiseEvidence::link_bytes);
    fields.add("error_counters", &NoiseEvidence::error_counters);
  }
};

template <>
struct Description<MachineReading> {
  static void of(Fields& fields) {
    fields.add("at", &MachineReading::at);
    fields.add("cpu_mhz", &MachineReading::cpu_mhz);
    fields.add("memory_bytes", &MachineReading::memory_bytes);
    fields.add("cpu_celsius", &MachineReading::cpu_celsius);
    fields.add("host_joules", &MachineReading::host_joules);
    fields.add("busy_cpu_seconds", &MachineReading::busy_cpu_seconds);
    fields.add("nic_errors", &MachineReading::nic_errors);
    fields.add("gpu_mhz", &MachineReading::gpu_mhz);
    fields.add("gpu_celsius", &MachineReading::gpu_celsius);
    fields.add("gpu_watts", &MachineReading::gpu_watts);
    fields.add("gpu_memory_bytes", &MachineReading::gpu_memory_bytes);
    fields.add("gpu_errors", &MachineReading::gpu_errors);
  }
};

template <>
struct Description<Energy> {
  static void of(Fields& fields) {
    fields.add("host_joules", &Energy::host_joules);
    fields.add("gpu_joules", &Energy::gpu_joules);
    fields.add("reason", &Energy::reason);
    fields.add("gpu_reason", &Energy::gpu_reason);
  }
};

template <>
struct Description<LossScaling> {
  static void of(Fields& fields) {
    fields.add("initial", &LossScaling::initial);
    fields.add("last", &LossScaling::last);
    fields.add("dynamic", &LossScaling::dynamic);
    fields.add("skipped_steps", &LossScaling::skipped_steps);
  }
};

template <>
struct Description<EmbeddingSamples> {
  static void of(Fields& fields) {
    fields.add("rows", &EmbeddingSamples::rows);
    fields.add("gathered_bytes", &EmbeddingSamples::gathered_bytes);
    fields.add("payload_bytes", &EmbeddingSamples::payload_bytes);
    fields.add("wire_bytes", &EmbeddingSamples::wire_bytes);
    fields.add("messages", &EmbeddingSamples::messages);
    fields.add("exchange_seconds", &EmbeddingSamples::exchange_seconds);
    fields.add("densify_seconds", &EmbeddingSamples::densify_seconds);
  }
};

template <>
struct Description<CheckpointSamples> {
  static void of(Fields& fields) {
    fields.add("every", &CheckpointSamples::every);
    fields.add("bytes", &CheckpointSamples::bytes);
    fields.add("write_seconds", &CheckpointSamples::write_seconds);
  }
};

template <>
struct Description<InputSamples> {
  static void of(Fields& fields) {
    fields.add("place", &InputSamples::place);
    fields.add("bytes_per_step", &InputSamples::bytes_per_step);
    fields.add("copy_seconds", &InputSamples::copy_seconds);
    fields.add("wait_seconds", &InputSamples::wait_seconds);
  }
};

template <>
struct Description<CollectiveSamples> {
  static void of(Fields& fields) {
    fields.add("collective", &CollectiveSamples::collective);
    fields.add("messages", &CollectiveSamples::messages);
    fields.add("bytes", &CollectiveSamples::bytes);
    fields.add("wait_seconds", &CollectiveSamples::wait_seconds);
    fields.add("seconds", &CollectiveSamples::seconds);
  }
};

template <>
struct Description<ServerSamples> {
  static void of(Fields& fields) {
    fields.add("arrival_rate", &ServerSamples::arrival_rate);
    fields.add("offered", &ServerSamples::offered);
    fields.add("queue_seconds", &ServerSamples::queue_seconds);
    fields.add("timer_lateness", &ServerSamples::timer_lateness);
    fields.add("batches", &ServerSamples::batches);
    fields.add("queue_length_max", &ServerSamples::queue_length_max);
    fields.add("ended_by", &ServerSamples::ended_by);
  }
};

void Description<Samples>::of(Fields& fields) {
  fields.add("step_seconds", &Samples::step_seconds);
  fields.add("wait_seconds", &Samples::wait_seconds).or_null(kNotFinite);
  fields.add("phase_seconds", &Samples::phase_seconds);
  fields.add("loss", &Samples::loss).or_null(kNotFinite);
  fields.add("units", &Samples::units);
  fields.add("padded_units", &Samples::padded_units);
  fields.add("wall_seconds", &Samples::wall_seconds);
  fields.add("slices", &Samples::slices);
  fields.add("paused_seconds", &Samples::paused_seconds);
  fields.add("warm_up_seconds", &Samples::warm_up_seconds);
  fields.add("communication_seconds", &Samples::communication_seconds);
  fields.add("collectives", &Samples::collectives);
  fields.add("loss_scaling", &Samples::loss_scaling);
  fields.add("stop_reason", &Samples::stop_reason);
  fields.add("embedding", &Samples::embedding);
  fields.add("checkpoints", &Samples::checkpoints);
  fields.add("input", &Samples::input);
  fields.add("server", &Samples::server);
}

void RankReport::describe(Fields& fields) {
  fields.add("rank", &RankReport::rank);
  fields.add("host", &RankReport::host);
  fields.add("affinity", &RankReport::affinity);
  fields.add("affinity_requested", &RankReport::affinity_requested);
  fields.add("cpus_of_host", &RankReport::cpus_of_host);
  fields.add("near_cpus_of_gpu", &RankReport::near_cpus_of_gpu);
  fields.add("gpu", &RankReport::gpu);
  fields.add("gpu_uuid", &RankReport::gpu_uuid);
  fields.add("threads", &RankReport::threads);
  fields.add("samples", &RankReport::samples);
  fields.add("noise", &RankReport::noise);
  fields.add("readings", &RankReport::readings);
  fields.add("energy", &RankReport::energy);
  fields.add("energy_of_host", &RankReport::energy_of_host);
  fields.add("communication_cpu_seconds", &RankReport::communication_cpu_seconds);
  fields.add("peak_rss_bytes", &RankReport::peak_rss_bytes);
  fields.add("peak_gpu_bytes", &RankReport::peak_gpu_bytes);
  fields.add("gradient_buffer_bytes", &RankReport::gradient_buffer_bytes);
  fields.add("weight_bytes", &RankReport::weight_bytes);
  fields.add("optimizer_state_bytes", &RankReport::optimizer_state_bytes);
  fields.add("batch_bytes", &RankReport::batch_bytes);
}

void Description<OperatorTotal>::of(Fields& fields) {
  fields.add("name", &OperatorTotal::name);
  fields.add("group", &OperatorTotal::group);
  fields.add("calls", &OperatorTotal::calls);
  fields.add("self_seconds", &OperatorTotal::self_seconds);
  fields.add("flops", &OperatorTotal::flops);
}

void Description<RankTrace>::of(Fields& fields) {
  fields.add("steps", &RankTrace::steps);
  fields.add("step_seconds", &RankTrace::step_seconds);
  fields.add("communication_seconds", &RankTrace::communication_seconds);
  fields.add("dropped_spans", &RankTrace::dropped_spans);
  fields.add("operators", &RankTrace::operators);
}

}  // namespace scalemark
