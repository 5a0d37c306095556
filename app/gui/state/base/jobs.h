// Background jobs: work runs on worker threads, and results are delivered on the thread that calls poll().
#pragma once

#include "core/base/error.h"
#include "core/base/tasks.h"

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

// The result of a job: a value, or the Error that ended it.
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

// A small thread pool. post() and poll() may be called from the owner's thread only; all else from any
// thread.
class Jobs {
 public:
  explicit Jobs(unsigned workers);
  Jobs(const Jobs&) = delete;
  Jobs& operator=(const Jobs&) = delete;
  // Asks every job to stop and waits for them. Results that were not polled are dropped.
  ~Jobs();

  // Runs `work(Progress&) -> T` on a worker, then `finished(Outcome<T>)` inside a later poll(). A job with a
  // tag (not empty) replaces the jobs with the same tag: an unstarted job is dropped and its `finished` never
  // called, a running job is asked to stop. `work` may throw Error or another std::exception; `finished` gets
  // it as an Error.
  template <typename Work, typename Finished>
  JobId post(std::string name, std::string tag, Work work, Finished finished);

  // Delivers the results of finished jobs; true if there were any.
  bool poll();
  void cancel(JobId id);
  void cancel_all();
  // Unfinished jobs, oldest first.
  std::vector<JobView> view() const;
  // The job; nothing if it is finished.
  std::optional<JobView> find(JobId id) const;
  // The number of jobs posted so far.
  std::uint64_t posted() const;
  // True if no job waits or runs and no result is undelivered.
  bool idle() const;
  // Sets a function that workers call whenever there is a result to poll().
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
  std::vector<std::jthread> workers_;  // last member: the threads end before the members they use
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
