#include "postrider/pg/pool.hpp"

#include <algorithm>
#include <list>
#include <optional>
#include <unordered_map>
#include <utility>

#include "postrider/base/check.hpp"
#include "postrider/base/time.hpp"

namespace postrider::pg {

using runtime::SteadyTime;
using runtime::Task;

struct Pool::State : std::enable_shared_from_this<Pool::State> {
  explicit State(runtime::Loop& on) : loop(on), wake(on) {}

  struct Place {
    std::unique_ptr<Link> link;
    bool is_free = true;
  };
  struct Owner;
  struct Waiter {
    Waiter(State& of, const Claim& claim, SteadyTime deadline);
    ~Waiter() { leave(); }
    void leave();

    State& state;
    const Claim& claim;
    std::optional<std::list<Waiter*>::iterator> place;
    runtime::OneShot<Link*> done;  // null: none was free in time
    runtime::Timer timer;
  };
  struct Owner {
    size_t held = 0;
    uint64_t last_turn = 0;  // the one that had its turn longest ago is next
    SteadyTime paid_until;   // when its share of the time has paid for its use
    std::list<Waiter*> waiting;

    SteadyTime rested_at() const { return paid_until - time_share_credit; }
    bool is_idle(SteadyTime now) const { return held == 0 && waiting.empty() && paid_until <= now; }
  };

  Link* take_free(const Claim& claim);
  Link* take_unless_others_wait(const Claim& claim);
  void give_back(Link* link, const Claim& claim, SteadyTime since);
  void forget_idle_owners();
  Waiter* next_waiter();
  Waiter* any_waiter();
  void offer();
  void offer_soon();
  void offer_when_rested();

  runtime::Loop& loop;
  std::vector<Place> places;
  std::unordered_map<std::string, Owner> owners;  // those that hold, wait or have not paid yet
  SteadyTime owners_checked_at;
  size_t waiters = 0;  // of all owners
  uint64_t turns = 0;
  runtime::Timer wake;  // when an owner that waits has rested
  bool is_stopping = false;
};

Pool::State::Waiter::Waiter(State& of, const Claim& wanted, SteadyTime deadline)
    : state(of), claim(wanted), timer(of.loop) {
  std::list<Waiter*>& waiting = state.owners[claim.owner].waiting;
  place = waiting.insert(waiting.end(), this);
  ++state.waiters;
  timer.call_at(deadline, [this] {
    leave();
    done.set(nullptr);
  });
}

void Pool::State::Waiter::leave() {
  if (!place) return;
  state.owners[claim.owner].waiting.erase(*place);
  place.reset();
  --state.waiters;
}

// Once a second, so that a call does not scan all owners of the last seconds.
void Pool::State::forget_idle_owners() {
  const SteadyTime now = base::BootClock::now();
  if (now - owners_checked_at < std::chrono::seconds(1)) return;
  owners_checked_at = now;
  std::erase_if(owners, [now](const auto& owner) { return owner.second.is_idle(now); });
}

Link* Pool::State::take_free(const Claim& claim) {
  for (Place& place : places) {
    if (!place.is_free || !place.link->is_up()) continue;
    place.is_free = false;
    Owner& owner = owners[claim.owner];
    ++owner.held;
    owner.last_turn = ++turns;
    return place.link.get();
  }
  return nullptr;
}

// Waiters that could be served come first: a free link was released in this turn of the loop.
Link* Pool::State::take_unless_others_wait(const Claim& claim) {
  if (next_waiter() != nullptr) return nullptr;
  const Owner& owner = owners[claim.owner];
  const bool may_take = owner.held < claim.links_max && owner.rested_at() <= base::BootClock::now();
  return may_take ? take_free(claim) : nullptr;
}

void Pool::State::give_back(Link* link, const Claim& claim, SteadyTime since) {
  for (Place& place : places)
    if (place.link.get() == link) place.is_free = true;
  Owner& owner = owners[claim.owner];
  --owner.held;
  const SteadyTime now = base::BootClock::now();
  if (claim.time_share < 1) {
    const auto price = std::chrono::duration_cast<SteadyTime::duration>((now - since) / claim.time_share);
    owner.paid_until =
        std::min(std::max(owner.paid_until, now) + price, now + time_share_credit + claim.rest_max);
  }
  forget_idle_owners();
  offer_soon();
}

// Posted to the loop, since a link may be released in any destructor.
void Pool::State::offer_soon() {
  if (any_waiter() == nullptr) return;
  loop.post([state = shared_from_this()] { state->offer(); });
}

// Scans all owners only if something waits.
Pool::State::Waiter* Pool::State::next_waiter() {
  if (waiters == 0) return nullptr;
  const Owner* next = nullptr;
  const SteadyTime now = base::BootClock::now();
  for (const auto& [name, owner] : owners) {
    if (owner.waiting.empty() || owner.held >= owner.waiting.front()->claim.links_max) continue;
    if (owner.rested_at() > now) continue;
    if (next == nullptr || owner.last_turn < next->last_turn) next = &owner;
  }
  return next == nullptr ? nullptr : next->waiting.front();
}

Pool::State::Waiter* Pool::State::any_waiter() {
  if (waiters == 0) return nullptr;
  for (const auto& [name, owner] : owners)
    if (!owner.waiting.empty()) return owner.waiting.front();
  return nullptr;
}

void Pool::State::offer() {
  while (Waiter* waiter = is_stopping ? any_waiter() : next_waiter()) {
    Link* link = is_stopping ? nullptr : take_free(waiter->claim);
    if (link == nullptr && !is_stopping) return;
    waiter->leave();
    waiter->timer.cancel();
    waiter->done.set(link);
  }
  if (!is_stopping) offer_when_rested();
}

// These owners become ready when time passes; all others are offered a link when one is released.
void Pool::State::offer_when_rested() {
  if (waiters == 0) return;
  const SteadyTime now = base::BootClock::now();
  std::optional<SteadyTime> first;
  for (const auto& [name, owner] : owners) {
    const SteadyTime at = owner.rested_at();
    if (!owner.waiting.empty() && at > now && (!first || at < *first)) first = at;
  }
  if (first) wake.call_at(*first, [this] { offer(); });
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
  state_->wake.cancel();
  state_->offer();
  for (const State::Place& place : state_->places) co_await place.link->stop();
}

bool Pool::is_up() const {
  return std::any_of(state_->places.begin(), state_->places.end(),
                     [](const State::Place& place) { return place.link->is_up(); });
}

Pool::Handle::~Handle() {
  if (state_) state_->give_back(link_, claim_, since_);
}

Pool::Handle::Handle(std::shared_ptr<State> state, Link* link, Claim claim)
    : state_(std::move(state)), link_(link), claim_(std::move(claim)), since_(base::BootClock::now()) {}

bool Pool::is_occupied_by(const std::string& name) const {
  const auto owner = state_->owners.find(name);
  if (owner == state_->owners.end()) return false;
  return owner->second.held > 0 || owner->second.rested_at() > base::BootClock::now();
}

Task<Pool::Handle> Pool::acquire(SteadyTime deadline) {
  return acquire(deadline, Claim());
}

Task<Pool::Handle> Pool::acquire(SteadyTime deadline, Claim claim) {
  CHECK(claim.links_max > 0 && claim.time_share > 0);
  const std::shared_ptr<State> state = state_;
  if (state->is_stopping) throw Error(Kind::unavailable, "stopping");
  Link* link = state->take_unless_others_wait(claim);
  if (link == nullptr) {
    State::Waiter waiter(*state, claim, deadline);
    state->offer_when_rested();
    link = co_await waiter.done;
  }
  if (link == nullptr)
    throw Error(Kind::unavailable, is_up()
                                       ? "all database connections are busy"
                                       : "no database connection: " + state->places[0].link->last_error());
  co_return Handle(state, link, std::move(claim));
}

Task<std::vector<Rows>> Pool::run(Batch batch, SteadyTime deadline) {
  const Handle lease = co_await acquire(deadline);
  std::vector<Rows> rows = co_await lease->run(std::move(batch));
  co_return std::move(rows);
}

}  // namespace postrider::pg
