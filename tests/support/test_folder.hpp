// A folder that is gone after the test, and files in it.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "platform/posix_file.hpp"

namespace scalemark {

class TestFolder : public TemporaryFolder {
 public:
  std::string operator/(const std::string& name) const { return (path() / name).string(); }

  std::string write(const std::string& name, const std::string& text,
                    bool executable = false) const {
    const auto file = path() / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
    if (executable) std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file.string();
  }
};

}  // namespace scalemark
