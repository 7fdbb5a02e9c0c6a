#include "postrider/runtime/service.hpp"

#include <gtest/gtest.h>

#include <string>

#include "postrider/runtime/run_blocking.hpp"

namespace postrider::runtime {
namespace {

using namespace std::chrono_literals;

struct Recorder : Service {
  using Service::Service;
  ~Recorder() override = default;

  Task<SteadyTime> pass(SteadyTime now) override {
    calls += 'p';
    if (in_pass) in_pass();
    if (rests) co_await rest_for(1h);
    calls += '.';
    co_return now + interval;
  }
  SteadyTime first_pass_at(SteadyTime now) const override { return now + delay; }
  Task<void> interrupt() override {
    calls += 'i';
    co_return;
  }
  Task<void> finish() override {
    calls += 'f';
    co_return;
  }
  using Service::spawn;

  std::string calls;
  Job in_pass;
  bool rests = false;
  std::chrono::nanoseconds delay{0}, interval = 1h;
};

struct ServiceTest : testing::Test {
  template <class T>
  T run(Task<T> task) {
    return run_blocking(loop, std::move(task));
  }
  Task<void> turn() {
    Yield later{loop};
    co_await later;
  }

  Loop loop;
  Recorder service{loop};
};

TEST_F(ServiceTest, RunsAPassWhenItStartsAndOneForEachWakeUp) {
  service.start();
  EXPECT_EQ(service.calls, "p.");
  service.wake();
  EXPECT_EQ(service.calls, "p.p.");
  run(service.stop());
  EXPECT_EQ(service.calls, "p.p.if");
}

TEST_F(ServiceTest, AWakeUpDuringAPassStartsAnother) {
  service.in_pass = [this] {
    if (service.calls.size() < 3) service.wake();
  };
  service.start();
  EXPECT_EQ(service.calls, "p.p.");
  run(service.stop());
}

TEST_F(ServiceTest, TheFirstPassMayWait) {
  service.delay = 1h;
  service.start();
  EXPECT_EQ(service.calls, "");
  run(service.stop());
  EXPECT_EQ(service.calls, "if") << "stop() starts no pass";
}

TEST_F(ServiceTest, RunsAgainWhenTheNextPassIsDue) {
  service.interval = 1ns;
  OneShot<bool> third;
  service.in_pass = [&] {
    if (service.calls.size() < 5) return;
    service.interval = 1h;
    third.set(true);
  };
  const auto wait = [](OneShot<bool>& done) -> Task<void> { co_await done; };
  service.start();
  run(wait(third));
  run(service.stop());
  EXPECT_EQ(service.calls, "p.p.p.if");
}

TEST_F(ServiceTest, StopWaitsForThePassAndEndsItsRest) {
  service.rests = true;
  service.start();
  EXPECT_EQ(service.calls, "p");
  run(service.stop());
  EXPECT_EQ(service.calls, "p.if");
}

TEST_F(ServiceTest, StopWaitsForSpawnedTasks) {
  const auto work = [](Loop& on, Recorder& by) -> Task<void> {
    Yield turn{on};
    for (int i = 0; i < 5; ++i) co_await turn;
    by.calls += 'w';
  };
  service.start();
  service.spawn(work(loop, service));
  run(service.stop());
  EXPECT_EQ(service.calls, "p.iwf");
}

TEST_F(ServiceTest, OverlappingStopsWaitForTheSameEnd) {
  const auto work = [](Loop& on) -> Task<void> {
    Yield turn{on};
    for (int i = 0; i < 5; ++i) co_await turn;
  };
  std::string ends;
  const auto stop = [](Recorder& service_, std::string& ends_) -> Task<void> {
    co_await service_.stop();
    ends_ += service_.calls;
  };
  TaskGroup others;
  service.start();
  service.spawn(work(loop));
  others.spawn(stop(service, ends));
  others.spawn(stop(service, ends));
  EXPECT_EQ(ends, "");
  run(stop(service, ends));
  while (others.running() > 0) run(turn());
  EXPECT_EQ(ends, "p.ifp.ifp.if");
}

TEST_F(ServiceTest, StartingTwiceRunsItOnce) {
  service.start();
  service.start();
  EXPECT_EQ(service.calls, "p.");
  run(service.stop());
}

TEST_F(ServiceTest, AStoppedServiceStaysStoppedUntilItIsStartedAgain) {
  service.start();
  run(service.stop());
  run(service.stop());
  service.wake();
  EXPECT_EQ(service.calls, "p.if");
  service.start();
  run(service.stop());
  EXPECT_EQ(service.calls, "p.ifp.p.if") << "the wake-up was kept";
}

TEST_F(ServiceTest, AServiceThatNeverStartedFinishesAllTheSame) {
  run(service.stop());
  EXPECT_EQ(service.calls, "if");
}

TEST(ServiceDeathTest, DestroyingARunningServiceIsABug) {
  EXPECT_DEATH(
      {
        Loop loop;
        auto service = std::make_unique<Recorder>(loop);
        service->start();
        service.reset();
      },
      "");
}

struct Percent {
  int value = 50;
  void validate() const { CHECK(value >= 0 && value <= 100); }
};

TEST(ServiceDeathTest, InvalidOptionsAreABug) {
  EXPECT_EQ(validated(Percent{100}).value, 100);
  EXPECT_DEATH(static_cast<void>(validated(Percent{101})), "value <= 100");
}

}  // namespace
}  // namespace postrider::runtime
