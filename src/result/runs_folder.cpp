// See runs_folder.hpp.
#include "result/runs_folder.hpp"

#include <fmt/format.h>

#include "error.hpp"

namespace scalemark {
namespace {

/// The values of all keys "path" and "log" below `json`.
void collect_paths(const Json& json, std::set<std::string>& paths) {
  for (const auto& [key, value] : json.items()) {
    if ((key == "path" || key == "log") && value.is_string())
      paths.insert(value.get<std::string>());
    if (value.is_structured()) collect_paths(value, paths);
  }
}

/// Empty where there is no record or it is not ours.
std::set<std::string> runs_named_by(const std::filesystem::path& path) {
  std::set<std::string> paths;
  try {
    const Json record = read_record(path);
    for (const char* key : {"points", "alone"})
      if (record.contains(key)) collect_paths(record[key], paths);
  } catch (const std::exception&) {
    return {};
  }
  return paths;
}

}  // namespace

RunsFolder::RunsFolder(const std::filesystem::path& record)
    : folder_(std::filesystem::path(record).replace_extension(".runs")),
      older_(runs_named_by(record)) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error)
    throw ResultError(fmt::format("cannot make the folder of run records {}: {}", folder_.string(),
                                  error.message()));
}

RunsFolder::~RunsFolder() {
  std::error_code ignored;
  std::filesystem::remove(folder_, ignored);  // refused where there is a file in it
}

void RunsFolder::remove_older() {
  for (const std::string& path : older_) {
    std::error_code ignored;
    std::filesystem::remove(folder_ / std::filesystem::path(path).filename(), ignored);
  }
}

}  // namespace scalemark
