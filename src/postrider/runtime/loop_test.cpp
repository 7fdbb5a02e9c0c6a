#include "postrider/runtime/loop.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "postrider/runtime/task.hpp"
#include "postrider/runtime/worker.hpp"

namespace postrider::runtime {
namespace {

using namespace std::chrono_literals;

TEST(Loop, RunsPostedJobsInOrderOnItsThread) {
  Loop loop;
  std::vector<int> order;
  std::thread other([&] {
    for (int i = 0; i < 3; ++i)
      loop.post([&, i] {
        EXPECT_TRUE(loop.is_this_thread());
        order.push_back(i);
        if (i == 2) loop.stop();
      });
  });
  loop.run();
  other.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

Task<void> work_in_steps(Loop& loop, std::chrono::nanoseconds turn_max, std::string& order) {
  Pause pause(loop, turn_max);
  for (int step = 0; step < 3; ++step) {
    co_await pause;
    order += 'w';
  }
  loop.stop();
}

std::string order_of_steps_and_others(std::chrono::nanoseconds turn_max) {
  Loop loop;
  TaskGroup tasks;
  std::string order;
  loop.post([&] {
    for (int i = 0; i < 3; ++i) loop.post([&order] { order += 'o'; });
    tasks.spawn(work_in_steps(loop, turn_max, order));
  });
  loop.run();
  return order;
}

TEST(Pause, LetsOthersRunBetweenTheStepsOfLongWork) {
  EXPECT_EQ(order_of_steps_and_others(0ns), "ooowww");
}

TEST(Pause, DoesNotInterruptShortWork) {
  EXPECT_EQ(order_of_steps_and_others(1h).substr(0, 3), "www");
}

Task<void> note_threads(Worker& worker, Loop& loop, std::vector<std::thread::id>& threads) {
  OnWorker work(worker, loop, [&threads] { threads.push_back(std::this_thread::get_id()); });
  co_await work;
  threads.push_back(std::this_thread::get_id());
  loop.stop();
}

TEST(Worker, RunsAJobOnItsThreadAndResumesOnTheLoop) {
  Worker worker;
  Loop loop;
  TaskGroup tasks;
  std::vector<std::thread::id> threads;
  loop.post([&] { tasks.spawn(note_threads(worker, loop, threads)); });
  loop.run();
  ASSERT_EQ(threads.size(), 2);
  EXPECT_NE(threads[0], std::this_thread::get_id());
  EXPECT_EQ(threads[1], std::this_thread::get_id());
}

Task<void> note_error(Worker& worker, Loop& loop, std::string& text) {
  OnWorker work(worker, loop, [] { throw std::runtime_error("no memory"); });
  try {
    co_await work;
  } catch (const std::runtime_error& error) {
    text = error.what();
  }
  loop.stop();
}

TEST(Worker, PassesOnWhatAJobThrows) {
  Worker worker;
  Loop loop;
  TaskGroup tasks;
  std::string text;
  loop.post([&] { tasks.spawn(note_error(worker, loop, text)); });
  loop.run();
  EXPECT_EQ(text, "no memory");
}

TEST(Timer, ASecondTimeReplacesTheFirst) {
  Loop loop;
  Timer timer(loop);
  std::string called;
  timer.call_after(1ms, [&] { called += "first"; });
  timer.call_after(5ms, [&] {
    called += "second";
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(called, "second");
}

TEST(Timer, ADestroyedTimerNeverCalls) {
  Loop loop;
  {
    Timer(loop).call_after(0ms, [] { FAIL(); });
  }
  Timer later(loop);
  later.call_after(5ms, [&] { loop.stop(); });
  loop.run();
}

Task<int> twice(int value) {
  co_return value * 2;
}
Task<int> failing() {
  throw std::runtime_error("database gone");
  co_return 0;
}

Task<void> awaits(std::string& seen) {
  const int result = co_await twice(21);
  seen += std::to_string(result);
  try {
    co_await failing();
  } catch (const std::runtime_error& error) {
    seen += error.what();
  }
}

TEST(Task, ReturnsValuesAndCarriesExceptions) {
  std::string seen;
  TaskGroup group;
  group.spawn(awaits(seen));
  EXPECT_EQ(seen, "42database gone");
}

Task<void> sleeper(Wakeup& wakeup, std::string& seen) {
  co_await wakeup.wait_for(1h);
  seen += "woken;";
  co_await wakeup.wait_for(1ms);
  seen += "timed out;";
}

Task<void> joins(TaskGroup& group, Loop& loop) {
  co_await group.join();
  loop.stop();
}

TEST(Wakeup, ReturnsAtNotifyOrAtTheTime) {
  Loop loop;
  Wakeup wakeup(loop);
  std::string seen;
  TaskGroup group, joiners;
  group.spawn(sleeper(wakeup, seen));
  joiners.spawn(joins(group, loop));
  loop.post([&] { wakeup.notify(); });
  loop.run();
  EXPECT_EQ(seen, "woken;timed out;");
}

TEST(OneShot, ResumesWhetherSetBeforeOrAfterTheAwait) {
  OneShot<int> early, late;
  int sum = 0;
  const auto add = [](OneShot<int>& shot, int& total) -> Task<void> { total += co_await shot; };
  TaskGroup group;
  early.set(1);
  group.spawn(add(early, sum));
  group.spawn(add(late, sum));
  EXPECT_EQ(sum, 1);
  late.set(2);
  EXPECT_EQ(sum, 3);
}

}  // namespace
}  // namespace postrider::runtime
