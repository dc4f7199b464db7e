// Files that are no records: their schemas are those of their descriptions.
#include <gtest/gtest.h>

#include "record/committed.hpp"
#include "record/schema.hpp"
#include "result/journal.hpp"
#include "result/published_curve.hpp"
#include "result/sweep_folder.hpp"

namespace scalemark::format_schema_test {
namespace {

TEST(FormatSchema, IsCommittedAsGenerated) {
  test::expect_committed(
      "journal_entry",
      format_schema("A line of the journal of scalemark sweep: a launch that has ended",
                    fields_of<JournalEntry>()));
  test::expect_committed(
      "planned_launches",
      format_schema("planned.json of a sweep's folder: what the last scalemark sweep was to launch",
                    fields_of<PlannedLaunches>()));
  test::expect_committed("published_curve",
                         format_schema("scalemark published curve", fields_of<PublishedCurve>()));
}

}  // namespace
}  // namespace scalemark::format_schema_test
