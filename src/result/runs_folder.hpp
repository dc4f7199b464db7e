// FILE.runs/ beside a record FILE.json: the run records and logs that it names.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "result/records.hpp"

namespace scalemark {

class RunsFolder {
 public:
  /// Makes the folder of the record `record`, which need not exist; throws ResultError.
  explicit RunsFolder(const std::filesystem::path& record);
  ~RunsFolder();  ///< removes the folder where nothing was written into it
  RunsFolder(const RunsFolder&) = delete;
  RunsFolder& operator=(const RunsFolder&) = delete;

  const std::filesystem::path& path() const { return folder_; }
  /// A file of the folder as the record names it: relative to the record's own folder.
  std::string name_of(const std::filesystem::path& file) const {
    return (folder_.filename() / file.filename()).string();
  }
  /// What is there and no finished record names, by file name.
  std::set<std::string> unnamed() const;
  /// What an earlier command has left, and no record names, goes with what the record names that is
  /// replaced; but for what is kept.
  void replace_strays();
  /// The record to come names it too.
  void keep(const std::filesystem::path& file);
  /// Removes what only the record that has been replaced named; where it is kept as FILE.json.~N~,
  /// moves that to FILE.runs.~N~, which readers of folders pass by.
  void remove_older(const std::filesystem::path& kept_record);

 private:
  std::filesystem::path folder_;
  std::set<std::string> older_;  ///< files that the record which is to be replaced names
  std::set<std::string> kept_;   ///< names of files that keep() was told of
  bool finished_ = false;        ///< that record is
};

}  // namespace scalemark
