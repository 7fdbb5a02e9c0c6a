#include "postrider/pg/listener.hpp"

#include <csignal>

#include "postrider/pg/pgtest_fixture.hpp"
#include "support/cluster.hpp"

namespace postrider::pg {
namespace {

using namespace std::chrono_literals;
using runtime::Task;

struct ListenerTest : ConnectedTest {
  ListenerTest() : wakeup(loop) {}

  ListenerOptions quick() {
    ListenerOptions chosen;
    chosen.link.connect = options();
    chosen.link.connect.application_name = "listener under test";
    chosen.link.pause_min = chosen.link.pause_max = 10ms;
    chosen.channels = {"wake", "odd \"name\""};
    return chosen;
  }

  void attach(Listener& listener) {
    listener.on_listening([this] {
      ++listening;
      wakeup.notify();
    });
    listener.on_notification([this](std::string_view channel, std::string_view payload) {
      heard.append(channel).append(":").append(payload).append(";");
      wakeup.notify();
    });
    listener.start();
  }

  Task<void> until_listening(int times) {
    while (listening < times) co_await wakeup.wait_for(1h);
  }
  Task<void> until_heard(std::string wanted) {
    while (heard.find(wanted) == std::string::npos) co_await wakeup.wait_for(1h);
  }
  int backend() {
    return std::stoi(
        database.sql("select pid from pg_stat_activity where application_name = 'listener under test'"));
  }

  runtime::Wakeup wakeup;
  int listening = 0;
  std::string heard;
};

TEST_F(ListenerTest, HearsItsChannels) {
  Listener listener(loop, quick());
  attach(listener);
  run(until_listening(1));
  EXPECT_TRUE(listener.is_listening());
  database.sql("notify wake, 'a'");
  run(until_heard("wake:a;"));
  database.sql("select pg_notify('odd \"name\"', 'b')");
  run(until_heard("odd \"name\":b;"));
  run(listener.stop());
}

TEST_F(ListenerTest, ListensAgainAfterALoss) {
  Listener listener(loop, quick());
  attach(listener);
  run(until_listening(1));
  database.sql("select pg_terminate_backend(" + std::to_string(backend()) + ")");
  run(until_listening(2));
  database.sql("notify wake, 'again'");
  run(until_heard("wake:again;"));
  run(listener.stop());
}

TEST_F(ListenerTest, NoticesAConnectionThatDiedSilently) {
  if (!support::Cluster::get().is_own()) GTEST_SKIP() << "not our server";
  ListenerOptions chosen = quick();
  chosen.check_interval = 10ms;
  chosen.check_timeout = 200ms;
  Listener listener(loop, chosen);
  attach(listener);
  run(until_listening(1));
  const pid_t stopped = backend();
  kill(stopped, SIGSTOP);
  run(until_listening(2));
  kill(stopped, SIGCONT);
  run(listener.stop());
}

}  // namespace
}  // namespace postrider::pg
