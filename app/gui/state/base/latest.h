// Holds the answer to the newest of several questions that run as background jobs.
#pragma once

#include "app/gui/state/base/jobs.h"
#include "core/base/error.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace loadline::gui {

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
  bool was_cancelled() const { return error_ && error_->code() == ErrorCode::cancelled; }
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
  // Asks the job to stop. If it does, the error says that it was cancelled.
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
