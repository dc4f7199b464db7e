// A made /proc and /sys in a temporary folder, removed with the object.
#pragma once

#include <filesystem>
#include <string>

#include "support/test_folder.hpp"

namespace scalemark::test {

class Tree {
 public:
  Tree& file(const std::string& path, const std::string& text) {
    folder_.write(path, text);
    return *this;
  }
  const std::filesystem::path& root() const { return folder_.path(); }

 private:
  TestFolder folder_;
};

}  // namespace scalemark::test
