// Which script and which Python `scalemark report` becomes.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "error.hpp"
#include "launch/engine_start.hpp"
#include "support/test_folder.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

void make_file(const fs::path& path) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << "x";
}

TEST(ReportStart, TheScriptAndThePythonOfTheSourceTree) {
  const TestFolder folder;
  const fs::path root = folder.path();
  make_file(root / "scripts/report");
  const fs::path program = root / "build/release/bin/scalemark";
  EXPECT_EQ(find_report_program(program, "", {}).script, root / "scripts/report");
  EXPECT_EQ(find_report_program(program, "", {}).python, "python3");
  make_file(root / ".venv/bin/python");
  EXPECT_EQ(find_report_program(program, "", {}).python, root / ".venv/bin/python");
  EXPECT_EQ(find_report_program(program, "", {{"SCALEMARK_PYTHON", "/opt/python"}}).python,
            "/opt/python");
}

TEST(ReportStart, OfAnInstalledTreeThePythonBesideLibTorch) {
  const TestFolder folder;
  const fs::path share = folder.path() / "opt/share/scalemark";
  make_file(share / "scripts/report");
  const fs::path venv = folder.path() / "clone/.venv";
  const fs::path torch = venv / "lib/python3.11/site-packages/torch/lib/libtorch_cpu.so";
  const fs::path program = folder.path() / "opt/bin/scalemark";
  EXPECT_EQ(find_report_program(program, torch, {}).python, "python3");
  make_file(venv / "pyvenv.cfg");
  EXPECT_EQ(find_report_program(program, torch, {}).script, share / "scripts/report");
  EXPECT_EQ(find_report_program(program, torch, {}).python, venv / "bin/python");
}

TEST(ReportStart, WithoutAScriptItIsRefused) {
  EXPECT_THROW(find_report_program("/nowhere/bin/scalemark", "", {}), EnvironmentError);
}

TEST(ReportStart, APythonThatCannotBeStartedIsNamed) {
  try {
    become_report({"/nowhere/python", "script"}, {});
    FAIL();
  } catch (const EnvironmentError& error) {
    EXPECT_NE(std::string(error.what()).find("SCALEMARK_PYTHON"), std::string::npos);
  }
}

}  // namespace
}  // namespace scalemark
