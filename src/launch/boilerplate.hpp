// What mpirun adds on stderr whenever a rank ends with a status other than 0, between lines of
// dashes. It buries what the rank itself has said and holds nothing beyond the exit code.
#pragma once

#include <string>
#include <string_view>

namespace scalemark {

/// Takes these blocks out of a stream of bytes; everything else passes at once, but for a line of
/// dashes, which waits for the one after it.
class Boilerplate {
 public:
  std::string pass(std::string_view bytes);
  /// At the end of the stream: what still waits.
  std::string rest();

 private:
  std::string take_line();

  std::string waiting_;  ///< an opening line, or the begin of one
  bool inside_ = false;  ///< of a block that is left out
};

}  // namespace scalemark
