// A few links for queries that may take long (lists, searches): each is used by one caller at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "postrider/pg/link.hpp"

namespace postrider::pg {

class Pool {
  struct State;

 public:
  Pool(runtime::Loop& loop, LinkOptions options, size_t links_max);
  ~Pool();  // stop() was awaited, or start() never called
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void start();
  runtime::Task<void> stop();

  // The owner that a link is used for. An owner that holds links_max of them waits until it releases one. One
  // that has used up its share of the time waits until it has earned more: what it asks of the database costs
  // processor time there, which all owners share.
  struct Claim {
    std::string owner;
    size_t links_max = std::numeric_limits<size_t>::max();
    double time_share = 1;  // of one link: greater than 0, at most 1 (no limit)
    // The longest wait for more time, so that one slow statement does not lock its owner out.
    std::chrono::seconds rest_max = std::chrono::hours(1);
  };
  // An owner may exceed its share by the amount that it earns in this time.
  static constexpr std::chrono::seconds time_share_credit{2};

  // A link for the caller alone until the lease is gone. The pool outlives its leases.
  class Handle {
   public:
    Handle(Handle&& other) noexcept = default;
    Handle& operator=(Handle&& other) noexcept {
      std::swap(state_, other.state_);
      std::swap(link_, other.link_);
      std::swap(claim_, other.claim_);
      std::swap(since_, other.since_);
      return *this;
    }
    ~Handle();
    Link& operator*() const { return *link_; }
    Link* operator->() const { return link_; }

   private:
    friend class Pool;
    Handle(std::shared_ptr<State> state, Link* link, Claim claim);
    std::shared_ptr<State> state_;
    Link* link_;
    Claim claim_;
    runtime::SteadyTime since_;
  };

  // Owners take turns, regardless of how many of their claims wait; the claims of one owner are served in
  // order. Throws Error(unavailable) at the deadline.
  runtime::Task<Handle> acquire(runtime::SteadyTime deadline);
  runtime::Task<Handle> acquire(runtime::SteadyTime deadline, Claim claim);
  // True if a claim of this owner would wait for the owner's own calls: it holds a link, or has used up its
  // share of the time.
  bool is_occupied_by(const std::string& owner) const;
  // Acquires, runs, releases.
  runtime::Task<std::vector<Rows>> run(Batch batch, runtime::SteadyTime deadline);

  bool is_up() const;  // any link

 private:
  std::shared_ptr<State> state_;  // shared with leases and with jobs posted to the loop
};

}  // namespace postrider::pg
