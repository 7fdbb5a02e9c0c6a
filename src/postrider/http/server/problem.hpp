// RFC 9457 problem documents: the only form of error response of this server.
#pragma once

#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "postrider/http/request.hpp"
#include "postrider/http/response.hpp"

namespace postrider::http {

struct FieldProblem {
  std::string pointer;  // JSON pointer into the body, or the name of a query parameter
  std::string detail;
};

// Keeps the first few and counts the rest, so that an error response is never much larger than the request.
class FieldProblems {
 public:
  static constexpr size_t kKeptMax = 20;

  FieldProblems() = default;
  FieldProblems(std::initializer_list<FieldProblem> problems) {
    for (const FieldProblem& problem : problems) push_back(problem);
  }

  void push_back(FieldProblem problem) {
    if (++size_ <= kKeptMax) kept_.push_back(std::move(problem));
  }
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }  // of all
  size_t left_out() const { return size_ - kept_.size(); }
  // Those that are kept.
  auto begin() const { return kept_.begin(); }
  auto end() const { return kept_.end(); }
  const FieldProblem& front() const { return kept_.front(); }

 private:
  std::vector<FieldProblem> kept_;
  size_t size_ = 0;
};

struct Problem {
  int status = 400;
  std::string type{};    // "unknown-tenant", sent as urn:postrider:problem:unknown-tenant; by status if empty
  std::string title{};   // by status if empty
  std::string detail{};  // a sentence for people; the title if empty
  FieldProblems errors{};
  std::optional<std::chrono::seconds> retry_after{};
};

// The detail, or the title without one, and how many errors are not listed.
std::string full_detail(const Problem& problem);

Response problem(const Problem& problem, std::string_view request_id);
inline Response problem(const Request& request, const Problem& what) {
  return problem(what, request.id);
}

}  // namespace postrider::http
