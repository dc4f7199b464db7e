// Lines by sockets and by ports: who may come, and addresses that lead nowhere.
#include <gtest/gtest.h>

#include "error.hpp"
#include "rendezvous/start_barrier.hpp"
#include "support/test_folder.hpp"

namespace scalemark::line_address_test {
namespace {

TEST(LineAddress, ThatLeadsNowhere) {
  EXPECT_THROW(connect_barrier("/nowhere/line"), EnvironmentError);
  EXPECT_THROW(connect_barrier("/" + std::string(200, 'x')), EnvironmentError);
  for (const char* address : {"", "tcp://", "tcp://a", "tcp://a@", "tcp://a@:1", "tcp://a@x:1",
                              "tcp://a@127.0.0.1:1", "tcp://a@127.0.0.1:x"})
    EXPECT_THROW(connect_barrier(address), EnvironmentError) << address;
}

TEST(LineAddress, OfASocketInAFolder) {
  const TestFolder folder;
  const BarrierListener listener(folder.path() / "line");
  EXPECT_EQ(listener.accept(), -1);
  int theirs = connect_barrier(listener.address());
  int ours = listener.accept();
  EXPECT_GE(theirs, 0);
  EXPECT_GE(ours, 0);
  close_line(theirs);
  close_line(ours);
}

TEST(LineAddress, OfAPortNamesTheHostAndASecret) {
  const BarrierListener one, other;
  EXPECT_EQ(one.token().size(), 32u);
  EXPECT_NE(one.token(), other.token());
  EXPECT_TRUE(one.address().starts_with("tcp://" + one.token() + "@")) << one.address();
}

}  // namespace
}  // namespace scalemark::line_address_test
