// Decides which environment variables may be shown, and recognises secrets.
#include "config/shown_variables.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "config/text.hpp"

namespace scalemark {
namespace {

/// A family of settings that their projects document, by first letters and the rest of the name.
/// None takes a secret.
struct Family {
  std::string_view prefix, names;
};
constexpr std::array kKnown{
    Family{
        "NCCL_",
        "ALGO BUFFSIZE CHECK_POINTERS CHECKS_DISABLE COLLNET_ENABLE CROSS_NIC CUMEM_ENABLE DEBUG "
        "DEBUG_SUBSYS DMABUF_ENABLE GDRCOPY_ENABLE GRAPH_MIXING_SUPPORT IB_ADAPTIVE_ROUTING "
        "IB_CUDA_SUPPORT IB_DISABLE IB_GID_INDEX IB_HCA IB_MERGE_NICS IB_PCI_RELAXED_ORDERING "
        "IB_QPS_PER_CONNECTION IB_RETRY_CNT IB_SL IB_SPLIT_DATA_ON_QPS IB_TC IB_TIMEOUT "
        "IGNORE_CPU_AFFINITY LAUNCH_MODE LL128_BUFFSIZE LL_BUFFSIZE LL_THRESHOLD LOCAL_REGISTER "
        "MAX_CTAS MAX_NCHANNELS MAX_NRINGS MIN_CTAS MIN_NCHANNELS MNNVL_ENABLE "
        "NCHANNELS_PER_NET_PEER NET "
        "NET_DISABLE_INTRA NET_FORCE_FLUSH NET_GDR_LEVEL NET_GDR_READ NET_PLUGIN "
        "NET_SHARED_BUFFERS "
        "NET_SHARED_COMMS NSOCKS_PERTHREAD NTHREADS NTREES NVB_DISABLE NVLS_ENABLE NVLS_NCHANNELS "
        "P2P_DIRECT_DISABLE P2P_DISABLE P2P_LEVEL P2P_NET_CHUNKSIZE P2P_PXN_LEVEL PROTO "
        "PXN_DISABLE RINGS RUNTIME_CONNECT SHM_DISABLE SHM_LOCALITY SHM_USE_CUDA_MEMCPY "
        "SINGLE_RING_THRESHOLD "
        "SOCKET_FAMILY SOCKET_IFNAME SOCKET_NTHREADS THREAD_THRESHOLDS TOPO_DUMP_FILE TOPO_FILE "
        "TREE_THRESHOLD TUNER_PLUGIN WORK_FIFO_DEPTH"},
    Family{"GLOO_", "SOCKET_IFNAME DEVICE_TRANSPORT"},
    Family{
        "OMPI_MCA_",
        "accelerator btl btl_base_verbose btl_openib_if_include btl_openib_allow_ib "
        "btl_tcp_eager_limit "
        "btl_tcp_if_exclude btl_tcp_if_include btl_tcp_links btl_tcp_max_send_size "
        "btl_tcp_rcvbuf btl_tcp_sndbuf btl_vader_eager_limit btl_vader_single_copy_mechanism "
        "btl_sm_eager_limit "
        "coll coll_base_verbose coll_hcoll_enable coll_hcoll_np coll_libnbc_iallreduce_algorithm "
        "coll_tuned_allgather_algorithm "
        "coll_tuned_allreduce_algorithm coll_tuned_allreduce_algorithm_segmentsize "
        "coll_tuned_bcast_algorithm coll_tuned_dynamic_rules_filename coll_tuned_priority "
        "coll_tuned_reduce_algorithm coll_tuned_use_dynamic_rules coll_han_priority "
        "coll_adapt_priority "
        "ess_singleton_isolated hwloc_base_binding_policy hwloc_base_mem_alloc_policy "
        "hwloc_base_report_bindings "
        "mca_base_param_files mpi_cuda_support mpi_leave_pinned mpi_yield_when_idle mtl "
        "oob_tcp_if_exclude oob_tcp_if_include opal_cuda_support opal_event_include "
        "opal_progress_yield_when_idle orte_base_help_aggregate orte_create_session_dirs "
        "orte_default_hostfile "
        "orte_keep_fqdn_hostnames orte_tmpdir_base osc pml pml_base_verbose pml_ob1_verbose plm "
        "plm_rsh_agent plm_rsh_no_tree_spawn pml_ucx_devices pml_ucx_tls rmaps_base_mapping_policy "
        "rmaps_base_oversubscribe rmaps_base_ranking_policy routed rtc shmem "
        "shmem_mmap_backing_file_base_dir"},
    Family{
        "UCX_",
        "ADDRESS_DEBUG_INFO CUDA_COPY_MAX_REG_RATIO CUDA_IPC_CACHE DC_MLX5_NUM_DCI IB_AR_ENABLE "
        "IB_GID_INDEX "
        "IB_GPU_DIRECT_RDMA IB_NUM_PATHS IB_PCI_RELAXED_ORDERING IB_REG_METHODS IB_SL "
        "IB_TRAFFIC_CLASS LOG_LEVEL MAX_EAGER_LANES MAX_EAGER_RAILS MAX_RNDV_LANES MAX_RNDV_RAILS "
        "MEMTYPE_CACHE MEM_EVENTS MM_SEG_SIZE NET_DEVICES PROTO_ENABLE PROTO_INFO "
        "RC_MLX5_RX_QUEUE_LEN RC_MLX5_TX_QUEUE_LEN RC_TX_QUEUE_LEN RC_TIMEOUT RNDV_FRAG_SIZE "
        "RNDV_PIPELINE_ERROR_HANDLING RNDV_SCHEME RNDV_THRESH SELF_DEVICES SHM_DEVICES "
        "SOCKADDR_TLS_PRIORITY TCP_CM_REUSEADDR TCP_MAX_NUM_EPS TCP_PORT_RANGE TLS UD_TIMEOUT "
        "UNIFIED_MODE WARN_UNUSED_ENV_VARS ZCOPY_THRESH"},
    Family{"HCOLL_",
           "ALLREDUCE_HYBRID_LB BCOL BCOL_P2P_ALLREDUCE_LARGE_ALG ENABLE_ALL ENABLE_MCAST "
           "ENABLE_MCAST_ALL "
           "ENABLE_NBC ENABLE_SHARP IB_IF_INCLUDE LOG LOG_LEVEL MAIN_IB SBGP TOPOLOGY VERBOSE"},
    Family{
        "SHARP_",
        "COLL_ENABLE_PCI_RELAXED_ORDERING COLL_ENABLE_SAT COLL_JOB_QUOTA_MAX_GROUPS "
        "COLL_JOB_QUOTA_OSTS COLL_JOB_QUOTA_PAYLOAD_PER_OST COLL_LOCK_ON_COMM_INIT COLL_LOG_LEVEL "
        "COLL_NUM_COLL_GROUP_RESOURCE_ALLOC_THRESHOLD COLL_PIPELINE_DEPTH"},
    Family{"FI_",
           "CXI_ATS CXI_DEFAULT_CQ_SIZE CXI_RX_MATCH_MODE EFA_ENABLE_SHM_TRANSFER EFA_FORK_SAFE "
           "EFA_USE_DEVICE_RDMA HMEM HMEM_CUDA_USE_GDRCOPY LOG_LEVEL LOG_PROV LOG_SUBSYS "
           "MR_CACHE_MAX_COUNT "
           "MR_CACHE_MAX_SIZE MR_CACHE_MONITOR OFI_RXM_BUFFER_SIZE OFI_RXM_USE_SRX PROVIDER "
           "PROVIDER_PATH "
           "PSM2_DISCONNECT TCP_IFACE UNIVERSE_SIZE VERBS_IFACE VERBS_INLINE_SIZE"},
    Family{"PSM2_", "CUDA DEVICES GPUDIRECT MEMORY MTU MULTIRAIL RCVTHREAD TRACEMASK"},
    Family{"OMP_",
           "CANCELLATION DEFAULT_DEVICE DISPLAY_AFFINITY DISPLAY_ENV DYNAMIC MAX_ACTIVE_LEVELS "
           "MAX_TASK_PRIORITY "
           "NESTED NUM_TEAMS NUM_THREADS PLACES PROC_BIND SCHEDULE STACKSIZE TARGET_OFFLOAD "
           "THREAD_LIMIT WAIT_POLICY"},
    Family{"KMP_",
           "AFFINITY ALL_THREADS BLOCKTIME CPUINFO_FILE DETERMINISTIC_REDUCTION DYNAMIC_MODE "
           "HW_SUBSET "
           "LIBRARY PLACE_THREADS SETTINGS STACKSIZE TOPOLOGY_METHOD USE_YIELD WARNINGS"},
    Family{"GOMP_", "CPU_AFFINITY DEBUG RTEMS_THREAD_POOLS SPINCOUNT STACKSIZE"},
    Family{"MKL_",
           "CBWR DEBUG_CPU_TYPE DISABLE_FAST_MM DOMAIN_NUM_THREADS DYNAMIC ENABLE_INSTRUCTIONS "
           "FAST_MEMORY_LIMIT "
           "INTERFACE_LAYER NUM_STRIPES NUM_THREADS THREADING_LAYER VERBOSE"},
    Family{"CUDA_",
           "DEVICE_MAX_CONNECTIONS DEVICE_ORDER FORCE_PTX_JIT LAUNCH_BLOCKING MODULE_LOADING "
           "VISIBLE_DEVICES"},
    Family{"SLURM_",
           "CPUS_ON_NODE CPUS_PER_TASK CPU_BIND_TYPE DISTRIBUTION JOB_ID JOB_NUM_NODES MPI_TYPE "
           "NNODES NTASKS "
           "NTASKS_PER_NODE STEP_ID STEP_NUM_NODES STEP_NUM_TASKS TASKS_PER_NODE"},
    Family{"", "GLIBC_TUNABLES LD_PRELOAD TMPDIR"},
    Family{"MALLOC_",
           "ARENA_MAX CHECK_ CONF MMAP_MAX_ MMAP_THRESHOLD_ PERTURB_ TOP_PAD_ TRIM_THRESHOLD_"},
    Family{"TCMALLOC_",
           "AGGRESSIVE_DECOMMIT LARGE_ALLOC_REPORT_THRESHOLD MAX_FREE_QUEUE_SIZE "
           "MAX_TOTAL_THREAD_CACHE_BYTES RELEASE_RATE SAMPLE_PARAMETER SKIP_MMAP SKIP_SBRK "
           "TRANSFER_NUM_OBJ"},
    Family{"THP_", "MEM_ALLOC_ENABLE"},
    Family{"HWLOC_", "COMPONENTS FSROOT HIDE_ERRORS SYNTHETIC THISSYSTEM XMLFILE"},
    Family{"TORCH_",
           "ALLOW_TF32_CUBLAS_OVERRIDE CPP_LOG_LEVEL NCCL_ASYNC_ERROR_HANDLING NCCL_BLOCKING_WAIT"},
    Family{"PYTORCH_", "CUDA_ALLOC_CONF"},
    Family{"ONEDNN_",
           "CPU_ISA_HINTS DEFAULT_FPMATH_MODE JIT_DUMP JIT_PROFILE MAX_CPU_ISA "
           "PRIMITIVE_CACHE_CAPACITY VERBOSE"},
    Family{"DNNL_", "CPU_ISA_HINTS DEFAULT_FPMATH_MODE MAX_CPU_ISA VERBOSE"},
    Family{"ATEN_", "CPU_CAPABILITY"},
};

bool is_known(std::string_view name) {
  static const auto* const kNames = [] {
    auto* names = new std::set<std::string, std::less<>>;
    for (const Family& family : kKnown) {
      std::istringstream words{std::string(family.names)};
      for (std::string word; words >> word;) names->insert(std::string(family.prefix) + word);
    }
    return names;
  }();
  return kNames->contains(name);
}

std::string printable(std::string_view value) {
  constexpr std::size_t kLongest = 1024;
  std::string text(value.substr(0, kLongest));
  for (char& c : text)
    if (c < 0x20 || c > 0x7e) c = '?';
  return text;
}

}  // namespace

bool names_a_secret(std::string_view name) {
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  // precondition_transports is the key that Open MPI gives the processes of a job.
  for (const char* word : {"TOKEN", "KEY", "SECRET", "PASS", "PWD", "CREDENTIAL", "CRED_", "AUTH",
                           "PRIVATE", "PRECONDITION_TRANSPORTS"})
    if (upper.find(word) != std::string::npos) return !is_known(name);
  return false;
}

bool looks_like_a_credential(std::string_view value) {
  static const auto* const kShapes = new std::regex(
      "://[^/@\\s,;]+@"  // user information of a URL
      "|(pass|passwd|password|pwd|token|secret|credential|api[-_]?key|access[-_]?key)[\"']?\\s*[=:]"
      "|\\b(bearer|basic)\\s+[A-Za-z0-9._~+/=-]{8}"  // Authorization
      "|\\b(AKIA|ASIA)[0-9A-Z]{16}|\\bgh[pousr]_[A-Za-z0-9]{20}|\\bglpat-|\\bxox[abprs]-|\\bhf_[A-"
      "Za-z0-9]{20}"
      "|\\beyJ[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_-]+"  // JSON web token
      "|-----BEGIN [A-Z ]*PRIVATE",
      std::regex::icase | std::regex::optimize);
  // The longest value that is matched, since the matcher recurses. No value of a setting is so
  // long.
  constexpr std::size_t kLongest = 4096;
  return value.size() > kLongest || std::regex_search(value.begin(), value.end(), *kShapes);
}

std::string without_credentials(std::string_view text) {
  if (!looks_like_a_credential(text) && text.find("--") == text.npos) return std::string(text);
  constexpr std::size_t kLongest = 4096;  // as above
  if (text.size() > kLongest) return "***";
  using Rule = std::pair<std::regex, const char*>;
  constexpr auto kOptions = std::regex::icase | std::regex::optimize;
  static const auto* const kRules = new std::vector<Rule>{
      {std::regex("(://)[^/@\\s,;]+@", kOptions), "$1***@"},
      {std::regex("((bearer|basic)\\s+)[A-Za-z0-9._~+/=-]{8,}", kOptions), "$1***"},
      // "password=...", "API_TOKEN: ...", "--secret ..."
      {std::regex("((pass|passwd|password|pwd|token|secret|credential|(api|access)[-_]?key)[\"']?"
                  "\\s*[=:]\\s*|--[\\w-]*(password|token|secret|credential|key)\\s+)"
                  "(\"[^\"]*\"|'[^']*'|[^\\s,;&]+)",
                  kOptions),
       "$1***"},
      {std::regex("\\b(AKIA|ASIA)[0-9A-Z]{16}|\\b(gh[pousr]_|hf_)[A-Za-z0-9]{20,}"
                  "|\\b(glpat-|xox[abprs]-)[\\w-]+|\\beyJ[A-Za-z0-9_-]{8,}\\.[A-Za-z0-9_.-]+"
                  "|-----BEGIN [A-Z ]*PRIVATE[^]*",
                  kOptions),
       "***"}};
  std::string shown(text);
  for (const auto& [pattern, instead] : *kRules)
    shown = std::regex_replace(shown, pattern, instead);
  return shown;
}

Json json_without_credentials(Json json) {
  if (json.is_string()) return without_credentials(json.get_ref<const std::string&>());
  if (json.is_structured())
    for (Json& value : json) value = json_without_credentials(std::move(value));
  return json;
}

std::string shown_variable(std::string_view name, std::string_view value) {
  if (is_known(name) && !looks_like_a_credential(value)) return printable(value);
  return "sha256:" + sha256_hex(std::string(name) + "=" + std::string(value)).substr(0, 16);
}

}  // namespace scalemark
