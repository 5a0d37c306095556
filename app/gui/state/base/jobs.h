// Background jobs, and the answer to the newest of several questions.
#pragma once

#include "core/base/error.h"
#include "core/base/progress.h"
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

// --- Background jobs: work runs on worker threads, and results are delivered on the thread that calls
// poll().

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
  bool canceling = false;
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
  // called, a running job is asked to stop. `work` may throw anything; `finished` gets it as an Error.
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
    } catch (...) {
      outcome = std::make_shared<Outcome<T>>(current_error());
    }
    return [outcome, finished = std::move(finished)]() mutable { finished(std::move(*outcome)); };
  };
  return enqueue(std::move(job));
}

// --- Holds the answer to the newest of several questions that run as background jobs.

// A question is a job. If a newer question was asked, or the question was withdrawn, the job's answer is
// dropped. So an older answer can never replace a newer one. Used from the thread that polls the jobs; the
// jobs must outlive this object.
template <typename T>
class Latest {
 public:
  Latest() = default;
  Latest(const Latest&) = delete;
  Latest& operator=(const Latest&) = delete;
  ~Latest() { withdraw(); }

  // The last answer; null before the first one. It stays while a newer question is open, and if the newer
  // question fails, until drop() or reset().
  const std::shared_ptr<const T>& value() const { return value_; }
  // The last answer, or a default-constructed T before the first one.
  const T& or_empty() const {
    static const T kEmpty{};
    return value_ ? *value_ : kEmpty;
  }
  // Why the newest question failed; null if it has an answer or is still open.
  const Error* error() const { return error_ ? &*error_ : nullptr; }
  std::string error_text() const { return error_ ? error_->what() : std::string(); }
  bool was_canceled() const { return error_ && error_->code() == ErrorCode::canceled; }
  // Whether a question is open.
  bool busy() const { return question_ != nullptr; }
  // The job of the newest question.
  JobId job() const { return job_; }

  // Runs `work(Progress&)`, which returns a T or a shared pointer to one, as a job. After the answer or the
  // error has arrived, Jobs::poll() calls `then()`.
  template <typename Work, typename Then>
  void ask(Jobs& jobs, std::string name, Work work, Then then) {
    using Answer = std::invoke_result_t<Work&, Progress&>;
    withdraw();
    question_ = std::make_shared<Latest*>(this);
    jobs_ = &jobs;
    job_ = jobs.post(
        std::move(name), tag(), std::move(work),
        [asked = std::weak_ptr<Latest*>(question_), then = std::move(then)](Outcome<Answer> outcome) mutable {
          const std::shared_ptr<Latest*> question = asked.lock();
          if (!question) return;
          (*question)->take(std::move(outcome));
          then();
        });
  }
  template <typename Work>
  void ask(Jobs& jobs, std::string name, Work work) {
    ask(jobs, std::move(name), std::move(work), [] {});
  }

  // Sets the answer without a question, and withdraws any open question.
  void set(T value) {
    withdraw();
    value_ = shared(std::move(value));
  }
  // Asks the job to stop. If it does, the error says that it was canceled.
  void cancel() {
    if (question_) jobs_->cancel(job_);
  }
  // Forgets the question and its error, not the last answer.
  void withdraw() {
    cancel();
    question_.reset();
    error_.reset();
  }
  // Forgets the last answer.
  void drop() { value_.reset(); }
  void reset() {
    withdraw();
    drop();
  }

 private:
  static std::shared_ptr<const T> shared(T value) { return std::make_shared<const T>(std::move(value)); }
  static std::shared_ptr<const T> shared(std::shared_ptr<const T> value) { return value; }

  // A tag unique to this object: only its own next question replaces the one before.
  std::string tag() const { return "latest " + std::to_string(reinterpret_cast<std::uintptr_t>(this)); }

  template <typename Answer>
  void take(Outcome<Answer> outcome) {
    question_.reset();
    if (outcome.ok())
      value_ = shared(std::move(outcome.value()));
    else
      error_ = outcome.error();
  }

  std::shared_ptr<const T> value_;
  std::optional<Error> error_;
  std::shared_ptr<Latest*> question_;  // the open question; the job's delivery holds it weakly
  Jobs* jobs_ = nullptr;
  JobId job_{};
};

}  // namespace loadline::gui
