// Sets defaults of Open MPI before MPI_Init, selects the algorithm of each allreduce, determines
// the transport, and reads Open MPI's parameters through MPI_T.
#include "comm/mca.hpp"

#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "comm/mpi.hpp"
#include "comm/rank_group_impl.hpp"
#include "measure/bus_bandwidth.hpp"
#include "platform/platform.hpp"

namespace scalemark {

namespace {

constexpr const char* algorithm_variable = "coll_libnbc_iallreduce_algorithm";

#ifdef OPEN_MPI
constexpr bool kOpenMpi = true;
#else
constexpr bool kOpenMpi = false;  // other MPIs have their own algorithms and settings
#endif

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

/// Returns the major version of the Open MPI that is loaded, also before MPI_Init, or 0 for another
/// MPI. OMPI_MAJOR_VERSION does not serve here: a program built with Open MPI 4 runs with 5 too.
int library_major() {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0, major = 0;
  MPI_Get_library_version(version, &length);
  return std::sscanf(version, "Open MPI v%d", &major) == 1 ? major : 0;
}

/// Returns whether a rank may read the memory of a peer (process_vm_readv), which system-call
/// filters of some containers and stricter scopes of Yama refuse. Open MPI's shared memory would
/// fail there rather than fall back.
bool can_read_peer_memory() {
  int from = 1, to = 0;
  const iovec local{&to, sizeof to}, remote{&from, sizeof from};
  if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != static_cast<ssize_t>(sizeof to))
    return false;
  int scope = 0;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  return scope < 2 || geteuid() == 0;
}

/// Returns the value as text, or nullopt for a type other than text and int. Open MPI uses int for
/// truth values too.
std::optional<std::string> read(MPI_T_cvar_handle variable, MPI_Datatype type, int count) {
  if (type == MPI_CHAR && count > 0) {
    // Some libraries report the length of the present text as the count, so the buffer is larger.
    std::string text(std::max<std::size_t>(static_cast<std::size_t>(count) + 1, 8192), '\0');
    if (MPI_T_cvar_read(variable, text.data()) != MPI_SUCCESS) return std::nullopt;
    return std::string(text.c_str());
  }
  int number = 0;
  if ((type != MPI_INT && type != MPI_UNSIGNED) || count != 1 ||
      MPI_T_cvar_read(variable, &number) != MPI_SUCCESS)
    return std::nullopt;
  return std::to_string(number);
}

std::optional<std::string> value_of(const std::string& name) {
  int index = 0, count = 0, verbosity = 0, bind = 0, scope = 0, name_length = 0, text_length = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_T_enum values = nullptr;
  MPI_T_cvar_handle variable{};
  if (MPI_T_cvar_get_index(name.c_str(), &index) != MPI_SUCCESS ||
      MPI_T_cvar_get_info(index, nullptr, &name_length, &verbosity, &type, &values, nullptr,
                          &text_length, &bind, &scope) != MPI_SUCCESS ||
      MPI_T_cvar_handle_alloc(index, nullptr, &variable, &count) != MPI_SUCCESS)
    return std::nullopt;
  const auto value = read(variable, type, count);
  MPI_T_cvar_handle_free(&variable);
  return value;
}

}  // namespace

void set_mca_defaults() {
  constexpr int keep = 0;  // keeps what the user has set
  setenv(fmt::format("OMPI_MCA_{}", algorithm_variable).c_str(), "1", keep);  // ring
  if (!can_read_peer_memory()) setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", keep);
  const char* const isolated = "OMPI_MCA_ess_singleton_isolated";
  if (launcher_hint(process_environment()) || std::getenv("PMIX_NAMESPACE") ||
      std::getenv(isolated))
    return;
  // A single rank starts no other process, so it needs no daemon of Open MPI, which requires ssh or
  // rsh and which remains where the rank dies early. It needs no folders either, which all such
  // ranks would share.
  setenv(isolated, "1", keep);
  setenv("OMPI_MCA_orte_create_session_dirs", "0", keep);
  // Open MPI 5 would leave such a rank's segment of 16 MiB in /dev/shm.
  if (library_major() >= 5) setenv("OMPI_MCA_btl", "self", keep);
}

AllreduceSelector::AllreduceSelector(std::string user_value) : user_value_(std::move(user_value)) {
  if (!user_value_.empty()) return;
  int provided = 0, index = 0, count = 0;
  if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return;
  int value = static_cast<int>(AllreduceAlgorithm::library);
  by_call_ = MPI_T_cvar_get_index(algorithm_variable, &index) == MPI_SUCCESS &&
             MPI_T_cvar_handle_alloc(index, nullptr, &variable_, &count) == MPI_SUCCESS &&
             count == 1 && MPI_T_cvar_write(variable_, &value) == MPI_SUCCESS;
  open_ = by_call_;
  if (!by_call_) MPI_T_finalize();
}

void AllreduceSelector::close() {
  if (!std::exchange(open_, false)) return;
  MPI_T_cvar_handle_free(&variable_);
  MPI_T_finalize();
}

AllreduceAlgorithm AllreduceSelector::choice(std::int64_t bytes) const {
  if (!user_value_.empty())
    return user_value_ == "1"   ? AllreduceAlgorithm::ring
           : user_value_ == "4" ? AllreduceAlgorithm::recursive_doubling
                                : AllreduceAlgorithm::library;
  if (!by_call_ || bytes >= ring_from_bytes) return AllreduceAlgorithm::ring;
  return AllreduceAlgorithm::recursive_doubling;
}

void AllreduceSelector::set(AllreduceAlgorithm algorithm) {
  int value = static_cast<int>(algorithm);
  if (open_) MPI_T_cvar_write(variable_, &value);
}

std::string AllreduceSelector::description() const {
  if (!kOpenMpi) return "chosen by MPI (wire bytes as of a ring)";
  if (!user_value_.empty())
    return fmt::format("libnbc algorithm {} (set by the user)", user_value_);
  if (!by_call_) return "ring";
  return fmt::format("ring, recursive doubling below {} KiB", ring_from_bytes / 1024);
}

std::int64_t allreduce_wire_bytes(AllreduceAlgorithm algorithm, std::int64_t bytes, int ranks) {
  if (ranks <= 1) return 0;
  if (algorithm == AllreduceAlgorithm::recursive_doubling) {
    const auto n = static_cast<unsigned>(ranks);
    return bytes * (std::bit_width(n) - 1 + (std::has_single_bit(n) ? 0 : 1));
  }
  return ring_allreduce_bytes(bytes, ranks);
}

std::string derive_transport(const TransportFacts& facts) {
  if (facts.ranks <= 1) return "none";
  if (facts.library_major == 0) return "";
  if (!facts.pml.empty() && facts.pml != "ob1") return facts.pml[0] == '^' ? "" : facts.pml;
  // If nothing is set, UCX or libfabric may have been selected where there is a fabric.
  if (facts.pml.empty() && facts.btl.empty() && facts.fabric) return "";
  const bool excludes = !facts.btl.empty() && facts.btl[0] == '^';
  const auto usable = [&](const std::string& name) {
    const std::string list = "," + (excludes ? facts.btl.substr(1) : facts.btl) + ",";
    const bool listed = list.find("," + name + ",") != std::string::npos;
    return facts.btl.empty() || listed != excludes;
  };
  const bool renamed =
      facts.library_major >= 5;  // Open MPI 5 calls vader sm, and still accepts the old name
  const bool shared = facts.shares_memory && (usable("vader") || (renamed && usable("sm")));
  const std::string within = shared ? (renamed ? "sm" : "vader") : usable("tcp") ? "tcp" : "";
  const std::string across = usable("tcp") ? "tcp" : "";
  if (facts.hosts == 1) return within;
  if (facts.hosts == facts.ranks || within == across) return across;
  return within.empty() || across.empty() ? "" : within + "+" + across;
}

namespace {

/// Open MPI leaves the component out without a word where /dev/shm is too small for its segment, as
/// in containers; what it has mapped is what it uses.
bool has_mapped_segment() {
  std::ifstream maps("/proc/self/maps");
  if (!maps) return true;  // nothing is known
  for (std::string line; std::getline(maps, line);)
    if (line.find("vader_segment") != line.npos || line.find("sm_segment") != line.npos)
      return true;
  return false;
}

}  // namespace

TransportFacts transport_facts(int ranks, int hosts) {
  TransportFacts facts;
  facts.ranks = ranks;
  facts.hosts = hosts;
  facts.pml = environment("OMPI_MCA_pml");
  facts.btl = environment("OMPI_MCA_btl");
  std::error_code none;
  for (const char* folder : {"/sys/class/infiniband", "/sys/class/hfi1", "/sys/class/cxi"})
    facts.fabric = facts.fabric || (std::filesystem::exists(folder, none) &&
                                    !std::filesystem::is_empty(folder, none));
  facts.library_major = library_major();
  facts.shares_memory = has_mapped_segment();
  return facts;
}

std::map<std::string, std::string> mca_parameters(RankGroup& group,
                                                  const std::vector<std::string>& names) {
  std::map<std::string, std::string> found;
  group.impl()->world->call("parameters", [&] {
    int provided = 0;
    if (MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) != MPI_SUCCESS) return;
    for (const std::string& name : names)
      if (auto value = value_of(name)) found[name] = std::move(*value);
    MPI_T_finalize();
  });
  return found;
}

}  // namespace scalemark
