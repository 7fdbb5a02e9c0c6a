// The body that a connection is receiving: its pace, and the memory it is charged for.
#pragma once

#include <string>

#include "postrider/http/server/body_budget.hpp"
#include "postrider/http/server/upload_pace.hpp"

namespace postrider::http {

class Upload {
 public:
  explicit Upload(UploadPace::Rule rule) : pace_(rule) {}
  ~Upload() { end(); }
  Upload(const Upload&) = delete;
  Upload& operator=(const Upload&) = delete;

  // A large body is charged to its owner; one of ordinary size is not.
  void charge(BodyBudget& budget, std::string owner) {
    budget_ = &budget;
    owner_ = std::move(owner);
  }
  void start(base::SteadyTime now) { pace_.start(now); }
  // `bytes` of the body have arrived so far, without framing. False: there is no memory for them.
  bool received(size_t bytes, base::SteadyTime now) {
    const size_t more = bytes - bytes_;
    pace_.received(more, now);
    bytes_ = bytes;
    if (budget_ == nullptr || more == 0) return true;
    if (!budget_->take(owner_, more)) return false;
    charged_ += more;
    return true;
  }
  base::SteadyTime deadline() const { return pace_.deadline(); }
  void end() {
    if (charged_ != 0) budget_->release(owner_, charged_);
    budget_ = nullptr;
    bytes_ = charged_ = 0;
  }

 private:
  UploadPace pace_;
  BodyBudget* budget_ = nullptr;
  std::string owner_;
  size_t bytes_ = 0, charged_ = 0;
};

}  // namespace postrider::http
