// The keys of an instances record.
#include "record/instances.hpp"

namespace scalemark {
namespace record {

namespace {
constexpr std::string_view kCpusPattern = "^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$";
}  // namespace

void Place::describe(Fields& fields) {
  fields.add("kind", &Place::kind, "what computes");
  fields.add("cpus", &Place::cpus, "logical, `0-3,8`").pattern(kCpusPattern);
  fields.add("numa", &Place::numa, "NUMA nodes of these").at_least(0);
  fields.add("gpu_uuid", &Place::gpu_uuid, "of the GPU or MIG slice")
      .filled()
      .unknown_where("kind", "cpu", true)
      .otherwise("a slot of CPUs alone");
  fields.add("gpu_name", &Place::gpu_name, "of the GPU or MIG slice").unknown_where("kind", "cpu");
  fields.add("host", &Place::host, "name").filled();
}

void Slot::describe(Fields& fields) {
  fields.add("kind", &Slot::kind, "what computes");
  fields
      .add("cpus", &Slot::cpus,
           "logical, `0-3,8`; of all places, null where these are on several hosts")
      .pattern(kCpusPattern)
      .otherwise("a slot of several places");
  fields.add("numa", &Slot::numa, "NUMA nodes of these").at_least(0);
  fields.add("gpu_uuid", &Slot::gpu_uuid, "of the GPU or MIG slice")
      .unknown_where("kind", "cpu")
      .otherwise("a slot of several places");
  fields.add("gpu_name", &Slot::gpu_name, "of the GPU or MIG slice")
      .unknown_where("kind", "cpu")
      .otherwise("a slot of several places");
  fields.add("slot", &Slot::slot, "number").at_least(0);
  fields.add("places", &Slot::places, "of the ranks of its job").filled().since(5);
}

void LatencyQuantiles::describe(Fields& fields) {
  fields.add("p50", &LatencyQuantiles::p50, "of steps or queries").unit("s").above(0);
  fields.add("p90", &LatencyQuantiles::p90, "of steps or queries").unit("s").above(0);
  fields.add("p99", &LatencyQuantiles::p99, "of steps or queries").unit("s").above(0);
}

void LaunchedJob::describe(Fields& fields) {
  fields.add("slot", &LaunchedJob::slot, "number").at_least(0);
  fields.add("run", &LaunchedJob::run, "id of its record")
      .pattern(kUuidPattern)
      .known(Presence::when_ok)
      .otherwise("an instance left no record");
  fields.add("path", &LaunchedJob::path, "of its record, relative to this file")
      .filled()
      .otherwise("without a record, or without --output, there is no file");
  fields.add("log", &LaunchedJob::log, "of what it printed, likewise")
      .filled()
      .otherwise("kept of launches that are not ok, with --output");
  fields.add("throughput", &LaunchedJob::throughput, "in its own window").unit("units/s").above(0);
  fields.add("units", &LaunchedJob::units, "in its window").above(0);
  fields
      .add("window_seconds", &LaunchedJob::window_seconds,
           "start and end of its measured loop, after the first start")
      .unit("s")
      .known(Presence::when_ok);
  fields.add("latency_seconds", &LaunchedJob::latency_seconds, "of its steps or queries");
}

void LaunchOfJobs::describe(Fields& fields) {
  fields.add("repeat", &LaunchOfJobs::repeat, "number").at_least(1);
  fields.add("status", &LaunchOfJobs::status, "of the launch");
  fields.add("reason", &LaunchOfJobs::reason, "why it is not `ok`");
  fields
      .add("throughput", &LaunchOfJobs::throughput,
           "units of all instances / (last end - first start)")
      .unit("units/s")
      .above(0)
      .known(Presence::only_when_ok);
  fields.add("sum_of_rates", &LaunchOfJobs::sum_of_rates, "each in its own window")
      .unit("units/s")
      .above(0)
      .known(Presence::only_when_ok);
  fields.add("overlap", &LaunchOfJobs::overlap, "intersection of the windows / their span")
      .within(0, 1)
      .known(Presence::only_when_ok);
  fields.add("instances", &LaunchOfJobs::instances, "by slot").filled();
}

void SlotAlone::describe(Fields& fields) {
  fields.add("slot", &SlotAlone::slot, "number").at_least(0);
  fields.add("status", &SlotAlone::status, "`ok` if every repeat is");
  fields.add("reason", &SlotAlone::reason, "why it is not `ok`");
  fields.add("throughput", &SlotAlone::throughput, "mean over repeats")
      .unit("units/s")
      .above(0)
      .known(Presence::only_when_ok);
  fields
      .add("latency_seconds", &SlotAlone::latency_seconds,
           "`p50`, `p90`, `p99` of the steps or queries of all repeats")
      .known(Presence::only_when_ok);
  fields.add("repeats", &SlotAlone::repeats, "one a launch").known(Presence::when_ok);
}

void CumulativeRate::describe(Fields& fields) {
  fields.add("mean", &CumulativeRate::mean, "over repeats")
      .unit("units/s")
      .above(0)
      .column(34, "throughput");
  fields.add("ci95", &CumulativeRate::ci95, "its 95 % interval")
      .unit("units/s")
      .column(35, "throughput")
      .otherwise("one repeat has no interval: ask for more with --repeats");
  fields.add("sum_of_rates", &CumulativeRate::sum_of_rates, "each in its own window")
      .unit("units/s")
      .above(0);
}

void SlotOfPoint::describe(Fields& fields) {
  fields.add("slot", &SlotOfPoint::slot, "number").at_least(0);
  fields.add("throughput", &SlotOfPoint::throughput, "with neighbours").unit("units/s").above(0);
  fields.add("alone", &SlotOfPoint::alone, "throughput without").unit("units/s").above(0);
  fields.add("ratio", &SlotOfPoint::ratio, "of the two").above(0);
  fields.add("latency_seconds", &SlotOfPoint::latency_seconds, "likewise, with neighbours");
  fields.add("alone_latency_seconds", &SlotOfPoint::alone_latency_seconds, "likewise, without");
}

void InstancesPoint::describe(Fields& fields) {
  fields.add("instances", &InstancesPoint::instances, "how many at once, on the first slots")
      .at_least(1)
      .column(16, "instances", "jobs side by side");
  fields.add("status", &InstancesPoint::status, "`ok` if every repeat is").column(4, "status");
  fields.add("reason", &InstancesPoint::reason, "why it is not `ok`").column(5, "reason");
  fields
      .add("cumulative", &InstancesPoint::cumulative,
           "units of all instances / (last end - first start)")
      .known(Presence::only_when_ok);
  fields.add("speedup", &InstancesPoint::speedup, "against slot 0 alone")
      .above(0)
      .column(41, "speedup")
      .known(Presence::when_all_ok)
      .otherwise("slot 0 alone was not measured");
  fields.add("efficiency", &InstancesPoint::efficiency, "against the same slots alone")
      .above(0)
      .column(44, "efficiency")
      .known(Presence::when_all_ok)
      .otherwise("not every slot was measured alone");
  fields.add("overlap", &InstancesPoint::overlap, "of the measured windows, least repeat")
      .within(0, 1)
      .known(Presence::only_when_ok);
  fields
      .add("overlaps_enough", &InstancesPoint::overlaps_enough,
           "whether it reaches `least_overlap`")
      .known(Presence::only_when_ok);
  fields.add("per_instance", &InstancesPoint::per_instance, "by slot")
      .known(Presence::only_when_ok);
  fields.add("repeats", &InstancesPoint::repeats, "one a launch").known(Presence::when_ok);
}

}  // namespace record

void InstancesResult::describe(Fields& fields) {
  using R = InstancesResult;
  Envelope::describe(fields, "instances");
  fields.add("job", &R::job, "what an instance is").one_of({"run", "infer"});
  fields.add("model", &R::model, "name").filled();
  fields.add("unit", &R::unit, "of rates").one_of(record::unit_words());
  fields.add("ranks_per_instance", &R::ranks_per_instance, "ranks of each job")
      .at_least(1)
      .since(5)
      .column(15, "ranks");
  fields.add("repeat_unit", &R::repeat_unit, "what is repeated")
      .one_of({"launch"})
      .column(33, "repeat_unit");
  fields
      .add("least_overlap", &R::least_overlap,
           "of the measured windows; points below are warned of")
      .above(0)
      .at_most(1);
  record::describe_config(fields, &R::config);
  fields
      .add("config_hash", &R::config_hash,
           "SHA-256 of the keys that decide what is measured, the largest point and the repeats")
      .pattern(record::kSha256Pattern);
  fields.add("slots", &R::slots, "where the jobs run").filled();
  fields.add("alone", &R::alone, "every slot with one instance and no neighbours").filled();
  fields.add("points", &R::points, "by `instances`").filled();
  fields.add("system", &R::system, "the machine of the command");
  record::describe_environment(fields, &R::environment);
}

}  // namespace scalemark
