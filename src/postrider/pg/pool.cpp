#include "postrider/pg/pool.hpp"

#include <algorithm>
#include <list>
#include <optional>

#include "postrider/base/check.hpp"

namespace postrider::pg {

using runtime::SteadyTime;
using runtime::Task;

struct Pool::State : std::enable_shared_from_this<Pool::State> {
  explicit State(runtime::Loop& on) : loop(on) {}

  struct Place {
    std::unique_ptr<Link> link;
    bool is_free = true;
  };
  struct Waiter {
    Waiter(State& of, SteadyTime deadline);
    ~Waiter() { leave(); }
    void leave();

    State& state;
    std::optional<std::list<Waiter*>::iterator> place;
    runtime::OneShot<Link*> done;  // null: in vain
    runtime::Timer timer;
  };

  Link* take_free();
  void give_back(Link* link);
  void offer();
  void offer_soon();

  runtime::Loop& loop;
  std::vector<Place> places;
  std::list<Waiter*> waiters;
  bool is_stopping = false;
};

Pool::State::Waiter::Waiter(State& of, SteadyTime deadline)
    : state(of), place(of.waiters.insert(of.waiters.end(), this)), timer(of.loop) {
  timer.call_at(deadline, [this] {
    leave();
    done.set(nullptr);
  });
}

void Pool::State::Waiter::leave() {
  if (place) state.waiters.erase(*place);
  place.reset();
}

Link* Pool::State::take_free() {
  for (Place& place : places) {
    if (!place.is_free || !place.link->is_up()) continue;
    place.is_free = false;
    return place.link.get();
  }
  return nullptr;
}

void Pool::State::give_back(Link* link) {
  for (Place& place : places)
    if (place.link.get() == link) place.is_free = true;
  offer_soon();
}

// From the loop, since a lease may be given back in any destructor.
void Pool::State::offer_soon() {
  if (waiters.empty()) return;
  loop.post([state = shared_from_this()] { state->offer(); });
}

void Pool::State::offer() {
  while (!waiters.empty()) {
    Link* link = is_stopping ? nullptr : take_free();
    if (link == nullptr && !is_stopping) return;
    Waiter* waiter = waiters.front();
    waiter->leave();
    waiter->timer.cancel();
    waiter->done.set(link);
  }
}

Pool::Pool(runtime::Loop& loop, LinkOptions options, size_t links_max)
    : state_(std::make_shared<State>(loop)) {
  CHECK(links_max > 0);
  for (size_t i = 0; i < links_max; ++i) {
    auto link = std::make_unique<Link>(loop, options);
    link->on_up([state = state_.get()](const LinkUp&) { state->offer_soon(); });
    state_->places.push_back({std::move(link)});
  }
}

Pool::~Pool() = default;

void Pool::start() {
  for (const State::Place& place : state_->places) place.link->start();
}

Task<void> Pool::stop() {
  state_->is_stopping = true;
  state_->offer();
  for (const State::Place& place : state_->places) co_await place.link->stop();
}

bool Pool::is_up() const {
  return std::any_of(state_->places.begin(), state_->places.end(),
                     [](const State::Place& place) { return place.link->is_up(); });
}

Pool::Lease::~Lease() {
  if (state_) state_->give_back(link_);
}

Task<Pool::Lease> Pool::acquire(SteadyTime deadline) {
  const std::shared_ptr<State> state = state_;
  if (state->is_stopping) throw Error(Kind::unavailable, "stopping");
  Link* link = state->waiters.empty() ? state->take_free() : nullptr;
  if (link == nullptr) {
    State::Waiter waiter(*state, deadline);
    link = co_await waiter.done;
  }
  if (link == nullptr)
    throw Error(Kind::unavailable, is_up()
                                       ? "all database connections are busy"
                                       : "no database connection: " + state->places[0].link->last_error());
  co_return Lease(state, link);
}

Task<std::vector<Rows>> Pool::run(Batch batch, SteadyTime deadline) {
  const Lease lease = co_await acquire(deadline);
  std::vector<Rows> rows = co_await lease->run(std::move(batch));
  co_return std::move(rows);
}

}  // namespace postrider::pg
