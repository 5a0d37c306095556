// Each thread takes the stage that is due: a window begins (in order), is filled (in any order), is finished
// and hashed (in order), is written (in order).
#include "exporters/writer/pipeline.h"

#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/io/system_memory.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

namespace loadline::exporters {

// --- How a memory budget is shared.

namespace {

constexpr std::uint64_t kUnit = 4096;
constexpr std::uint64_t kMostWindow = 4 << 20;  // larger writes are not faster

struct Buffered {
  Window window;
  std::span<std::byte> memory;
  std::uint64_t digest = 0;
  bool filled = false;
};

}  // namespace

PipelineSizes share_budget(std::uint64_t budget, unsigned threads, bool computes, bool gathers) {
  PipelineSizes sizes;
  sizes.threads = std::max(threads, 1u);
  // one that is written, one that is hashed, one that waits
  sizes.windows = sizes.threads + 3;
  if (gathers) budget -= std::min(budget / 2, (sizes.threads + 2) * io::TensorReader::kMostGathered);
  const std::uint64_t share = (computes ? budget / 2 : budget) / sizes.windows;
  sizes.window = static_cast<std::size_t>(std::clamp(share / kUnit * kUnit, kUnit, kMostWindow));
  if (computes)
    sizes.recipes = std::max(
        (budget - std::min<std::uint64_t>(budget, sizes.windows * sizes.window)) / (sizes.threads + 2),
        convert::RecipeReader::kLeastMemory);
  return sizes;
}

// --- The stages of a run and the threads that take them.

struct Pipeline::State {
  explicit State(const PipelineSizes& sizes) : memory(sizes.windows * sizes.window), buffers(sizes.windows) {
    for (std::size_t i = 0; i < buffers.size(); ++i)
      buffers[i].memory = memory.span().subspan(i * sizes.window, sizes.window);
    for (unsigned i = 0; i <= sizes.threads; ++i) recipes.emplace_back(sizes.recipes);
  }

  io::Pages memory;
  std::vector<Buffered> buffers;
  std::vector<RecipeBuffers> recipes;  // of each thread
};

Pipeline::Pipeline(const PipelineSizes& sizes) : state_(std::make_unique<State>(sizes)) {}
Pipeline::~Pipeline() = default;

// A stage that goes in order is taken by one thread at a time. What a thread did is seen by the one that
// takes the next stage of the same window: each takes and leaves a stage with the mutex held.
class Pipeline::Run {
 public:
  Run(State& state, FileContent& content, std::uint64_t begin, std::uint64_t end, io::Xxh3& hash,
      const Write& write, const Progress& progress)
      : state_(state),
        content_(content),
        at_(begin),
        end_(end),
        hash_(hash),
        write_(write),
        progress_(progress) {}

  // Takes stages until every window is written, or until a stage of any thread has thrown: the thread of that
  // stage throws it on.
  void work(RecipeBuffers& recipes) {
    std::unique_lock lock(mutex_);
    try {
      while (!failed_ && (at_ != end_ || written_ != begun_)) {
        if (!writing_ && written_ != finished_)
          write_next(lock);
        else if (!finishing_ && finished_ != begun_ && buffer(finished_).filled)
          finish_next(lock);
        else if (!beginning_ && at_ != end_ && begun_ - written_ < state_.buffers.size())
          fill_next(lock, recipes);
        else
          due_.wait(lock);
      }
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      failed_ = true;
      due_.notify_all();
      throw;
    }
    due_.notify_all();
  }

 private:
  Buffered& buffer(std::size_t window) { return state_.buffers[window % state_.buffers.size()]; }

  // Each stage is entered and left with the mutex held. At its end up to two stages are due: this thread
  // takes one, and wakes another thread for the other.
  void write_next(std::unique_lock<std::mutex>& lock) {
    const Buffered& next = buffer(written_);
    writing_ = true;
    lock.unlock();
    write_(next.window.offset, next.window.bytes, next.digest);
    lock.lock();
    writing_ = false;
    ++written_;
    due_.notify_one();
  }

  void finish_next(std::unique_lock<std::mutex>& lock) {
    Buffered& next = buffer(finished_);
    finishing_ = true;
    lock.unlock();
    content_.finish(next.window);
    hash_.update(next.window.bytes);
    next.digest = hash_.digest();
    lock.lock();
    finishing_ = false;
    ++finished_;
    due_.notify_one();
  }

  void fill_next(std::unique_lock<std::mutex>& lock, RecipeBuffers& recipes) {
    Buffered& next = buffer(begun_);
    beginning_ = true;
    lock.unlock();
    progress_.check_canceled();
    next.filled = false;
    next.window.offset = at_;
    next.window.bytes =
        next.memory.first(static_cast<std::size_t>(std::min<std::uint64_t>(next.memory.size(), end_ - at_)));
    content_.begin(next.window);
    lock.lock();
    beginning_ = false;
    at_ += next.window.bytes.size();
    ++begun_;
    due_.notify_one();
    lock.unlock();
    content_.fill(next.window, recipes);
    lock.lock();
    next.filled = true;
  }

  State& state_;
  FileContent& content_;
  std::mutex mutex_;
  std::condition_variable due_;  // a stage is due, all is written, or a stage has thrown
  std::uint64_t at_;
  std::uint64_t end_;
  std::size_t begun_ = 0, finished_ = 0, written_ = 0;  // windows that have passed each stage
  bool beginning_ = false, finishing_ = false, writing_ = false;
  bool failed_ = false;
  io::Xxh3& hash_;
  const Write& write_;
  const Progress& progress_;
};

void Pipeline::run(FileContent& content, std::uint64_t begin, std::uint64_t end, io::Xxh3& hash,
                   const Write& write, const Progress& progress) {
  Run stages(*state_, content, begin, end, hash, write, progress);
  const std::size_t window = state_->buffers.front().memory.size();
  const std::uint64_t windows = (end - begin + window - 1) / window;
  const auto threads = static_cast<std::size_t>(std::min<std::uint64_t>(state_->recipes.size(), windows));
  ParallelLoop(threads, threads, [&](std::size_t thread) { stages.work(state_->recipes[thread]); }).finish();
}

}  // namespace loadline::exporters
