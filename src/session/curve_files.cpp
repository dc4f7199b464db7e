#include "session/curve_files.hpp"

#include <fmt/format.h>

namespace scalemark {

std::string CurveFiles::write_run(const Json& record, int ranks, int round, bool baseline) {
  const std::string id = record.at("id").get<std::string>().substr(0, 8);
  ResultFile file(runs_.path() / fmt::format("ranks{}-round{}{}-{}.json", ranks, round,
                                             baseline ? "-none" : "", id),
                  /*reserved_bytes=*/0);
  file.write(record);
  return runs_.name_of(file.path());
}

void CurveFiles::write_curve(const Json& record) {
  curve_.write(record);
  runs_.remove_older();
}

}  // namespace scalemark
