// Builds launches: places ranks on hosts, puts them into containers, and finds the programs that
// are needed.
#include "launch/launch_builder.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "config/json_text.hpp"
#include "config/keys/own_model.hpp"
#include "config/names.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "json.hpp"
#include "platform/container.hpp"
#include "platform/platform.hpp"
#include "platform/slots.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kLargestHostfile = 16 << 20;  // half a million hosts

}  // namespace

int cores_per_host() {
  static const int cores = physical_cores();  // some milliseconds; a sweep asks for each launch
  return cores;
}

Resources find_resources(Device device, const std::optional<std::string>& hostfile,
                         const std::map<std::string, std::string>& environment) {
  Resources resources;
  resources.cores_per_host = cores_per_host();
  if (device != Device::cpu) resources.gpus_per_host = static_cast<int>(visible_gpus().gpus.size());
  const auto nodes = environment.find("SLURM_JOB_NUM_NODES");
  const auto named = hostfile ? hosts_in(*hostfile) : std::set<std::string>();
  if (hostfile)
    resources.hosts = static_cast<int>(named.size());
  else if (nodes != environment.end())
    resources.hosts = static_cast<int>(
        std::clamp<std::int64_t>(parse_integer(nodes->second).value_or(1), 1, 1 << 20));
  resources.elsewhere = resources.hosts > 1 || !std::ranges::all_of(named, is_this_host);
  return resources;
}

Placement place_ranks(int ranks, const Resources& resources, std::optional<int> ranks_per_node) {
  const int per_host = ranks_per_node.value_or((ranks + resources.hosts - 1) / resources.hosts);
  return {std::max(1, resources.cores_per_host / per_host), per_host > resources.cores_per_host};
}

void refuse_too_few_hosts(int ranks, const Resources& resources, int ranks_per_node) {
  if (ranks <= static_cast<std::int64_t>(ranks_per_node) * resources.hosts) return;
  throw ConfigError(fmt::format(
      "{} ranks, {} on each node, need {} nodes, and here {} {}: give more --ranks_per_node, "
      "fewer ranks or more nodes (--hostfile, sbatch --nodes)",
      ranks, ranks_per_node, (ranks + ranks_per_node - 1) / ranks_per_node,
      resources.hosts == 1 ? "is" : "are", resources.hosts));
}

std::set<std::string> hosts_in(const std::string& hostfile) {
  std::istringstream lines;
  try {
    lines.str(read_input_file(hostfile, kLargestHostfile));
  } catch (const InputFault& fault) {
    refuse_at("--hostfile", fmt::format("{} can't be read ({}); give a file with one host a line",
                                        quote(hostfile), fault.what()));
  }
  std::set<std::string> hosts;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string host;
    if (words >> host && host[0] != '#') hosts.insert(host);
  }
  if (hosts.empty()) refuse_at("--hostfile", quote(hostfile) + " names no host");
  return hosts;
}

namespace {

using Environment = std::map<std::string, std::string>;

std::vector<std::string> program_of(const LaunchDescription& described) {
  std::vector<std::string> words{described.program.string(),
                                 std::string(name_of(described.command))};
  words.insert(words.end(), described.arguments.begin(), described.arguments.end());
  if (described.ranks_per_node && described.tells_ranks_per_node)
    words.push_back(fmt::format("--ranks_per_node={}", *described.ranks_per_node));
  if (described.output) words.push_back("--output=" + described.output->string());
  return words;
}

/// Fills in what the launcher is asked for.
void place(LaunchRequest& request, const LaunchDescription& described,
           const Environment& environment) {
  request.launcher =
      described.launcher == Launcher::automatic ? detect_launcher(environment) : described.launcher;
  request.hydra = built_for_hydra();
  request.ranks_per_node = described.ranks_per_node;
  request.hostfile = described.hostfile;
  request.hosts = described.hosts;
  for (std::string& host : request.hosts)
    if (host.empty()) host = request.launcher == Launcher::srun ? host_name() : "localhost";
  // mpirun starts its daemons by steps of Slurm, beside those of other instances.
  if (described.binds_itself && environment.contains("SLURM_JOB_ID"))
    request.environment.emplace_back("SLURM_OVERLAP", "1");
}

/// Sets the number of threads where ranks are not bound. A rank that may run on more than its share
/// of the cores computes with as many threads as one that is bound to it.
void keep_threads(LaunchRequest& request, const Environment& environment) {
  if (request.binding == Binding::core) return;
  for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}) {
    const bool is_set = environment.contains(name) ||
                        std::ranges::any_of(request.environment, [&](const auto& variable) {
                          return variable.first == name;
                        });
    if (!is_set) request.environment.emplace_back(name, std::to_string(request.cpus_per_rank));
  }
}

}  // namespace

LaunchRequest build_launch(const LaunchDescription& described, const Environment& environment) {
  LaunchRequest request;
  request.ranks = described.ranks;
  request.cpus_per_rank = described.cpus_per_rank;
  request.oversubscribe = described.oversubscribe;
  request.binding = described.binding;
  request.binds_itself = described.binds_itself;
  request.direct = described.direct;
  request.elsewhere = described.elsewhere;
  request.environment = described.environment;
  request.program = program_of(described);
  if (!request.direct) place(request, described, environment);
  if (!described.fixed_threads) keep_threads(request, environment);
  put_in_container(request, described.container,
                   {described.results, described.gpus, described.own_program});
  do_without_ssh(request, environment, described.elsewhere);
  // Where Slurm puts a step is known only where the ranks are told their host.
  request.here = !request.elsewhere && (request.launcher != Launcher::srun || request.binds_itself);
  return request;
}

void tell_ranks(LaunchRequest& request) {
  // srun counts hardware threads, mpirun cores.
  const char* what = request.launcher == Launcher::srun ? "cpus" : "core";
  const std::string binding = !request.is_bound() ? "none"
                              : request.binding == Binding::core
                                  ? fmt::format("{}:{}", what, request.cpus_per_rank)
                                  : to_string(request.binding);
  // Ranks that bind themselves know by what.
  if (!request.binds_itself) setenv("SMK_INTERNAL_BINDING", binding.c_str(), 1);
  if (request.elsewhere) request.forward = variables_for_hosts(process_environment());
}

std::vector<std::string> variables_for_hosts(const Environment& environment) {
  constexpr std::array<std::string_view, 4> kOurs{"SCALEMARK_", "SMK_INTERNAL_", "TCMALLOC_",
                                                  "THP_"};
  std::vector<std::string> names;
  for (const auto& [name, value] : environment)
    if (begins_with_one_of(name, kOurs) ||
        (is_library_variable(name) && !name.starts_with("OMPI_MCA_")))
      names.push_back(name);
  return names;
}

namespace {
namespace fs = std::filesystem;

constexpr std::string_view kDigest = "@sha256:";

std::string runtime_of(const ContainerSettings& settings, Launcher launcher) {
  const std::string standard = launcher == Launcher::srun ? "pyxis" : "apptainer";
  return settings.container_runtime.value_or(standard);
}

/// Returns the path from the root, without a slash at the end.
std::string full_name(const fs::path& folder) {
  const fs::path name = fs::absolute(folder).lexically_normal();
  return (name.has_filename() ? name : name.parent_path()).string();
}

/// Returns the folders that the container shows under their own names.
std::vector<std::string> shown_folders(const LaunchRequest& request, const ContainerView& view) {
  std::vector<std::string> folders{full_name(view.results)};
  if (const std::string cwd = fs::current_path().string(); cwd != folders.front())
    folders.push_back(cwd);
  if (!view.own_program)
    folders.push_back(fs::path(request.program.front()).parent_path().parent_path().string());
  for (const std::string& folder : folders)
    if (folder.find_first_of(",:") != folder.npos)
      refuse_at("--container",
                fmt::format("the folder {} has a comma or a colon in its name, which "
                            "part the folders that a container shows; choose "
                            "another one",
                            quote(folder)));
  return folders;
}

std::vector<std::string> apptainer_words(const std::string& program, const std::string& image,
                                         const std::vector<std::string>& folders, bool gpus) {
  std::vector<std::string> words{program, "exec"};
  if (gpus) words.emplace_back("--nv");
  words.insert(words.end(), {"--bind", join(folders, ","), "--pwd", fs::current_path().string()});
  words.push_back(image);
  return words;
}

/// Returns flags of srun, which replace the program that enters the container with other runtimes.
std::vector<std::string> pyxis_words(const std::string& image,
                                     const std::vector<std::string>& folders) {
  std::vector<std::string> mounts;
  for (const std::string& folder : folders) mounts.push_back(folder + ":" + folder);
  return {"--container-image=" + image, "--container-mounts=" + join(mounts, ","),
          "--container-workdir=" + fs::current_path().string()};
}

/// Returns `word` with names replaced by their values, in which nothing is replaced again.
std::string filled(const std::string& word,
                   const std::vector<std::pair<std::string, std::string>>& values) {
  std::string made;
  for (std::size_t at = 0; at < word.size();) {
    const auto named = std::ranges::find_if(values, [&](const auto& value) {
      return word.compare(at, value.first.size(), value.first) == 0;
    });
    made += named == values.end() ? word.substr(at, 1) : named->second;
    at += named == values.end() ? 1 : named->first.size();
  }
  return made;
}

/// Returns the user's own words. They are split at spaces before anything is inserted, so that no
/// name becomes two words, and no shell reads them.
std::vector<std::string> own_words(const std::string& runtime, const std::string& image,
                                   const ContainerView& view) {
  if (runtime.find("{image}") == runtime.npos)
    refuse_at("--container_runtime",
              fmt::format("{} is no runtime (legal: apptainer, singularity, pyxis), and names no "
                          "{{image}}, as \"podman run --rm {{image}}\" does",
                          quote(runtime)));
  std::vector<std::string> words;
  std::istringstream text(runtime);
  for (std::string word; text >> word;)
    words.push_back(filled(word, {{"{image}", image},
                                  {"{results}", full_name(view.results)},
                                  {"{cwd}", fs::current_path().string()}}));
  return words;
}

/// Returns the SHA-256 of an image that is a file, or the digest that a name contains.
ContainerFacts facts_of(const std::string& image, const std::string& runtime) {
  ContainerFacts facts{image, runtime, {}, {}, "outside"};
  std::error_code error;
  const std::size_t at = image.find(kDigest);
  const std::string said = at == image.npos ? "" : image.substr(at + kDigest.size());
  if (said.size() == 64 && said.find_first_not_of("0123456789abcdef") == said.npos)
    facts.digest = said;
  else if (fs::is_regular_file(image, error))
    facts.digest = digest_of_file("--container", image);
  else if (fs::is_directory(image, error))
    facts.no_digest = "the image is a folder";
  else
    facts.no_digest = "the image's name has none: give NAME@sha256:DIGEST, or a file";
  return facts;
}

}  // namespace

void put_in_container(LaunchRequest& request, const ContainerSettings& settings,
                      const ContainerView& view) {
  unsetenv(kContainerVariable);  // of the launch before
  if (!settings.container) return;
  std::error_code error;
  const bool file = fs::exists(*settings.container, error);
  const std::string image = file ? full_name(*settings.container) : *settings.container;
  const std::string runtime = runtime_of(settings, request.launcher);
  const bool srun = request.launcher == Launcher::srun && !request.direct;
  if (runtime == "pyxis" && !srun)
    refuse_at("--container_runtime",
              "pyxis is a part of srun: give --launcher srun, or another runtime");
  if (runtime == "pyxis")
    request.container = pyxis_words(image, shown_folders(request, view));
  else if (runtime == "apptainer" || runtime == "singularity")
    request.container = apptainer_words(runtime, image, shown_folders(request, view), view.gpus);
  else
    request.container = own_words(runtime, image, view);
  if (view.own_program) request.program.front() = settings.container_program;
  setenv(kContainerVariable, facts_of(image, runtime).text().c_str(), 1);
}

void refuse_outside_container(const ContainerSettings& settings, bool is_launched) {
  if (!settings.container || std::getenv(kContainerVariable)) return;
  throw ConfigError(
      is_launched
          ? "--container: ranks that a launcher has started are not put into one any more; leave "
            "mpirun or srun away (--ranks N), or write it before the program: mpirun ... apptainer "
            "exec IMAGE scalemark ..."
          : "--container is for ranks that scalemark starts itself: give --ranks N");
}

namespace {

using Environment = std::map<std::string, std::string>;

constexpr const char* kPlm = "OMPI_MCA_plm";

bool is_in_path(const std::string& name) {
  std::istringstream folders(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((folder + "/" + name).c_str(), X_OK) == 0) return true;
  return false;
}

void require_program(const std::string& name, const std::string& remedy) {
  if (name.find('/') != name.npos && access(name.c_str(), X_OK) == 0) return;
  if (!is_in_path(name)) throw EnvironmentError(fmt::format("{} is not in PATH: {}", name, remedy));
}

bool any_is_set(std::initializer_list<const char*> names, const Environment& environment) {
  return std::ranges::any_of(names, [&](const char* name) { return environment.contains(name); });
}

/// Returns whether mpirun would find neither ssh nor rsh.
bool lacks_ssh(const LaunchRequest& request, Environment environment) {
  if (request.direct || request.hydra || request.launcher != Launcher::mpirun) return false;
  for (const auto& [name, value] : request.environment) environment.emplace(name, "");
  // These variables hold the user's choice, and the agents of Grid Engine and LoadLeveler.
  if (any_is_set({kPlm, "OMPI_MCA_plm_rsh_agent", "OMPI_MCA_orte_rsh_agent",
                  "OMPI_MCA_pls_rsh_agent", "PE_HOSTFILE", "LOADL_STEP_ID"},
                 environment))
    return false;
  return !is_in_path("ssh") && !is_in_path("rsh");
}

}  // namespace

void do_without_ssh(LaunchRequest& request, const Environment& environment, bool elsewhere) {
  const bool managed = any_is_set({"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"}, environment);
  if ((managed || !elsewhere) && lacks_ssh(request, environment))
    request.environment.emplace_back(kPlm, "^rsh");
}

void require_programs(const LaunchRequest& request) {
  if (!request.direct)
    require_program(launcher_program(request),
                    "install the MPI that scalemark --version names, or choose --launcher "
                    "mpirun|srun");
  if (!request.container.empty() && (request.direct || request.launcher != Launcher::srun))
    require_program(request.container.front(),
                    "install it, or say with --container_runtime how the image is run");
  if (lacks_ssh(request, process_environment()))
    throw EnvironmentError(
        "mpirun reaches other hosts by ssh or rsh, and neither is in PATH: install one (Debian: "
        "openssh-client), or name another program in OMPI_MCA_plm_rsh_agent");
}

}  // namespace scalemark
