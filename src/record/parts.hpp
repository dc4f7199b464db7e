// Parts that several kinds of record have. Each describes itself; what a key means stands in its
// field (parts.cpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "record/describe.hpp"
#include "record/known.hpp"

namespace scalemark {

/// What became of a measurement.
enum class Status { ok, invalid, failed, interrupted, timeout };
constexpr auto names_of(Status) {
  return Names{"ok", "invalid", "failed", "interrupted", "timeout"};
}

namespace record {

inline constexpr std::string_view kTimePattern =
    R"(^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z$)";
inline constexpr std::string_view kUuidPattern =
    "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$";
inline constexpr std::string_view kKeyPattern = "^[a-z][a-z0-9_]*$";
/// Variables that records show; see platform's recorded_environment().
inline constexpr std::string_view kVariablePattern =
    "^(NCCL_|GLOO_|OMPI_MCA_|UCX_|OMP_|KMP_|GOMP_|HCOLL_|SHARP_|FI_|PSM2_|MKL_|"
    "ONEDNN_|DNNL_|ATEN_|TORCH_|PYTORCH_|LD_PRELOAD$|MALLOC_|TCMALLOC_|THP_|GLIBC_TUNABLES$|"
    "HWLOC_|CUDA_VISIBLE_DEVICES$|CUDA_DEVICE_ORDER$|SLURM_[A-Z_]+$)";
inline constexpr std::string_view kSha256Pattern = "^[0-9a-f]{64}$";

/// Units of rates.
inline Json unit_words() { return {"images/sec", "tokens/sec", "sequences/sec", "samples/sec"}; }

/// The program that wrote a record. Null: built without it.
struct Build {
  std::string version, revision, compiler, build_type;
  std::optional<std::string> libtorch, mpi, cuda, nccl, committed_at;
  static void describe(Fields& fields);
  bool operator==(const Build&) const = default;
};

/// A number in a sentence of a finding.
struct FoundNumber {
  std::string name;
  Json value;
  std::string text, record, pointer, sentence;
  std::int64_t begin = 0;
  static void describe(Fields& fields);
};
/// What a rule of src/analysis/diagnosis says of a record.
struct Finding {
  std::string rule, tone, about, what, why;
  std::vector<std::string> tries;
  std::string sure, because;
  std::vector<FoundNumber> numbers;
  static void describe(Fields& fields);
};

/// The first keys of every record.
struct Envelope {
  int schema_version = 1, schema_revision = 1;
  std::string kind, id;
  Build build;
  std::string created_at;
  Status status = Status::ok;
  std::string reason;
  std::vector<std::string> warnings;
  std::vector<Finding> findings;
  /// `kind`: the only legal one (null: any); `statuses`: likewise, where not all of them are.
  static void describe(Fields& fields, const char* kind, Json statuses = nullptr);
  /// The first of them, up to `created_at`.
  static void describe_origin(Fields& fields, const char* kind);
  static void describe_warnings(Fields& fields);
};

/// What records of all kinds say.
struct AnyRecord : Envelope {
  static void describe(Fields& fields) { Envelope::describe(fields, nullptr); }
};

/// A key of the configuration that a record was made with.
struct Setting {
  Json value;
  std::string origin;
  static void describe(Fields& fields);
};
using Settings = Entries<Setting>;
/// The value of a key; null where it is not set, or not there.
const Json& setting(const Settings& settings, std::string_view key);
/// Puts each of `others` in the place of the setting of its name, or after the last.
void update(Settings& settings, const Settings& others);

/// Of every record of a measurement.
template <typename T>
void describe_config(Fields& fields, Settings T::*config) {
  fields.add("config", config, "every configuration key").filled().keys(kKeyPattern);
}
template <typename T>
void describe_environment(Fields& fields, Entries<std::string> T::*environment) {
  fields.add("environment", environment, "variables of libraries, without [secrets](security.md)")
      .keys(kVariablePattern)
      .each(0, 1024);
}

struct Container {
  Known<std::string> image, runtime, digest, mpi;
  static void describe(Fields& fields);
};
struct Gpu {
  std::int64_t index = 0;
  Known<std::string> name;
  std::string uuid;
  Known<std::string> pci_bus_id;
  Known<std::int64_t> memory_bytes;
  std::string near_cpus;
  static void describe(Fields& fields);
};
struct Nic {
  std::string name;
  Known<std::string> state;
  Known<std::int64_t> speed_mbps;
  Known<std::string> driver, firmware;
  static void describe(Fields& fields);
};
struct RdmaDevice {
  std::string name;
  Known<std::string> rate, firmware;
  static void describe(Fields& fields);
};
/// The machine of rank 0.
struct System {
  std::string host;
  Known<std::string> kernel, distribution, virtualisation;
  Known<Container> container;
  Known<std::string> hypervisor, machine, bios, cpu_model;
  Known<std::int64_t> sockets, cores, threads;
  Known<bool> smt;
  Known<std::int64_t> numa_nodes, memory_bytes;
  Known<double> cpu_quota;
  Known<std::string> governor, gpu_driver;
  std::vector<Gpu> gpus;
  Known<std::string> cuda, cudnn, nccl, mpi, openmp, denormals;
  std::vector<Nic> nics;
  std::vector<RdmaDevice> rdma;
  static void describe(Fields& fields);
};

}  // namespace record
}  // namespace scalemark
