// The loop that all writers of batches share, with a writer that fails on request.
#include "postrider/pg/batch_commit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "postrider/runtime/run_blocking.hpp"

namespace postrider::pg {
namespace {

using namespace std::chrono_literals;
using runtime::Task;
using testing::ElementsAre;

Error failure(Kind kind) {
  return Error(kind, to_string(kind));
}
Error server_error(const std::string& sqlstate, const std::string& constraint = "") {
  return Error(Error::Report{sqlstate, "error " + sqlstate, constraint});
}
const Error missing_partition = server_error("23514");

// Each attempt is recorded as the letters of its items, with a question mark if it may be committed already.
class RecordingWriter final : public BatchWriter<char> {
 public:
  // Throws, or does not.
  std::function<void(const std::string& items)> on_write = [](const std::string&) {};
  std::function<Repair(const Error&)> on_repair = [](const Error&) { return Repair::none; };

  std::vector<std::string> attempts, written, given_up;
  std::string rejected, simplified;
  int repairs = 0;

  Task<void> write(Items items, CommitAttempt attempt) override {
    const std::string text(items.begin(), items.end());
    attempts.push_back(text + (attempt.may_be_committed ? "?" : ""));
    on_write(text);
    written.push_back(text);
    co_return;
  }
  Task<void> reject(const char& item, const Error&) override {
    rejected += item;
    co_return;
  }
  Task<Repair> repair(Items, const Error& error) override {
    ++repairs;
    co_return on_repair(error);
  }
  void simplify(const char& item) override { simplified += item; }
  void give_up(Items items, const Error& error, CommitAttempt attempt) override {
    const std::string text(items.begin(), items.end());
    given_up.push_back(text + (attempt.may_be_committed ? "? " : " ") + error.what());
  }
};

struct BatchCommitTest : testing::Test {
  CommitPolicy policy{.pauses = {.min = 1ms, .max = 2ms}};
  runtime::Loop loop;
  RecordingWriter writer;

  void commit(const std::string& items, CommitAttempt first = {.deadline = base::BootClock::now() + 1h}) {
    BatchCommit<char> batch_commit(loop, policy);
    runtime::run_blocking(loop, batch_commit.run(writer, items, first));
  }
  // The n-th attempt fails with the n-th error; those after the last error succeed.
  void fail_with(std::vector<Error> errors) {
    writer.on_write = [this, errors = std::move(errors)](const std::string&) {
      if (writer.attempts.size() <= errors.size()) throw Error(errors[writer.attempts.size() - 1]);
    };
  }
  void fail_items(const std::string& bad, const Error& error) {
    writer.on_write = [bad, error](const std::string& items) {
      if (items.find_first_of(bad) != std::string::npos) throw Error(error);
    };
  }
};

TEST_F(BatchCommitTest, ABatchIsWrittenAtOnce) {
  commit("abc");
  EXPECT_THAT(writer.attempts, ElementsAre("abc"));
}

TEST_F(BatchCommitTest, PassingErrorsAreRetried) {
  fail_with({failure(Kind::retry), failure(Kind::unavailable), server_error("40P01")});
  commit("abc");
  EXPECT_THAT(writer.attempts, ElementsAre("abc", "abc", "abc", "abc"));
  EXPECT_THAT(writer.written, ElementsAre("abc"));
}

TEST_F(BatchCommitTest, OneBadItemIsFoundAndTheOthersAreWrittenInOrder) {
  fail_items("d", failure(Kind::item));
  commit("abcdefg");
  EXPECT_THAT(writer.written, ElementsAre("abc", "e", "fg"));
  EXPECT_EQ(writer.rejected, "d");
}

TEST_F(BatchCommitTest, EveryBadItemIsFound) {
  fail_items("adg", server_error("22P05"));
  commit("abcdefg");
  EXPECT_THAT(writer.written, ElementsAre("bc", "e", "f"));
  EXPECT_EQ(writer.rejected, "adg");
}

TEST_F(BatchCommitTest, AnUnknownResultIsRepeatedWithTheSameItemsAndTheWriterKnows) {
  fail_with({failure(Kind::unknown), failure(Kind::unavailable)});
  commit("abc");
  EXPECT_THAT(writer.attempts, ElementsAre("abc", "abc?", "abc?"));
}

TEST_F(BatchCommitTest, BothHalvesOfABatchWithAnUnknownResultMayBeCommitted) {
  fail_with({failure(Kind::unknown), failure(Kind::item)});
  commit("abcd");
  EXPECT_THAT(writer.attempts, ElementsAre("abcd", "abcd?", "ab?", "cd?"));
}

// The attempt with the unknown result was committed after the second one had looked for it.
TEST_F(BatchCommitTest, AUniqueViolationAfterAnUnknownResultIsNoBadItem) {
  fail_with({failure(Kind::unknown), server_error("23505")});
  commit("abc");
  EXPECT_THAT(writer.attempts, ElementsAre("abc", "abc?", "abc?"));
  EXPECT_THAT(writer.written, ElementsAre("abc"));
}

TEST_F(BatchCommitTest, AnyOtherUniqueViolationIsABadItem) {
  fail_items("b", server_error("23505"));
  commit("ab");
  EXPECT_EQ(writer.rejected, "b");
}

TEST_F(BatchCommitTest, WithoutADatabaseItTriesUntilTheDeadline) {
  writer.on_write = [](const std::string&) { throw failure(Kind::unavailable); };
  commit("abc", {.deadline = base::BootClock::now() + 20ms});
  EXPECT_GT(writer.attempts.size(), 2u);
  EXPECT_THAT(writer.given_up, ElementsAre("abc unavailable"));
}

TEST_F(BatchCommitTest, WhatMayBeCommittedIsGivenUpAsSuch) {
  fail_with({failure(Kind::unknown), failure(Kind::other)});
  commit("abc");
  EXPECT_THAT(writer.given_up, ElementsAre("abc? other"));
}

TEST_F(BatchCommitTest, AfterTheDeadlineABadItemIsNotSearchedFor) {
  writer.on_write = [](const std::string&) { throw failure(Kind::item); };
  commit("abc", {.deadline = base::BootClock::now()});
  EXPECT_THAT(writer.attempts, ElementsAre("abc"));
  EXPECT_THAT(writer.given_up, ElementsAre("abc item"));
}

TEST_F(BatchCommitTest, AMissingPartitionIsCreatedAndTheBatchTriedAgain) {
  fail_with({missing_partition});
  writer.on_repair = [](const Error& error) {
    return is_missing_partition(error) ? Repair::done : Repair::none;
  };
  commit("abc");
  EXPECT_THAT(writer.attempts, ElementsAre("abc", "abc"));
  EXPECT_EQ(writer.repairs, 1);
}

TEST_F(BatchCommitTest, ARepairThatDoesNotHelpIsNotRepeated) {
  fail_items("b", missing_partition);
  writer.on_repair = [](const Error&) { return Repair::done; };
  commit("b");
  EXPECT_THAT(writer.attempts, ElementsAre("b", "b"));
  EXPECT_EQ(writer.rejected, "b");
  EXPECT_EQ(writer.repairs, 1);
}

TEST_F(BatchCommitTest, ARepairThatIsNotPossibleNowIsRepeated) {
  fail_with({missing_partition, missing_partition, missing_partition});
  writer.on_repair = [](const Error&) { return Repair::later; };
  commit("abc");
  EXPECT_THAT(writer.written, ElementsAre("abc"));
  EXPECT_EQ(writer.repairs, 3);
}

TEST_F(BatchCommitTest, AViolatedConstraintIsNoMissingPartition) {
  EXPECT_TRUE(is_missing_partition(missing_partition));
  EXPECT_FALSE(is_missing_partition(server_error("23514", "event_type_length")));
}

TEST_F(BatchCommitTest, AWriterThatRetriesItselfGetsPassingErrorsBack) {
  policy.retries_passing_errors = false;
  fail_with({failure(Kind::retry)});
  commit("abc");
  EXPECT_THAT(writer.attempts, ElementsAre("abc"));
  EXPECT_THAT(writer.given_up, ElementsAre("abc retry"));
}

TEST_F(BatchCommitTest, AnItemIsTriedWithoutItsDetailsBeforeItIsRejected) {
  policy.rejections_max = 3;
  fail_items("b", failure(Kind::item));
  commit("ab");
  EXPECT_THAT(writer.attempts, ElementsAre("ab", "a", "b", "b", "b"));
  EXPECT_EQ(writer.simplified, "bb");
  EXPECT_EQ(writer.rejected, "b");
}

TEST_F(BatchCommitTest, PassingErrorsAreNoRejections) {
  policy.rejections_max = 2;
  fail_with({failure(Kind::retry), failure(Kind::unavailable), failure(Kind::item)});
  commit("a");
  EXPECT_EQ(writer.simplified, "a");
  EXPECT_THAT(writer.written, ElementsAre("a"));
}

TEST_F(BatchCommitTest, AFullDiskIsWaitedForAndAnotherErrorIsAnItems) {
  policy.splits_other_errors = true;
  const Error full = server_error("53100"), no_right = server_error("42501");
  fail_with({full, no_right, no_right});
  commit("ab", {});
  EXPECT_THAT(writer.attempts, ElementsAre("ab", "ab", "a", "b"));
  EXPECT_EQ(writer.rejected, "a");
}

TEST_F(BatchCommitTest, WhatIsNotWrittenWhenItIsCanceledIsGivenUp) {
  BatchCommit<char> batch_commit(loop, policy);
  writer.on_write = [&](const std::string& items) {
    if (items == "a") batch_commit.cancel();
    throw failure(Kind::item);
  };
  const std::string items = "abcd";
  runtime::run_blocking(loop, batch_commit.run(writer, items));
  EXPECT_THAT(writer.attempts, ElementsAre("abcd", "ab", "a"));
  EXPECT_THAT(writer.given_up, ElementsAre("a item", "b canceled", "cd canceled"));
}

TEST_F(BatchCommitTest, ACanceledPauseEndsAtOnce) {
  policy.pauses = {.min = 1h, .max = 1h};
  BatchCommit<char> batch_commit(loop, policy);
  writer.on_write = [&](const std::string&) {
    loop.post([&] {
      batch_commit.cancel();
      batch_commit.end_pause();
    });
    throw failure(Kind::unavailable);
  };
  const std::string items = "abc";
  runtime::run_blocking(loop, batch_commit.run(writer, items));
  EXPECT_THAT(writer.attempts, ElementsAre("abc"));
  EXPECT_THAT(writer.given_up, ElementsAre("abc canceled"));
}

TEST_F(BatchCommitTest, WhatAWriterThrowsWhenItGivesUpEndsTheRun) {
  struct Throwing final : BatchWriter<char> {
    Task<void> write(Items, CommitAttempt) override { throw failure(Kind::other); }
    Task<void> reject(const char&, const Error&) override { co_return; }
    void give_up(Items, const Error& error, CommitAttempt) override { throw Error(error); }
  } throwing;
  BatchCommit<char> batch_commit(loop, policy);
  const std::string items = "abc";
  EXPECT_THROW(runtime::run_blocking(loop, batch_commit.run(throwing, items)), Error);
}

}  // namespace
}  // namespace postrider::pg
