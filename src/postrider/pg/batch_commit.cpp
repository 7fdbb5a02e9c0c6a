#include "postrider/pg/batch_commit.hpp"

namespace postrider::pg {

bool is_missing_partition(const Error& error) {
  return error.sqlstate() == "23514" && error.constraint().empty();
}

NextStep next_step(const Error& error, const CommitPolicy& policy, const CommitProgress& progress) {
  if (progress.is_over) return NextStep::give_up;
  // The earlier attempt was committed after the writer had looked for its rows. The next look finds them.
  // Only with a deadline: the row may as well belong to something else.
  const bool is_own_row = progress.attempt.may_be_committed && error.sqlstate() == "23505";
  if (is_own_row && progress.attempt.deadline) return NextStep::retry;
  const bool is_of_item = policy.splits_other_errors ? error.is_permanent() : error.kind() == Kind::item;
  if (is_of_item) {
    if (progress.items > 1) return NextStep::split;
    return progress.rejections + 1 < policy.rejections_max ? NextStep::simplify : NextStep::reject;
  }
  if (error.kind() == Kind::other && !policy.splits_other_errors) return NextStep::give_up;
  return policy.retries_passing_errors ? NextStep::retry : NextStep::give_up;
}

}  // namespace postrider::pg
