// What is told of launches while they go on; report/ says it on the terminal.
#pragma once

#include <cstdint>
#include <string>

namespace scalemark {

class LaunchProgress {
 public:
  virtual ~LaunchProgress() = default;
  /// So many launches follow.
  virtual void expect(std::size_t launches) = 0;
  virtual void start(const std::string& title, std::int64_t repeat) = 0;
  /// The launch that was started last took so many seconds; `outcome`: its rate, or why it has
  /// none.
  virtual void finish(double seconds, const std::string& outcome) = 0;
};

}  // namespace scalemark
