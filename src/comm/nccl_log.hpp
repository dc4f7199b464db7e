// What carries NCCL's bytes: NCCL has no call for it, but says so in its log when it connects. The
// log goes to memory. Needs no header of NCCL.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace scalemark {

/// The log of this process, from its construction on, which must come before the first call of
/// NCCL. Where the user has set NCCL_DEBUG, what was asked for goes to stderr as it comes, since
/// stdout is data; where NCCL_DEBUG_FILE too, it goes there, and is read from there.
class NcclLog {
 public:
  NcclLog();
  ~NcclLog();
  NcclLog(const NcclLog&) = delete;
  NcclLog& operator=(const NcclLog&) = delete;

  /// What was written behind the first `from` bytes.
  std::string text(std::size_t from = 0) const;

 private:
  class Tee;
  int file_ = -1;           ///< in memory
  std::string users_file_;  ///< its path; opened when it is read, since NCCL makes it
  std::unique_ptr<Tee> tee_;
};

/// The transports of the channels in a log ("Channel 00/0 : 0[0] -> 1[1] via P2P/IPC"), each once,
/// without the numbers of adapters: "P2P/IPC", "NET/IB/GDRDMA+SHM/direct". Empty where it names
/// none. Format: NCCL 2.19 to 2.28, transport/p2p.cc, shm.cc and net.cc.
std::string nccl_transport(std::string_view log);

}  // namespace scalemark
