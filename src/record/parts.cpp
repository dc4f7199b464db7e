// The keys of parts that several kinds of record have.
#include "record/parts.hpp"

#include <algorithm>
#include <utility>

namespace scalemark::record {

void Build::describe(Fields& fields) {
  fields.add("version", &Build::version, "version of scalemark")
      .pattern(R"(^[0-9]+\.[0-9]+\.[0-9]+$)");
  fields.add("revision", &Build::revision, "git revision; `-dirty`: with local changes")
      .pattern("^[0-9A-Za-z._/-]+$")
      .column(8, "revision", "of the build");
  fields.add("compiler", &Build::compiler, "name and version");
  fields.add("build_type", &Build::build_type, "of CMake");
  fields.add("libtorch", &Build::libtorch, "version built against; null: built without");
  fields.add("mpi", &Build::mpi, "likewise");
  fields.add("cuda", &Build::cuda, "likewise");
  fields.add("nccl", &Build::nccl, "likewise");
  fields.add("committed_at", &Build::committed_at, "time of the revision's commit")
      .pattern(kTimePattern)
      .since(3);
}

void FoundNumber::describe(Fields& fields) {
  fields.add("name", &FoundNumber::name, "last key of the pointer, or of what is computed")
      .filled();
  fields.add("value", &FoundNumber::value, "a number, an interval or a text");
  fields.add("text", &FoundNumber::text, "the value as the sentence has it");
  fields.add("record", &FoundNumber::record, "id of the record that it was read from");
  fields.add("pointer", &FoundNumber::pointer, "JSON pointer in that record").pattern("^/");
  fields.add("sentence", &FoundNumber::sentence, "where it stands").one_of({"what", "why"});
  fields.add("begin", &FoundNumber::begin, "of the text in the sentence, in code points")
      .at_least(0);
}

void Finding::describe(Fields& fields) {
  fields.add("rule", &Finding::rule, "[name of the rule](report.md)").pattern("^[a-z_]+$");
  fields.add("tone", &Finding::tone, "whether that is good").one_of({"good", "note", "bad"});
  fields.add("about", &Finding::about, "the curve, run or set in words");
  fields.add("what", &Finding::what, "what was found").filled();
  fields.add("why", &Finding::why, "by which numbers");
  fields.add("try", &Finding::tries, "what may help").each(1);
  fields.add("sure", &Finding::sure, "how sure that is").one_of({"sure", "likely", "hint"});
  fields.add("because", &Finding::because, "why so sure").filled();
  fields.add("numbers", &Finding::numbers, "in the sentences, with their places");
}

void Envelope::describe_origin(Fields& fields, const char* kind) {
  fields.add("schema_version", &Envelope::schema_version, "1; others are refused").one_of({1});
  fields
      .add("schema_revision", &Envelope::schema_revision,
           "grows with new keys: those that are newer than a record are null in it")
      .at_least(1)
      .since(2);
  fields
      .add("kind", &Envelope::kind,
           "`run`, `scaling`, `inference`, `instances`, [`comparison`](#comparison-record), "
           "[`verdict`](#verdict-record), [`history`](#history-record), [`baseline`](#baseline), "
           "[`projection`](#projection-record), [`study`](#study-record) or "
           "[`preflight`](preflight.md)")
      .one_of(kind ? Json{kind} : Json())
      .column(2, "kind", "of the record");
  fields.add("id", &Envelope::id, "random UUID")
      .pattern(kUuidPattern)
      .column(3, "id", "of the record; a run that belongs to a curve has a row of its own");
  fields.add("build", &Envelope::build, "program that wrote it");
  fields.add("created_at", &Envelope::created_at, "RFC 3339, UTC")
      .pattern(kTimePattern)
      .column(6, "created_at", "UTC");
}

void Envelope::describe_warnings(Fields& fields) {
  fields.add("warnings", &Envelope::warnings, "what the console warned of").each(1).since(2);
}

void Envelope::describe(Fields& fields, const char* kind, Json statuses) {
  describe_origin(fields, kind);
  Field& status =
      fields
          .add("status", &Envelope::status,
               "`ok`, `invalid` (a wrong number: non-finite loss, data check), `failed`, "
               "`interrupted` (stopped from outside), `timeout`")
          .column(4, "status");
  Field& reason = fields.add("reason", &Envelope::reason, "why the status is not `ok`")
                      .column(5, "reason", "why the status is not ok");
  if (statuses == Json::array({"ok"})) reason.one_of({""});
  status.one_of(std::move(statuses));
  describe_warnings(fields);
  fields
      .add("findings", &Envelope::findings,
           "why it falls short, [below](#findings); not of a baseline")
      .since(9);
}

void Setting::describe(Fields& fields) {
  fields.add("value", &Setting::value, "null: not set");
  fields.add("origin", &Setting::origin, "where the value comes from")
      .one_of({"default", "file", "environment", "command_line"});
}

const Json& setting(const Settings& settings, std::string_view key) {
  static const Json none;
  const auto found = std::ranges::find(settings, key, &Settings::value_type::first);
  return found == settings.end() ? none : found->second.value;
}

void update(Settings& settings, const Settings& others) {
  for (const auto& [key, setting] : others) {
    const auto found = std::ranges::find(settings, key, &Settings::value_type::first);
    if (found == settings.end())
      settings.emplace_back(key, setting);
    else
      found->second = setting;
  }
}

void Container::describe(Fields& fields) {
  fields.add("image", &Container::image, "name");
  fields.add("runtime", &Container::runtime, "docker, podman, apptainer, …");
  fields.add("digest", &Container::digest, "SHA-256 of the image").pattern(kSha256Pattern);
  fields.add("mpi", &Container::mpi, "where the launcher runs").one_of({"outside", "inside"});
}

void Gpu::describe(Fields& fields) {
  fields.add("index", &Gpu::index, "among the visible ones").at_least(0);
  fields.add("name", &Gpu::name, "as the driver has it");
  fields.add("uuid", &Gpu::uuid, "`GPU-…`");
  fields.add("pci_bus_id", &Gpu::pci_bus_id, "place on the PCI bus");
  fields.add("memory_bytes", &Gpu::memory_bytes, "in all").unit("bytes").at_least(0);
  fields.add("near_cpus", &Gpu::near_cpus, "logical CPUs of its NUMA node");
}

void Nic::describe(Fields& fields) {
  fields.add("name", &Nic::name, "of the interface");
  fields.add("state", &Nic::state, "`up`, `down`, …");
  fields.add("speed_mbps", &Nic::speed_mbps, "of the link").unit("Mbit/s").at_least(0);
  fields.add("driver", &Nic::driver, "kernel module");
  fields.add("firmware", &Nic::firmware, "version");
}

void RdmaDevice::describe(Fields& fields) {
  fields.add("name", &RdmaDevice::name, "of the device");
  fields.add("rate", &RdmaDevice::rate, "of its first port");
  fields.add("firmware", &RdmaDevice::firmware, "version");
}

void System::describe(Fields& fields) {
  fields.add("host", &System::host, "name").column(82, "host", "of rank 0");
  fields.add("kernel", &System::kernel, "name and version").column(86, "kernel");
  fields.add("distribution", &System::distribution, "name and version");
  fields.add("virtualisation", &System::virtualisation, "what the kernel runs on")
      .one_of({"virtual", "bare metal", "container"})
      .column(85, "virtualisation");
  fields.add("container", &System::container, "around the program").since(5);
  fields.add("hypervisor", &System::hypervisor, "of a virtual machine");
  fields.add("machine", &System::machine, "vendor and product");
  fields.add("bios", &System::bios, "vendor, version and date");
  fields.add("cpu_model", &System::cpu_model, "of CPU 0").column(83, "cpu_model");
  fields.add("sockets", &System::sockets, "of the whole machine").at_least(0);
  fields.add("cores", &System::cores, "physical, of the whole machine").at_least(0);
  fields.add("threads", &System::threads, "logical CPUs of the whole machine").at_least(0);
  fields.add("smt", &System::smt, "whether a core has several threads");
  fields.add("numa_nodes", &System::numa_nodes, "of the whole machine").at_least(0);
  fields.add("memory_bytes", &System::memory_bytes, "of the whole machine")
      .unit("bytes")
      .at_least(0);
  fields.add("cpu_quota", &System::cpu_quota, "that the cgroup allows").unit("CPUs").above(0);
  fields.add("governor", &System::governor, "of cpufreq, CPU 0");
  fields.add("gpu_driver", &System::gpu_driver, "version");
  fields.add("gpus", &System::gpus, "visible ones");
  fields.add("cuda", &System::cuda, "version at run time").column(88, "cuda");
  fields.add("cudnn", &System::cudnn, "version at run time");
  fields.add("nccl", &System::nccl, "version at run time").column(89, "nccl");
  fields.add("mpi", &System::mpi, "version at run time").column(87, "mpi");
  fields.add("openmp", &System::openmp, "file name of the OpenMP runtime").since(2);
  fields
      .add("denormals", &System::denormals,
           "numbers below 1.2e-38 on the CPU: `flushed` to zero or `kept`")
      .since(2);
  fields.add("nics", &System::nics, "network interfaces");
  fields.add("rdma", &System::rdma, "InfiniBand and RoCE devices");
}

}  // namespace scalemark::record
