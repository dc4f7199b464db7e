// The keys of a baseline.
#include "record/baseline.hpp"

namespace scalemark {

void Description<Work>::of(Fields& fields) {
  fields.add("units", &Work::units, "of all ranks").above(0);
  fields.add("seconds", &Work::seconds, "that they took").unit("s").above(0);
}

namespace record {

void BaselineReference::describe(Fields& fields) {
  fields.add("id", &BaselineReference::id, "of its record").pattern(kUuidPattern);
  fields.add("created_at", &BaselineReference::created_at, "RFC 3339, UTC").pattern(kTimePattern);
  fields.add("checksum", &BaselineReference::checksum, "of its content").pattern(kSha256Pattern);
}

void PreviousBaseline::describe(Fields& fields) {
  BaselineReference::describe(fields);
  fields.add("because", &PreviousBaseline::because, "why it was replaced").filled();
}

void BaselineLaunch::describe(Fields& fields) {
  using L = BaselineLaunch;
  fields.add("id", &L::id, "of the launch's record").pattern(kUuidPattern);
  fields.add("started_at", &L::started_at, "RFC 3339, UTC").pattern(kTimePattern);
  fields.add("host", &L::host, "of rank 0");
  fields.add("unit", &L::unit, "of its work").one_of(unit_words());
  fields.add("ranks", &L::ranks, "of the launch").at_least(1);
  fields.add("sweep", &L::sweep, "repeat of its sweep; null: of none").at_least(0);
  fields.add("repeats", &L::repeats, "one; of a curve its rounds").filled();
  fields.add("metrics", &L::metrics, "beside throughput, by name");
  fields.add("keys", &L::keys, "what was measured and how it was launched");
  fields.add("defaults", &L::defaults, "keys that nobody had set").each(1);
  fields.add("unknown", &L::unknown, "keys that the record does not tell").each(1);
  fields.add("environment", &L::environment, "variables of libraries");
}

}  // namespace record

void Baseline::describe(Fields& fields) {
  describe_origin(fields, "baseline");
  fields.add("status", &Baseline::status, "`ok`").one_of({"ok"});
  fields.add("reason", &Baseline::reason, "empty").size(0, 0);
  describe_warnings(fields);
  fields.add("label", &Baseline::label, "of the set of launches").filled();
  fields.add("revision", &Baseline::revision, "git revision of the build that was measured")
      .filled();
  fields.add("fingerprint", &Baseline::fingerprint, "the machine").types({"object"});
  fields.add("launches", &Baseline::launches, "of the set").filled();
  fields.add("previous", &Baseline::previous, "the baseline that it replaces")
      .otherwise("it replaces none");
  fields
      .add("checksum", &Baseline::checksum,
           "SHA-256 of the other keys, sorted, without white space")
      .pattern(record::kSha256Pattern);
}

}  // namespace scalemark
