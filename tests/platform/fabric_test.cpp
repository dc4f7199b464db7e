// Links and their error counters in made folders.
#include "platform/fabric.hpp"

#include <gtest/gtest.h>

#include "platform/tree.hpp"

namespace scalemark::fabric_test {
namespace {
using test::Tree;

constexpr const char* kPort = "sys/class/infiniband/mlx5_0/ports/1/";

/// An interface and a port of an adapter, as the kernel shows them.
void machine(Tree& tree, int dropped, int symbols, int retries) {
  tree.file("sys/class/net/lo/statistics/rx_errors", "7\n")
      .file("sys/class/net/eth0/statistics/rx_errors", "2\n")
      .file("sys/class/net/eth0/statistics/rx_dropped", std::to_string(dropped) + "\n")
      .file("sys/class/net/eth0/statistics/rx_bytes", "123456\n")
      .file(std::string(kPort) + "counters/symbol_error", std::to_string(symbols) + "\n")
      .file(std::string(kPort) + "counters/port_xmit_data", "99\n")
      .file(std::string(kPort) + "hw_counters/local_ack_timeout_err", std::to_string(retries))
      .file(std::string(kPort) + "state", "4: ACTIVE\n")
      .file(std::string(kPort) + "rate", "100 Gb/sec (4X EDR)\n");
}

TEST(ErrorCounters, AreThoseOfErrorsByLink) {
  Tree tree;
  EXPECT_EQ(read_error_counters(tree.root()), ErrorCounters{});
  machine(tree, 5, 10, 1);
  const ErrorCounters expected{{"eth0.rx_errors", 2},
                               {"eth0.rx_dropped", 5},
                               {"mlx5_0/1.symbol_error", 10},
                               {"mlx5_0/1.local_ack_timeout_err", 1}};
  EXPECT_EQ(read_error_counters(tree.root()), expected);
}

TEST(ErrorCounters, OnlyWhatRoseCounts) {
  Tree tree;
  machine(tree, 5, 10, 1);
  const auto before = read_error_counters(tree.root());
  EXPECT_EQ(risen(before, read_error_counters(tree.root())), ErrorCounters{});
  machine(tree, 4, 13, 2);                                      // the interface was made anew
  tree.file("sys/class/net/eth1/statistics/rx_errors", "9\n");  // and this one appeared
  const ErrorCounters expected{{"mlx5_0/1.symbol_error", 3}, {"mlx5_0/1.local_ack_timeout_err", 1}};
  EXPECT_EQ(risen(before, read_error_counters(tree.root())), expected);
}

TEST(FabricPorts, SayStateAndRate) {
  Tree tree;
  EXPECT_TRUE(read_fabric_ports(tree.root()).empty());
  machine(tree, 0, 0, 0);
  tree.file("sys/class/infiniband/mlx5_1/ports/1/state", "1: DOWN\n");
  const auto ports = read_fabric_ports(tree.root());
  ASSERT_EQ(ports.size(), 2u);
  EXPECT_EQ(ports[0].name, "mlx5_0/1");
  EXPECT_EQ(ports[0].state, "ACTIVE");
  EXPECT_EQ(ports[0].gigabits_per_second, 100);
  EXPECT_EQ(ports[0].sent_bytes, 4 * 99U);
  EXPECT_EQ(ports[1].sent_bytes, std::nullopt);
  EXPECT_EQ(ports[1].state, "DOWN");
  EXPECT_EQ(ports[1].gigabits_per_second, std::nullopt);
}

}  // namespace
}  // namespace scalemark::fabric_test
