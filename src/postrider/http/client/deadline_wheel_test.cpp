#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "postrider/http/client/deadline_wheel.hpp"

namespace postrider::http {
namespace {

using namespace std::chrono_literals;

struct Recorded final : Deadline {
  Recorded(std::vector<int>& fired_in_order, int own_number) : fired(fired_in_order), number(own_number) {}
  std::vector<int>& fired;
  int number;
  runtime::SteadyTime set_for{};
  base::UniqueFunction<void()> then;

  void on_deadline() override {
    EXPECT_GE(base::BootClock::now(), set_for);
    fired.push_back(number);
    if (then) then();
  }
};

class Deadlines : public testing::Test {
 protected:
  Recorded& add(int number, std::chrono::milliseconds delay) {
    deadlines_.push_back(std::make_unique<Recorded>(fired_, number));
    Recorded& added = *deadlines_.back();
    added.set_for = begun_ + delay;
    wheel_.set(added, added.set_for);
    return added;
  }

  const base::SteadyTime begun_ = base::BootClock::now();  // of all: their order is that of their delays
  runtime::Loop loop_;
  DeadlineWheel wheel_{loop_};
  std::vector<int> fired_;
  std::vector<std::unique_ptr<Recorded>> deadlines_;
};

TEST_F(Deadlines, FireInOrderAndNeverEarly) {
  add(3, 80ms).then = [this] { loop_.stop(); };
  add(1, 20ms);
  add(2, 50ms);
  add(0, -5ms);
  loop_.run();
  EXPECT_EQ(fired_, (std::vector<int>{0, 1, 2, 3}));
}

TEST_F(Deadlines, AnEarlierOneSetLaterStillFiresFirst) {
  add(2, 500ms).then = [this] { loop_.stop(); };
  loop_.post([this] { add(1, 10ms); });
  loop_.run();
  EXPECT_EQ(fired_, (std::vector<int>{1, 2}));
}

TEST_F(Deadlines, FarOnesDoNotFireWhenTheWheelComesRound) {
  add(9, 1h);
  add(8, std::chrono::milliseconds(10 * 1024 + 20));  // the same slot as the next, one turn later
  add(1, 20ms).then = [this] { loop_.stop(); };
  loop_.run();
  EXPECT_EQ(fired_, (std::vector<int>{1}));
}

TEST_F(Deadlines, OneMayClearReplaceOrDestroyOthersThatAreDue) {
  Recorded& cleared = add(5, 20ms);
  Recorded& replaced = add(6, 20ms);
  const size_t destroyed = deadlines_.size();
  add(7, 20ms);
  add(1, 10ms).then = [&, destroyed] {
    cleared.clear_deadline();
    deadlines_[destroyed].reset();
    replaced.set_for = base::BootClock::now() + 30ms;
    replaced.then = [this] { loop_.stop(); };
    wheel_.set(replaced, replaced.set_for);
  };
  loop_.run();
  EXPECT_EQ(fired_, (std::vector<int>{1, 6}));
}

TEST_F(Deadlines, OneThatIsSetAnewBySlowWorkDelaysNoOther) {
  Recorded& slow = add(1, 20ms);
  slow.then = [&] {
    const auto busy_until = base::BootClock::now() + 25ms;
    while (base::BootClock::now() < busy_until) continue;
    slow.set_for = base::BootClock::now() + 200ms;
    wheel_.set(slow, slow.set_for);
  };
  Recorded& next = add(2, 30ms);  // becomes due while the first one runs
  next.then = [this] { loop_.stop(); };
  loop_.run();
  EXPECT_LT(base::BootClock::now() - next.set_for, 3s) << "it waited until the wheel came round";
}

TEST_F(Deadlines, WorkAgainAfterTheWheelWasEmpty) {
  for (int round = 0; round < 3; ++round) {
    add(round, 15ms * (round + 1)).then = [this] { loop_.stop(); };
    loop_.run();
  }
  EXPECT_EQ(fired_, (std::vector<int>{0, 1, 2}));
}

}  // namespace
}  // namespace postrider::http
