// Builds launches: places ranks on hosts, puts them into containers, and finds the programs that
// are needed.
#include "launch/launch_builder.hpp"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>

#include "config/json_text.hpp"
#include "config/keys/own_model.hpp"
#include "config/names.hpp"
#include "config/text.hpp"
#include "error.hpp"
#include "json.hpp"
#include "launch/engine_start.hpp"
#include "launch/program_output.hpp"
#include "launch/wheel.hpp"
#include "platform/container.hpp"
#include "platform/platform.hpp"
#include "platform/posix_file.hpp"
#include "platform/slots.hpp"

namespace scalemark {
namespace {

constexpr std::size_t kLargestHostfile = 16 << 20;  // half a million hosts

}  // namespace

int cores_per_host() {
  static const int cores = physical_cores();  // some milliseconds; a sweep asks for each launch
  return cores;
}

namespace {

/// Returns the fewest CPUs of a node by Slurm's list, such as "4,2(x3)"; nothing where it is none.
std::optional<int> fewest_cpus(const std::string& list) {
  std::optional<std::int64_t> fewest;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto cpus = parse_integer(part.substr(0, part.find('(')));
    if (!cpus || *cpus < 1 || *cpus > (1 << 20)) return std::nullopt;
    fewest = std::min(fewest.value_or(*cpus), *cpus);
  }
  return fewest ? std::optional(static_cast<int>(*fewest)) : std::nullopt;
}

/// Returns the cores of a host: of this one, but where salloc has left us on the host that it was
/// called on, those of the allocation.
int cores_of_allocation(const std::map<std::string, std::string>& environment) {
  const auto cpus = environment.find("SLURM_JOB_CPUS_PER_NODE");
  if (cpus == environment.end() || environment.contains("SLURMD_NODENAME")) return cores_per_host();
  return fewest_cpus(cpus->second).value_or(cores_per_host());
}

}  // namespace

Resources find_resources(Device device, const std::optional<std::string>& hostfile,
                         const std::map<std::string, std::string>& environment) {
  Resources resources;
  resources.cores_per_host = cores_of_allocation(environment);
  if (device != Device::cpu) resources.gpus_per_host = static_cast<int>(visible_gpus().gpus.size());
  const auto nodes = environment.find("SLURM_JOB_NUM_NODES");
  if (hostfile)
    resources.named = hosts_in(*hostfile);
  else if (nodes == environment.end())
    resources.named = allocated_hosts(environment);
  if (!resources.named.empty())
    resources.hosts = static_cast<int>(resources.named.size());
  else if (nodes != environment.end())
    resources.hosts = static_cast<int>(
        std::clamp<std::int64_t>(parse_integer(nodes->second).value_or(1), 1, 1 << 20));
  resources.elsewhere =
      resources.hosts > 1 || !std::ranges::all_of(resources.named, is_this_host, &HostSlots::name);
  return resources;
}

Placement place_ranks(int ranks, const Resources& resources, std::optional<int> ranks_per_node) {
  int per_host = ranks_per_node.value_or((ranks + resources.hosts - 1) / resources.hosts);
  if (!resources.named.empty() && !ranks_per_node)
    for (const auto& [host, count] : spread_ranks(ranks, resources.named, {}))
      per_host = std::max(per_host, count);
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

namespace {

/// Adds the slots of a line to those of its host.
void add_slots(std::vector<HostSlots>& hosts, const std::string& name, std::optional<int> slots) {
  const auto found = std::ranges::find(hosts, name, &HostSlots::name);
  if (found == hosts.end())
    hosts.push_back({name, slots});
  else
    found->slots = found->slots.value_or(1) + slots.value_or(1);
}

/// A number of slots from 1 on.
std::optional<int> slots_in(std::string_view text) {
  const auto slots = parse_integer(std::string(text));
  if (!slots || *slots < 1 || *slots > (1 << 20)) return std::nullopt;
  return static_cast<int>(*slots);
}

/// "n0", "n0:4" or "n0 slots=4"; `place` begins what is refused.
void add_line(std::vector<HostSlots>& hosts, std::string line, const std::string& place) {
  line = line.substr(0, line.find('#'));
  for (std::size_t at; (at = line.find(" =")) != line.npos;) line.erase(at, 1);
  for (std::size_t at; (at = line.find("= ")) != line.npos;) line.erase(at + 1, 1);
  std::istringstream words(line);
  std::string host;
  if (!(words >> host)) return;
  std::optional<int> slots;
  if (const std::size_t colon = host.rfind(':');
      colon != host.npos && slots_in(host.substr(colon + 1))) {
    slots = slots_in(host.substr(colon + 1));
    host.resize(colon);
  }
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    if (key == "slots" && equals != word.npos && slots_in(word.substr(equals + 1)))
      slots = slots_in(word.substr(equals + 1));
    else if (key != "max_slots" && key != "max-slots")
      refuse_at(place, fmt::format("{} is none of the words that may follow a host (slots=N)",
                                   quote(word)));
  }
  add_slots(hosts, host, slots);
}

std::vector<HostSlots> read_hosts(const std::string& path, const std::string& flag) {
  std::string text;
  try {
    text = read_input_file(path, kLargestHostfile);
  } catch (const InputFault& fault) {
    refuse_at(flag, fmt::format("{} can't be read ({}); give a file with one host a line",
                                quote(path), fault.what()));
  }
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  std::erase(text, '\r');
  std::istringstream lines(text);
  std::vector<HostSlots> hosts;
  int number = 0;
  for (std::string line; std::getline(lines, line);)
    add_line(hosts, line, fmt::format("{} {}, line {}", flag, quote(path), ++number));
  if (hosts.empty()) refuse_at(flag, quote(path) + " names no host");
  return hosts;
}

/// "n0 2 n1 2", and of each line of Grid Engine's file the first two words.
std::vector<HostSlots> pairs_in(std::istream& words, bool by_lines) {
  std::vector<HostSlots> hosts;
  for (std::string host, slots, rest; words >> host >> slots;) {
    add_slots(hosts, host, slots_in(slots).value_or(1));
    if (by_lines) std::getline(words, rest);
  }
  return hosts;
}

}  // namespace

std::vector<HostSlots> hosts_in(const std::string& hostfile) {
  return read_hosts(hostfile, "--hostfile");
}

std::vector<HostSlots> allocated_hosts(const std::map<std::string, std::string>& environment) {
  for (const char* name : {"PBS_NODEFILE", "LSB_DJOB_HOSTFILE"})
    if (const auto file = environment.find(name); file != environment.end()) {
      std::vector<HostSlots> hosts = read_hosts(file->second, name);
      for (HostSlots& host : hosts) host.slots = host.slots.value_or(1);
      return hosts;
    }
  if (const auto list = environment.find("LSB_MCPU_HOSTS"); list != environment.end()) {
    std::istringstream words(list->second);
    return pairs_in(words, /*by_lines=*/false);
  }
  if (const auto file = environment.find("PE_HOSTFILE"); file != environment.end()) {
    std::ifstream words(file->second);
    return pairs_in(words, /*by_lines=*/true);
  }
  return {};
}

std::vector<std::pair<std::string, int>> spread_ranks(int ranks,
                                                      const std::vector<HostSlots>& hosts,
                                                      std::optional<int> ranks_per_node) {
  std::vector<int> counts(hosts.size());
  for (int rank = 0; rank < ranks; ++rank) {
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      const int most = ranks_per_node.value_or(hosts[i].slots.value_or(ranks));
      if (counts[i] < most && (!best || (!ranks_per_node && counts[i] < counts[*best]))) best = i;
    }
    if (!best)
      throw ConfigError(fmt::format(
          "{} ranks, but the {} hosts hold {}: give fewer ranks, or more slots or hosts", ranks,
          hosts.size(), rank));
    ++counts[*best];
  }
  std::vector<std::pair<std::string, int>> spread;
  for (std::size_t i = 0; i < hosts.size(); ++i)
    if (counts[i] > 0) spread.emplace_back(hosts[i].name, counts[i]);
  return spread;
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
  if (!described.named.empty() && described.hosts.empty() && request.launcher != Launcher::srun) {
    request.ranks_on = spread_ranks(described.ranks, described.named, described.ranks_per_node);
    request.hostfile.reset();
  }
  for (std::string& host : request.hosts)
    if (host.empty()) host = request.launcher == Launcher::srun ? host_name() : "localhost";
  // mpirun starts its daemons by steps of Slurm, beside those of other instances.
  if (described.binds_itself && environment.contains("SLURM_JOB_ID"))
    request.environment.emplace_back("SLURM_OVERLAP", "1");
}

/// Takes the mpirun of the Open MPI that ranks of a wheel load.
void choose_open_mpi(LaunchRequest& request, const Environment& environment) {
  const auto wheel = wheel_of(own_path());
  const auto mpi = wheel ? open_mpi_of(*wheel, environment) : std::nullopt;
  if (!mpi) return;
  request.mpirun = (mpi->prefix / "bin" / "mpirun").string();
  // The programs of the package look there first: of another MPI they would load the daemon's
  // parts.
  if (mpi->prefix == wheel->prefix && environment.contains("LD_LIBRARY_PATH"))
    request.environment.emplace_back("LD_LIBRARY_PATH", library_path_of(*mpi));
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
  if (launcher_program(request) == "mpirun") choose_open_mpi(request, environment);
  if (!described.fixed_threads) keep_threads(request, environment);
  put_in_container(request, described.container,
                   {described.results, described.gpus, described.own_program});
  do_without_account(request, environment);
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
  const char* path = std::getenv("PATH");
  return !found_in_path(name, path ? path : "").empty();
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
  if (launcher_program(request) != "mpirun") return false;
  for (const auto& [name, value] : request.environment) environment.emplace(name, "");
  // These variables hold the user's choice, and the agents of Grid Engine and LoadLeveler.
  if (any_is_set(
          {kPlm, "OMPI_MCA_plm_rsh_agent", "OMPI_MCA_orte_rsh_agent", "OMPI_MCA_pls_rsh_agent",
           "PRTE_MCA_plm", "PRTE_MCA_plm_ssh_agent", "PE_HOSTFILE", "LOADL_STEP_ID"},
          environment))
    return false;
  return !is_in_path("ssh") && !is_in_path("rsh");
}

}  // namespace

void do_without_account(LaunchRequest& request, const Environment& environment) {
  if (launcher_program(request) != "mpirun") return;
  const auto has_underscore = [](const std::string& name) { return name.find('_') != name.npos; };
  bool any = has_underscore(host_name()) || std::ranges::any_of(request.hosts, has_underscore);
  for (const auto& [host, ranks] : request.ranks_on) any = any || has_underscore(host);
  if (any && !environment.contains("OMPI_MCA_regx"))
    request.environment.emplace_back("OMPI_MCA_regx", "naive");
  if (!environment.contains("HOME") && getpwuid(geteuid()) == nullptr)
    request.environment.emplace_back("HOME", temporary_folder().string());
}

void do_without_ssh(LaunchRequest& request, const Environment& environment, bool elsewhere) {
  const bool managed = any_is_set({"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID"}, environment);
  if ((managed || !elsewhere) && lacks_ssh(request, environment))
    request.environment.emplace_back(kPlm, "^rsh");
}

void require_programs(const LaunchRequest& request) {
  const std::string launcher = launcher_program(request);
  if (!request.direct)
    require_program(launcher == "mpirun" ? request.mpirun : launcher,
                    "install the MPI that scalemark --version names, or choose --launcher "
                    "mpirun|srun");
  if (!request.container.empty() && (request.direct || request.launcher != Launcher::srun))
    require_program(request.container.front(),
                    "install it, or say with --container_runtime how the image is run");
  if (lacks_ssh(request, process_environment()))
    throw EnvironmentError(
        "mpirun reaches other hosts by ssh or rsh, and neither is in PATH: install one (Debian: "
        "openssh-client), or name another program in OMPI_MCA_plm_rsh_agent (Open MPI 5: "
        "PRTE_MCA_plm_ssh_agent)");
}

}  // namespace scalemark
