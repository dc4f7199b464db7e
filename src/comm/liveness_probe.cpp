// Implements the liveness probe: one question to every rank, and one answer from each MPI thread
// that still runs.
#include "comm/liveness_probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace scalemark {
namespace {

constexpr int question_tag = 1, answer_tag = 2;
constexpr int most_lines = 32;

}  // namespace

LivenessProbe::LivenessProbe(MPI_Comm communicator, std::vector<std::string> hosts,
                             const Watchdog& watchdog, Start start)
    : communicator_(communicator),
      hosts_(std::move(hosts)),
      watchdog_(watchdog),
      start_(std::move(start)) {
  MPI_Comm_rank(communicator_, &rank_);
  if (hosts_.size() > 1) listen();
}

void LivenessProbe::listen() {
  // The source is read from the body, because completed operations do not keep their status.
  auto asker = std::make_shared<int>(-1);
  auto operation = std::make_shared<Operation>();
  operation->stages.emplace_back([this, asker] {
    check_mpi(
        MPI_Irecv(asker.get(), 1, MPI_INT, MPI_ANY_SOURCE, question_tag, communicator_, &question_),
        "MPI_Irecv");
    return std::vector{question_};
  });
  operation->on_complete = [this, asker] {
    if (closed_) return;
    answer(*asker);
    listen();
  };
  start_(std::move(operation));
}

void LivenessProbe::answer(int rank) {
  const Progress progress = watchdog_.progress();
  auto reply = std::make_shared<Answer>();
  std::strncpy(reply->phase.data(), progress.phase, reply->phase.size() - 1);
  reply->step = progress.step;
  reply->seconds = progress.seconds_in_phase;
  auto operation = std::make_shared<Operation>();
  operation->stages.emplace_back([this, reply, rank] {
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(
        MPI_Isend(reply.get(), sizeof(Answer), MPI_BYTE, rank, answer_tag, communicator_, &request),
        "MPI_Isend");
    return std::vector{request};
  });
  start_(std::move(operation));
}

void LivenessProbe::ask(std::function<void(const std::string&)> report) {
  if (report_) return;
  report_ = std::move(report);
  asked_ = Clock::now();
  answers_.assign(hosts_.size(), nullptr);
  answered_.assign(hosts_.size(), false);
  missing_ = static_cast<int>(hosts_.size()) - 1;
  for (int peer = 0; peer < static_cast<int>(hosts_.size()); ++peer) {
    if (peer == rank_) continue;
    answers_[peer] = std::make_shared<Answer>();
    auto receive = std::make_shared<Operation>();
    receive->stages.emplace_back([this, peer, buffer = answers_[peer]] {
      MPI_Request request = MPI_REQUEST_NULL;
      check_mpi(MPI_Irecv(buffer.get(), sizeof(Answer), MPI_BYTE, peer, answer_tag, communicator_,
                          &request),
                "MPI_Irecv");
      return std::vector{request};
    });
    receive->on_complete = [this, peer, watched = receive.get()] {
      if (!watched->error.empty()) return;
      answered_[peer] = true;
      --missing_;
    };
    start_(std::move(receive));
    auto send = std::make_shared<Operation>();
    send->stages.emplace_back([this, peer] {
      MPI_Request request = MPI_REQUEST_NULL;
      check_mpi(MPI_Isend(&rank_, 1, MPI_INT, peer, question_tag, communicator_, &request),
                "MPI_Isend");
      return std::vector{request};
    });
    start_(std::move(send));
  }
}

void LivenessProbe::tick() {
  if (!report_ || (missing_ > 0 && Clock::now() - asked_ < patience)) return;
  const auto report = std::exchange(report_, nullptr);
  report(text());
}

std::string LivenessProbe::text() const {
  std::vector<std::string> lines;
  const auto name = [&](std::size_t rank) {
    return fmt::format("rank {} on {}", rank, hosts_[rank]);
  };
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank)  // the silent ranks come first
    if (answers_[rank] && !answered_[rank])
      lines.push_back(name(rank) + ": silent (stopped, dead or unreachable)");
  for (std::size_t rank = 0; rank < hosts_.size(); ++rank)
    if (answers_[rank] && answered_[rank])
      lines.push_back(fmt::format("{} answers: in phase '{}' at step {} for {:.1f} s", name(rank),
                                  answers_[rank]->phase.data(), answers_[rank]->step,
                                  answers_[rank]->seconds));
  std::string text = lines.empty() ? "  no other rank" : "  state of the other ranks:";
  for (std::size_t i = 0; i < std::min<std::size_t>(lines.size(), most_lines); ++i)
    text += "\n    " + lines[i];
  if (lines.size() > most_lines)
    text += fmt::format("\n    and {} more", lines.size() - most_lines);
  return text;
}

void LivenessProbe::cancel() {
  closed_ = true;
  if (question_ != MPI_REQUEST_NULL && hosts_.size() > 1) MPI_Cancel(&question_);
}

}  // namespace scalemark
