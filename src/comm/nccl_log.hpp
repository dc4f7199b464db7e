// Finds the transport that NCCL uses. NCCL has no call for it, but logs it when it connects, so the
// log goes to memory. No header of NCCL is needed.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace scalemark {

/// The log of this process from construction on, which must come before the first call of NCCL.
/// Where the user has set NCCL_DEBUG, the requested lines go to stderr as they come, since stdout
/// is data. Where NCCL_DEBUG_FILE is set too, the log goes there and is read from there.
class NcclLog {
 public:
  NcclLog();
  ~NcclLog();
  NcclLog(const NcclLog&) = delete;
  NcclLog& operator=(const NcclLog&) = delete;

  /// Returns what was written after the first `from` bytes.
  std::string text(std::size_t from = 0) const;

 private:
  class Tee;
  int file_ = -1;           ///< a file in memory
  std::string users_file_;  ///< the user's file; opened when it is read, since NCCL creates it
  std::unique_ptr<Tee> tee_;
};

/// Returns the transports of the channels in a log ("Channel 00/0 : 0[0] -> 1[1] via P2P/IPC"),
/// each once, without the numbers of adapters: "P2P/IPC", "NET/IB/GDRDMA+SHM/direct". Returns an
/// empty text where the log names none. The format is that of NCCL 2.19 to 2.28, transport/p2p.cc,
/// shm.cc and net.cc.
std::string nccl_transport(std::string_view log);

}  // namespace scalemark
