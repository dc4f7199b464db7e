#include "session/curve_files.hpp"

#include <fmt/format.h>

#include "error.hpp"

namespace scalemark {
namespace {

/// Paths of the run records that an existing curve names; empty where there is none or it is not
/// ours.
std::set<std::string> runs_named_by(const std::filesystem::path& curve) {
  std::set<std::string> paths;
  try {
    const Json record = read_record(curve);
    for (const auto& point : record.at("points"))
      for (const auto& repeat : point.at("repeats"))
        paths.insert(repeat.at("path").get<std::string>());
  } catch (const std::exception&) {
    return {};
  }
  return paths;
}

}  // namespace

CurveFiles::CurveFiles(const std::filesystem::path& curve_path)
    : curve_(curve_path),
      runs_(std::filesystem::path(curve_.path()).replace_extension(".runs")),
      older_(runs_named_by(curve_.path())) {
  std::error_code error;
  std::filesystem::create_directories(runs_, error);
  if (error)
    throw ResultError(fmt::format("cannot make the folder of run records {}: {}", runs_.string(),
                                  error.message()));
}

CurveFiles::~CurveFiles() {
  std::error_code ignored;
  std::filesystem::remove(runs_, ignored);  // refused where there is a file in it
}

std::string CurveFiles::write_run(const Json& record, int ranks, int round, bool baseline) {
  const std::string id = record.at("id").get<std::string>().substr(0, 8);
  ResultFile file(
      runs_ / fmt::format("ranks{}-round{}{}-{}.json", ranks, round, baseline ? "-none" : "", id));
  file.write(record);
  return (runs_.filename() / file.path().filename()).string();
}

void CurveFiles::write_curve(const Json& record) {
  curve_.write(record);
  for (const std::string& path : older_) {
    const auto file = runs_ / std::filesystem::path(path).filename();
    std::error_code ignored;
    std::filesystem::remove(file, ignored);
  }
}

}  // namespace scalemark
