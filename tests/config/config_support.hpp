// Shorthands of the configuration tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "config/json_text.hpp"
#include "config/load.hpp"
#include "error.hpp"

namespace scalemark {

using Words = std::vector<std::string>;

inline LoadedConfig load(const Words& arguments, const Words& environment = {},
                         Command command = Command::run) {
  return load_config(command, arguments, environment);
}
inline LoadedConfig load_scale(const Words& arguments) {
  return load(arguments, {}, Command::scale);
}

/// Whether a shipped file is a plan of a sweep, by the schema that it names.
inline bool is_plan(const std::filesystem::path& path) {
  return read_json_text(path, "plan").find("sweep.schema.json") != std::string::npos;
}

/// The message of the ConfigError that `f` must throw.
template <typename F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  ADD_FAILURE() << "was not refused";
  return {};
}
inline std::string refused(const Words& arguments, const Words& environment = {},
                           Command command = Command::run) {
  return refusal([&] { load(arguments, environment, command); });
}

/// A model for which a key has a meaning.
inline std::string model_with(const std::string& key) {
  if (key.starts_with("length_")) return "transformer_tiny";
  return key == "sequence_length" || key == "global_batch_tokens" ? "transformer_tiny" : "resnet50";
}

/// A file that is gone after the test.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text) {
    std::string name = (std::filesystem::temp_directory_path() / "config_test_XXXXXX").string();
    close(mkstemp(name.data()));
    path_ = name;
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace scalemark
