// Makes and cleans the folder of runs beside a record.
#include "result/runs_folder.hpp"

#include <fmt/format.h>

#include "error.hpp"
#include "result/outcome.hpp"

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

}  // namespace

RunsFolder::RunsFolder(const std::filesystem::path& record)
    : folder_(std::filesystem::path(record).replace_extension(".runs")) {
  const Json older = record_at(record);
  if (!older.is_null()) finished_ = envelope_of(older).status == Status::ok;
  for (const char* key : {"points", "alone"})
    if (older.contains(key)) collect_paths(older[key], older_);
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

std::set<std::string> RunsFolder::unnamed() const {
  std::set<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored))
    if (!finished_ || !older_.contains(name_of(entry.path())))
      names.insert(entry.path().filename().string());
  return names;
}

void RunsFolder::replace_strays() {
  for (const std::string& name : unnamed())
    if (!kept_.contains(name) && (name.ends_with(".json") || name.ends_with(".log")))
      older_.insert(name_of(name));
}

void RunsFolder::keep(const std::filesystem::path& file) {
  older_.erase(name_of(file));
  kept_.insert(file.filename().string());
}

void RunsFolder::remove_older(const std::filesystem::path& kept_record) {
  std::error_code ignored;
  const std::filesystem::path kept = folder_.string() + kept_record.extension().string();
  if (!kept_record.empty() && !older_.empty()) std::filesystem::create_directory(kept, ignored);
  for (const std::string& path : older_) {
    const std::filesystem::path name = std::filesystem::path(path).filename();
    if (kept_record.empty())
      std::filesystem::remove(folder_ / name, ignored);
    else
      std::filesystem::rename(folder_ / name, kept / name, ignored);
  }
}

}  // namespace scalemark
