// Internal to rendezvous/: what both ends of a line between a measurement and whoever started it
// say.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>

namespace scalemark {

inline constexpr char kReady = 'r';   ///< to begin, or to go on
inline constexpr char kEnded = 'e';   ///< measured; nobody else is to be disturbed by what follows
inline constexpr char kWindow = 'w';  ///< when it was; a ToldWindow follows
inline constexpr char kGo = 'g';
inline constexpr char kHere = 'h';  ///< the token was right (LineListener)

inline void close_line(int& line) {
  if (line >= 0) close(line);
  line = -1;
}

/// False where the other side has gone.
inline bool send_on(int line, const void* message, std::size_t bytes) {
  return send(line, message, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

}  // namespace scalemark
