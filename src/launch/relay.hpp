// What a job prints, on its way to our own stdout and stderr, without mpirun's boilerplate.
// Launchers end a job whose output nobody takes any more (mpirun after ten broken pipes); this
// takes everything, and passes on what it can.
#pragma once

#include <array>
#include <atomic>
#include <thread>

namespace scalemark {

class Relay {
 public:
  /// Throws EnvironmentError where there are no descriptors or threads left.
  Relay();
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  /// The job's ends, for stdout and stderr.
  int out() const { return pipes_[0].write_end; }
  int err() const { return pipes_[1].write_end; }

  /// Passes on the rest. Call it when no process of the job is left.
  void finish();
  /// After finish(): something of its stdout has reached nobody.
  bool has_lost_data() const { return pipes_[0].lost; }

 private:
  struct Pipe {
    int read_end = -1, write_end = -1;
    std::atomic<bool> lost = false;
    std::thread thread;
  };
  static void pass_on(Pipe& pipe, int destination);

  std::array<Pipe, 2> pipes_;
};

}  // namespace scalemark
