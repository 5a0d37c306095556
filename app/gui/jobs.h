// Background jobs: work on worker threads, results delivered where they are asked for.
#pragma once

#include "core/base/error.h"
#include "core/base/progress.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace loadline::gui {

// What a job came to: a value or the Error that ended it.
template <typename T>
class Outcome {
 public:
  explicit Outcome(T value) : result_(std::in_place_index<0>, std::move(value)) {}
  explicit Outcome(Error error) : result_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return result_.index() == 0; }
  T& value() { return std::get<0>(result_); }
  const Error& error() const { return std::get<1>(result_); }

 private:
  std::variant<T, Error> result_;
};

enum class JobId : std::uint64_t {};

// A job as a status bar shows it.
struct JobView {
  JobId id{};
  std::string name;
  bool running = false;
  bool cancelling = false;
  double fraction = 0;
  std::uint64_t done = 0;   // bytes
  std::uint64_t total = 0;  // 0 while unknown
};

// A small pool. post() and poll() belong to one thread, the owner's; the rest may be called from any.
class Jobs {
 public:
  explicit Jobs(unsigned workers);
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;
  // Asks every job to stop and waits for them; results that nobody polled are dropped.
  ~Jobs();

  // Runs `work(Progress&) -> T` on a worker, then `finished(Outcome<T>)` inside a later poll(). A
  // job with a tag (not empty) replaces the ones with the same tag: an unstarted one is forgotten and
  // its `finished` never called, a running one is asked to stop. Of `work` only an Error or another
  // std::exception comes out, as an Error.
  template <typename Work, typename Finished>
  JobId post(std::string name, std::string tag, Work work, Finished finished);

  // Delivers what has finished; true if there was anything.
  bool poll();
  void cancel(JobId id);
  void cancel_all();
  // Unfinished jobs, oldest first.
  std::vector<JobView> view() const;
  // The job, unless it is finished.
  std::optional<JobView> find(JobId id) const;
  // How many were posted since the beginning.
  std::uint64_t posted() const;
  // Nothing waits, runs, or is undelivered.
  bool idle() const;
  // Called (from workers) whenever a poll() would find something.
  void set_wake(std::function<void()> wake);

 private:
  using Delivery = std::function<void()>;
  struct Job {
    JobId id{};
    std::string name;
    std::string tag;
    std::stop_source stop;
    Progress progress{stop.get_token()};
    std::function<Delivery(Progress&)> run;
    bool running = false;
  };

  JobId enqueue(std::shared_ptr<Job> job);
  void work(std::stop_token stop);
  std::shared_ptr<Job> take(std::stop_token stop);

  mutable std::mutex mutex_;
  std::condition_variable_any available_;
  std::vector<std::shared_ptr<Job>> jobs_;  // unfinished, in the order posted
  std::deque<Delivery> deliveries_;
  std::function<void()> wake_;
  std::uint64_t next_id_ = 1;
  std::vector<std::jthread> workers_;  // last: they stop before what they use goes
};

template <typename Work, typename Finished>
JobId Jobs::post(std::string name, std::string tag, Work work, Finished finished) {
  using T = std::invoke_result_t<Work&, Progress&>;
  auto job = std::make_shared<Job>();
  job->name = std::move(name);
  job->tag = std::move(tag);
  job->run = [work = std::move(work),
              finished = std::move(finished)](Progress& progress) mutable -> Delivery {
    std::shared_ptr<Outcome<T>> outcome;
    try {
      outcome = std::make_shared<Outcome<T>>(work(progress));
    } catch (const Error& error) {
      outcome = std::make_shared<Outcome<T>>(error);
    } catch (const std::bad_alloc&) {
      outcome = std::make_shared<Outcome<T>>(Error(ErrorCode::limit, "not enough memory"));
    } catch (const std::exception& error) {
      outcome = std::make_shared<Outcome<T>>(Error(ErrorCode::io, error.what()));
    }
    return [outcome, finished = std::move(finished)]() mutable { finished(std::move(*outcome)); };
  };
  return enqueue(std::move(job));
}

}  // namespace loadline::gui
