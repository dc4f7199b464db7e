// See preflight_table.hpp.
#include "report/preflight_table.hpp"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "analysis/preflight_values.hpp"
#include "report/text_table.hpp"

namespace scalemark {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string text(const Json& value) {
  if (value.is_null()) return "-";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string ranks_table(const Json& record) {
  Rows rows{{"rank", "host", "cpus", "GFLOP/s fp64", "fp32", "bf16", "fp16", "triad", "quantum",
             "p99", "max/min"}};
  for (const Json& rank : record.at("ranks")) {
    std::vector<std::string> row{text(rank.at("rank")), text(rank.at("host")),
                                 text(rank.at("cpus"))};
    for (const char* precision : {"fp64", "fp32", "bf16", "fp16"})
      row.push_back(four_digits(rank.at("gemm").at(precision).at("flops").get<double>() / 1e9));
    const Json& quantum = rank.at("noise_quantum");
    row.push_back(shown_value(rank.at("memory_bandwidth").at("bytes_per_second"), "bytes/s"));
    row.push_back(shown_value(quantum.at("mean_seconds"), "s"));
    row.push_back(shown_value(quantum.at("p99_seconds"), "s"));
    row.push_back(shown_value(quantum.at("max_over_min"), ""));
    rows.push_back(std::move(row));
  }
  return text_table(rows);
}

std::string hosts_table(const Json& record) {
  Rows rows{{"host", "memory free", "governor", "SMT", "scratch write", "read", "interfaces"}};
  for (const Json& host : record.at("hosts")) {
    std::string nics;
    for (const Json& nic : host.at("nics"))
      nics +=
          fmt::format("{}{} {}", nics.empty() ? "" : ", ", text(nic.at("name")),
                      nic.at("speed_mbps").is_null() ? "?" : nic["speed_mbps"].dump() + " Mbit/s");
    const Json& scratch = host.at("scratch");
    rows.push_back({text(host.at("host")), shown_value(host.at("memory_available_bytes"), "bytes"),
                    text(host.at("governor")), text(host.at("smt")),
                    shown_value(scratch.at("write_bytes_per_second"), "bytes/s"),
                    shown_value(scratch.at("read_bytes_per_second"), "bytes/s"),
                    nics.empty() ? "-" : nics});
  }
  return text_table(rows);
}

std::string collectives_table(const Json& collectives) {
  if (collectives.is_null()) return "";
  Rows rows{{"collective", "by", "bytes", "time", "algbw GB/s", "busbw GB/s", "scalemark/MPI"}};
  std::map<std::int64_t, double> ratios;
  for (const Json& ratio : collectives.at("allreduce_ratio"))
    ratios[ratio.at("bytes")] = ratio.at("scalemark_over_mpi");
  for (const Json& row : collectives.at("rows")) {
    const bool own = row.at("carrier") == "scalemark";
    rows.push_back({text(row.at("collective")), text(row.at("carrier")), row.at("bytes").dump(),
                    shown_value(row.at("seconds"), "s"),
                    fmt::format("{:.3f}", row.at("algbw").get<double>() / 1e9),
                    fmt::format("{:.3f}", row.at("busbw").get<double>() / 1e9),
                    own ? fmt::format("{:.2f}", ratios[row.at("bytes")]) : "-"});
  }
  return fmt::format("\ntransport: {}\n{}", text(collectives.at("transport")), text_table(rows));
}

/// One line a check; those that passed in short.
std::string checks_list(const Json& record) {
  std::string lines;
  std::map<std::string, int> count;
  for (const Json& check : record.at("checks")) {
    const std::string status = check.at("status");
    ++count[status];
    if (status == "pass") continue;
    lines += fmt::format("{}: {} {}: {}\n", status, text(check.at("name")),
                         text(check.at("statistic")), text(check.at("message")));
  }
  return fmt::format("\n{}verdict: {} ({} passed, {} warned, {} failed, {} skipped)\n", lines,
                     text(record.at("verdict")), count["pass"], count["warn"], count["fail"],
                     count["skip"]);
}

std::string binding_text(const Json& binding) {
  std::string words;
  for (const Json& other : binding.at("overlaps_with"))
    words += (words.empty() ? "shares cores with rank " : ", ") + other.dump();
  if (binding.at("as_asked") == false) words += words.empty() ? "not bound" : "; not bound";
  if (binding.at("near_gpu") == false)
    words += words.empty() ? "far from its GPU" : "; far from its GPU";
  if (!words.empty()) return words;
  return binding.at("as_asked").is_null() ? "-" : "as asked";
}

}  // namespace

std::string preflight_table(const Json& record) {
  return ranks_table(record) + "\n" + hosts_table(record) +
         collectives_table(record.at("collectives")) + checks_list(record);
}

std::string pinning_table(const Json& record) {
  Rows rows{{"rank", "host", "cores", "NUMA", "threads", "GPU", "asked for", "achieved"}};
  for (const Json& rank : record.at("ranks")) {
    std::string numa;
    if (rank.at("numa").is_array())
      for (const Json& node : rank["numa"]) numa += (numa.empty() ? "" : ",") + node.dump();
    rows.push_back({text(rank.at("rank")), text(rank.at("host")), text(rank.at("cpus")),
                    numa.empty() ? "-" : numa, text(rank.at("threads")), text(rank.at("gpu")),
                    text(rank.at("affinity_requested")), binding_text(rank.at("binding"))});
  }
  return text_table(rows) + checks_list(record);
}

}  // namespace scalemark
