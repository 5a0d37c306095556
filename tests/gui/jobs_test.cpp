// Background jobs: delivery, errors, replacement, cancellation, shutdown.
#include "app/gui/state/base/jobs.h"

#include <algorithm>
#include <atomic>
#include <latch>
#include <thread>

#include <gtest/gtest.h>

namespace loadline::gui {
namespace {

void drain(Jobs& jobs) {
  while (!jobs.idle())
    if (!jobs.poll()) std::this_thread::yield();
}

TEST(Jobs, a_value_arrives_on_the_polling_thread) {
  Jobs jobs(2);
  int got = 0;
  std::thread::id where;
  jobs.post(
      "answer", "", [](Progress&) { return 42; },
      [&](Outcome<int> outcome) {
        got = outcome.value();
        where = std::this_thread::get_id();
      });
  EXPECT_EQ(got, 0);
  drain(jobs);
  EXPECT_EQ(got, 42);
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST(Jobs, an_error_arrives_as_one) {
  Jobs jobs(1);
  std::vector<std::string> messages;
  const auto note = [&](Outcome<int> outcome) { messages.push_back(outcome.error().what()); };
  jobs.post(
      "a", "", [](Progress&) -> int { throw Error(ErrorCode::io, "disk is gone"); }, note);
  jobs.post(
      "b", "", [](Progress&) -> int { throw std::bad_alloc(); }, note);
  jobs.post(
      "c", "", [](Progress&) -> int { throw std::runtime_error("foreign"); }, note);
  drain(jobs);
  EXPECT_EQ(messages, (std::vector<std::string>{"disk is gone", "not enough memory", "foreign"}));
}

TEST(Jobs, a_tag_replaces_what_has_not_started) {
  Jobs jobs(1);
  std::latch running(1);
  std::latch go(1);
  std::vector<int> results;
  jobs.post(
      "blocker", "slider",
      [&](Progress&) {
        running.count_down();
        go.wait();
        return 0;
      },
      [&](Outcome<int> outcome) { results.push_back(outcome.value()); });
  running.wait();
  for (int i = 1; i <= 100; ++i)
    jobs.post(
        "move", "slider", [i](Progress&) { return i; },
        [&](Outcome<int> outcome) { results.push_back(outcome.value()); });
  EXPECT_EQ(jobs.view().size(), 2u);
  go.count_down();
  drain(jobs);
  EXPECT_EQ(results, (std::vector<int>{0, 100}));
}

TEST(Jobs, a_tag_stops_what_is_running) {
  Jobs jobs(2);
  std::latch running(1);
  std::vector<std::string> ends;
  const auto note = [&](Outcome<int> outcome) { ends.push_back(outcome.ok() ? "done" : "stopped"); };
  jobs.post(
      "endless", "plan",
      [&](Progress& progress) {
        running.count_down();
        for (;; std::this_thread::yield()) progress.check_cancelled();
        return 0;
      },
      note);
  running.wait();
  jobs.post(
      "next", "plan", [](Progress&) { return 1; }, note);
  drain(jobs);
  std::sort(ends.begin(), ends.end());
  EXPECT_EQ(ends, (std::vector<std::string>{"done", "stopped"}));
}

TEST(Jobs, progress_is_seen_and_cancel_reaches_the_worker) {
  Jobs jobs(1);
  std::latch half(1);
  bool cancelled = false;
  const JobId id = jobs.post(
      "long", "",
      [&](Progress& progress) {
        progress.add_total(10);
        progress.add(5);
        half.count_down();
        while (true) {
          progress.check_cancelled();
          std::this_thread::yield();
        }
        return 0;
      },
      [&](Outcome<int> outcome) { cancelled = outcome.error().code() == ErrorCode::cancelled; });
  half.wait();
  const JobView view = jobs.view().front();
  EXPECT_EQ(view.name, "long");
  EXPECT_TRUE(view.running);
  EXPECT_EQ(view.fraction, 0.5);
  jobs.cancel(id);
  drain(jobs);
  EXPECT_TRUE(cancelled);
}

TEST(Jobs, destruction_stops_what_runs_and_forgets_what_waits) {
  std::atomic<int> started = 0;
  std::atomic<int> delivered = 0;
  {
    Jobs jobs(2);
    std::latch both(2);
    for (int i = 0; i < 50; ++i)
      jobs.post(
          "endless", "",
          [&](Progress& progress) {
            if (started++ < 2) both.count_down();
            while (!progress.cancelled()) std::this_thread::yield();
            return 0;
          },
          [&](Outcome<int>) { ++delivered; });
    both.wait();
  }
  EXPECT_EQ(started, 2);
  EXPECT_EQ(delivered, 0);
}

TEST(Jobs, wake_is_called_for_every_delivery) {
  std::atomic<int> woken = 0;
  Jobs jobs(2);
  jobs.set_wake([&] { ++woken; });
  for (int i = 0; i < 20; ++i)
    jobs.post(
        "x", "", [](Progress&) { return 1; }, [](Outcome<int>) {});
  drain(jobs);
  while (woken < 20) std::this_thread::yield();
  EXPECT_EQ(woken, 20);
}

TEST(Jobs, a_delivery_may_post_again) {
  Jobs jobs(1);
  int last = 0;
  std::function<void(int)> chain = [&](int i) {
    jobs.post(
        "link", "chain", [i](Progress&) { return i; },
        [&](Outcome<int> outcome) {
          last = outcome.value();
          if (last < 10) chain(last + 1);
        });
  };
  chain(1);
  drain(jobs);
  EXPECT_EQ(last, 10);
}

}  // namespace
}  // namespace loadline::gui
