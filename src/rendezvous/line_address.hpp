// Where lines between measurements and whoever started them meet: a socket in a folder of this
// machine, or a port for ranks on other hosts.
#pragma once

#include <filesystem>
#include <string>

namespace scalemark {

/// The descriptor of a line to the address of a LineListener, closed on exec. EnvironmentError
/// where nobody listens there.
int connect_line(const std::string& address);

/// The end that is called. Throws EnvironmentError where no socket is to be had.
class LineListener {
 public:
  /// A socket at `path`, for processes of this machine; messages keep their bounds.
  explicit LineListener(const std::filesystem::path& path);
  /// A port on all addresses of this host; a stream. Who calls says token() first, which its
  /// address contains, and is answered with kHere.
  LineListener();
  ~LineListener();
  LineListener(LineListener&& other) noexcept;
  LineListener(const LineListener&) = delete;
  LineListener& operator=(const LineListener&) = delete;

  const std::string& address() const { return address_; }
  const std::string& token() const { return token_; }  ///< empty: nothing need be said
  int descriptor() const { return socket_; }
  /// The next who calls; -1 where nobody does.
  int accept() const;

 private:
  std::string address_, token_;
  int socket_ = -1;
};

}  // namespace scalemark
