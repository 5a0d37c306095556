// Workers take jobs in order; a finished job leaves a closure for the owner's next poll().
#include "app/gui/state/base/jobs.h"

#include "core/io/system_memory.h"

#include <algorithm>

namespace loadline::gui {

Jobs::Jobs(unsigned workers) {
  try {
    for (unsigned i = 0; i < workers; ++i)
      workers_.push_back(start_thread([this](const std::stop_token& stop) { work(stop); }));
  } catch (...) {
    if (workers_.empty()) throw;  // else those that have started do the work
  }
}

Jobs::~Jobs() {
  // first the workers: else one whose job is canceled takes the next
  for (std::jthread& worker : workers_) worker.request_stop();
  cancel_all();
  workers_.clear();
}

JobId Jobs::enqueue(std::shared_ptr<Job> job) {
  const std::lock_guard lock(mutex_);
  if (!job->tag.empty())
    std::erase_if(jobs_, [&](const std::shared_ptr<Job>& old) {
      if (old->tag == job->tag) old->stop.request_stop();
      return old->tag == job->tag && !old->running;
    });
  const JobId id{next_id_++};
  job->id = id;
  jobs_.push_back(std::move(job));
  available_.notify_one();
  return id;
}

std::shared_ptr<Jobs::Job> Jobs::take(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  std::shared_ptr<Job> taken;
  const auto waiting = [&] {
    const auto job = std::ranges::find_if(jobs_, [](const auto& candidate) { return !candidate->running; });
    if (job != jobs_.end()) taken = *job;
    return job != jobs_.end();
  };
  if (!available_.wait(lock, stop, waiting) || stop.stop_requested()) return nullptr;
  taken->running = true;
  return taken;
}

void Jobs::work(std::stop_token stop) {
  yield_to_others();
  while (const std::shared_ptr<Job> job = take(stop)) {
    Delivery delivery = job->run(job->progress);
    std::function<void()> wake;
    bool last = false;
    {
      const std::lock_guard lock(mutex_);
      std::erase(jobs_, job);
      deliveries_.push_back(std::move(delivery));
      wake = wake_;
      last = jobs_.empty();
    }
    if (wake) wake();
    if (last) io::release_free_memory();
  }
}

bool Jobs::poll() {
  bool any = false;
  for (;;) {
    Delivery delivery;
    {
      const std::lock_guard lock(mutex_);
      if (deliveries_.empty()) return any;
      delivery = std::move(deliveries_.front());
      deliveries_.pop_front();
    }
    any = true;
    delivery();  // without the lock: it may post
  }
}

void Jobs::cancel(JobId id) {
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<Job>& job : jobs_)
    if (job->id == id) job->stop.request_stop();
}

void Jobs::cancel_all() {
  const std::lock_guard lock(mutex_);
  for (const std::shared_ptr<Job>& job : jobs_) job->stop.request_stop();
}

std::vector<JobView> Jobs::view() const {
  const std::lock_guard lock(mutex_);
  std::vector<JobView> views;
  for (const std::shared_ptr<Job>& job : jobs_)
    views.push_back({job->id, job->name, job->running, job->stop.stop_requested(), job->progress.fraction(),
                     job->progress.done(), job->progress.total()});
  return views;
}

std::optional<JobView> Jobs::find(JobId id) const {
  for (const JobView& job : view())
    if (job.id == id) return job;
  return std::nullopt;
}

std::uint64_t Jobs::posted() const {
  const std::lock_guard lock(mutex_);
  return next_id_ - 1;
}

bool Jobs::idle() const {
  const std::lock_guard lock(mutex_);
  return jobs_.empty() && deliveries_.empty();
}

void Jobs::set_wake(std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
}

}  // namespace loadline::gui
