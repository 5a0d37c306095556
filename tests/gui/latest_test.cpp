// The newest question alone is answered, whatever the jobs of older ones deliver, and when.
#include "app/gui/state/base/jobs.h"

#include <latch>
#include <thread>

#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

void drain(Jobs& jobs) {
  while (!jobs.idle())
    if (!jobs.poll()) std::this_thread::yield();
}

// Until a worker has delivered something, which nobody has polled yet.
void wait_until_finished(Jobs& jobs) {
  while (!jobs.view().empty()) std::this_thread::yield();
}

const auto seven = [](Progress&) { return 7; };
const auto eight = [](Progress&) { return 8; };
const auto fails = [](Progress&) -> int { throw Error(ErrorCode::io, "disk is gone"); };

TEST(Latest, an_answer_arrives) {
  Jobs jobs(1);
  Latest<int> latest;
  bool told = false;
  latest.ask(jobs, "q", seven, [&] { told = true; });
  EXPECT_TRUE(latest.busy());
  EXPECT_FALSE(latest.value());
  drain(jobs);
  EXPECT_TRUE(told);
  EXPECT_FALSE(latest.busy());
  EXPECT_EQ(latest.error(), nullptr);
  ASSERT_TRUE(latest.value());
  EXPECT_EQ(*latest.value(), 7);
}

TEST(Latest, an_older_answer_that_waits_to_be_polled_is_dropped) {
  Jobs jobs(1);
  Latest<int> latest;
  std::string told;
  latest.ask(jobs, "older", seven, [&] { told += "older "; });
  wait_until_finished(jobs);
  latest.ask(jobs, "newer", eight, [&] { told += "newer "; });
  drain(jobs);
  EXPECT_EQ(told, "newer ");
  EXPECT_EQ(*latest.value(), 8);
}

TEST(Latest, an_older_answer_that_comes_later_is_dropped) {
  Jobs jobs(2);
  std::latch running(1);
  std::latch go(1);
  Latest<int> latest;
  latest.ask(jobs, "older", [&](Progress&) {
    running.count_down();
    go.wait();
    return 7;
  });
  running.wait();
  bool told = false;
  latest.ask(jobs, "newer", eight, [&] { told = true; });
  while (!told)
    if (!jobs.poll()) std::this_thread::yield();
  EXPECT_FALSE(latest.busy());
  go.count_down();
  drain(jobs);
  EXPECT_EQ(*latest.value(), 8);
}

TEST(Latest, a_newer_question_stops_the_job_of_the_older_one) {
  Jobs jobs(1);
  std::latch running(1);
  Latest<int> latest;
  latest.ask(jobs, "older", [&](Progress& progress) -> int {
    running.count_down();
    for (;;) progress.check_cancelled();
  });
  running.wait();
  latest.ask(jobs, "unstarted", seven);
  latest.ask(jobs, "newest", eight);
  EXPECT_LE(jobs.view().size(), 2u);
  drain(jobs);
  EXPECT_EQ(*latest.value(), 8);
}

TEST(Latest, two_of_them_do_not_replace_each_others_questions) {
  Jobs jobs(1);
  Latest<int> one, other;
  one.ask(jobs, "q", seven);
  other.ask(jobs, "q", eight);
  drain(jobs);
  EXPECT_EQ(*one.value(), 7);
  EXPECT_EQ(*other.value(), 8);
}

TEST(Latest, a_failure_keeps_the_last_answer_until_it_is_dropped) {
  Jobs jobs(1);
  Latest<int> latest;
  latest.ask(jobs, "q", seven);
  drain(jobs);
  latest.ask(jobs, "q", fails);
  drain(jobs);
  EXPECT_EQ(latest.error_text(), "disk is gone");
  EXPECT_FALSE(latest.was_cancelled());
  EXPECT_EQ(*latest.value(), 7);
  latest.drop();
  EXPECT_FALSE(latest.value());
  EXPECT_EQ(latest.error_text(), "disk is gone");
  latest.ask(jobs, "q", eight);
  EXPECT_EQ(latest.error(), nullptr);
  drain(jobs);
  EXPECT_EQ(*latest.value(), 8);
}

TEST(Latest, a_cancelled_question_says_so) {
  Jobs jobs(1);
  Latest<int> latest;
  latest.ask(jobs, "q", [](Progress& progress) -> int {
    for (;;) progress.check_cancelled();
  });
  latest.cancel();
  EXPECT_TRUE(latest.busy());
  drain(jobs);
  EXPECT_TRUE(latest.was_cancelled());
}

TEST(Latest, a_withdrawn_question_has_no_answer) {
  Jobs jobs(1);
  Latest<int> latest;
  bool told = false;
  const auto tell = [&] { told = true; };
  latest.set(1);
  latest.ask(jobs, "q", seven, tell);
  wait_until_finished(jobs);
  latest.withdraw();
  drain(jobs);
  EXPECT_EQ(*latest.value(), 1);
  latest.ask(jobs, "q", seven, tell);
  latest.set(2);
  drain(jobs);
  EXPECT_EQ(*latest.value(), 2);
  latest.ask(jobs, "q", seven, tell);
  latest.reset();
  drain(jobs);
  EXPECT_FALSE(latest.value());
  EXPECT_FALSE(told);
}

TEST(Latest, goes_away_while_its_question_is_open) {
  Jobs jobs(1);
  bool told = false;
  {
    Latest<int> latest;
    latest.ask(jobs, "q", seven, [&] { told = true; });
    wait_until_finished(jobs);
  }
  drain(jobs);
  EXPECT_FALSE(told);
}

TEST(Latest, goes_away_inside_its_own_answer) {
  Jobs jobs(1);
  auto latest = std::make_unique<Latest<int>>();
  int got = 0;
  latest->ask(jobs, "q", seven, [&] {
    got = *latest->value();
    latest.reset();
  });
  drain(jobs);
  EXPECT_EQ(got, 7);
  EXPECT_FALSE(latest);
}

TEST(Latest, keeps_a_pointer_that_the_work_made) {
  Jobs jobs(1);
  Latest<int> latest;
  const auto made = std::make_shared<const int>(3);
  latest.ask(jobs, "q", [made](Progress&) { return made; });
  drain(jobs);
  EXPECT_EQ(latest.value(), made);
}

}  // namespace
}  // namespace loadline::gui
