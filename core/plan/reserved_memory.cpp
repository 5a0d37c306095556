// One allocator model a space; lifetimes as a packing problem.
#include "core/plan/reserved_memory.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/io/source_file.h"
#include "core/packing/pack.h"
#include "core/packing/problem.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <functional>
#include <queue>
#include <random>
#include <tuple>
#include <utility>

namespace loadline::plan {

// --- One allocator model per space.

namespace {

constexpr std::uint64_t kTorchHostAlignment = 64;

allocators::BlockPool modeled_pool(allocators::PoolForecast expected) {
  return {{.expected = std::move(expected)},
          [](std::uint32_t, std::uint64_t wanted, std::uint64_t) {
            return allocators::PoolBlock{wanted, wanted};
          },
          [](std::uint32_t) {}};
}

// The most that a pool reserves in the space during the plan.
std::uint64_t pool_peak(const Plan& plan, Space space, const allocators::PoolForecast& expected) {
  allocators::BlockPool pool = modeled_pool(expected);
  std::vector<allocators::BlockPool::Range> ranges(plan.blocks.size());
  std::uint64_t peak = 0;
  for (const Step& step : plan.steps) {
    const Block& block = plan.block(step.block);
    if (step.verb == Verb::copy || block.space != space || block.bytes == 0) continue;
    allocators::BlockPool::Range& range = ranges[graph::index(step.block)];
    if (step.verb == Verb::alloc)
      range = pool.allocate(block.bytes);
    else
      pool.free(range);
    peak = std::max(peak, pool.reserved());
  }
  return peak;
}

// Tries sizes of blocks for what passes, and takes the one by which the pool reserves least.
void choose_passing_block(const Plan& plan, Space space, allocators::PoolForecast& forecast) {
  if (std::ranges::all_of(forecast.requests, &allocators::PoolRequest::stays)) return;
  allocators::PoolForecast tried = forecast;
  std::uint64_t least = UINT64_MAX;
  for (const std::uint64_t block :
       {allocators::PoolForecast().passing_block, std::uint64_t{1} << 30, UINT64_MAX}) {
    tried.passing_block = block;
    const std::uint64_t peak = pool_peak(plan, space, tried);
    if (peak >= least) continue;
    least = peak;
    forecast.passing_block = block;
  }
}

}  // namespace

AllocatorBooks::AllocatorBooks(allocators::AllocatorModel model,
                               const PerSpace<allocators::PoolForecast>& expected)
    : model_(model),
      device_pool_(modeled_pool(expected[index(Space::device)])),
      staging_pool_(modeled_pool(expected[index(Space::staging)])) {}

void AllocatorBooks::note(Space space, std::uint64_t reserved) {
  reserved_[index(space)] = reserved;
  peak_[index(space)] = std::max(peak_[index(space)], reserved);
}

void AllocatorBooks::alloc(BlockId id, const Block& block) {
  if (blocks_.size() <= graph::index(id)) blocks_.resize(graph::index(id) + 1);
  State& state = blocks_[graph::index(id)];
  if (model_ == allocators::AllocatorModel::torch && block.space == Space::device) {
    state.torch = torch_.allocate(block.bytes);
    torch_peak_ = std::max(torch_peak_, torch_.allocated());
    return note(block.space, torch_.reserved());
  }
  if (model_ == allocators::AllocatorModel::malloc && block.space == Space::host) {
    state.chunk = heap_.allocate(block.bytes, kTorchHostAlignment, 0, false);
    return note(block.space, heap_.reserved());
  }
  if (model_ == allocators::AllocatorModel::vulkan && block.bytes > 0 &&
      (block.space == Space::device || block.space == Space::staging)) {
    allocators::BlockPool& pool = block.space == Space::device ? device_pool_ : staging_pool_;
    state.range = pool.allocate(block.bytes);
    return note(block.space, pool.reserved());
  }
  note(block.space, reserved_[index(block.space)] + block.bytes);
}

void AllocatorBooks::free(BlockId id, const Block& block) {
  State& state = blocks_[graph::index(id)];
  if (model_ == allocators::AllocatorModel::torch && block.space == Space::device) {
    torch_.release(state.torch);
    return note(block.space, torch_.reserved());
  }
  if (model_ == allocators::AllocatorModel::malloc && block.space == Space::host) {
    heap_.release(state.chunk);
    return note(block.space, heap_.reserved());
  }
  if (model_ == allocators::AllocatorModel::vulkan && block.bytes > 0 &&
      (block.space == Space::device || block.space == Space::staging)) {
    allocators::BlockPool& pool = block.space == Space::device ? device_pool_ : staging_pool_;
    pool.free(state.range);
    return note(block.space, pool.reserved());
  }
  note(block.space, reserved_[index(block.space)] - block.bytes);
}

std::optional<std::uint64_t> AllocatorBooks::allocated_peak() const {
  if (model_ != allocators::AllocatorModel::torch) return std::nullopt;
  return torch_peak_;
}

PerSpace<allocators::PoolForecast> pool_forecasts(const Plan& plan, std::uint64_t alignment) {
  std::vector<bool> stays(plan.blocks.size(), true);
  for (const Step& step : plan.steps)
    if (step.verb == Verb::free) stays[graph::index(step.block)] = false;
  PerSpace<std::uint64_t> live = {}, passing = {};
  PerSpace<allocators::PoolForecast> forecasts = {};
  for (const Step& step : plan.steps) {
    if (step.verb == Verb::copy) continue;
    const Block& block = plan.block(step.block);
    const std::size_t space = index(block.space);
    const std::uint64_t bytes = align_up(block.bytes, alignment);
    if (step.verb == Verb::free) {
      live[space] -= bytes;
      passing[space] -= bytes;
      continue;
    }
    live[space] += bytes;
    const bool stay = stays[graph::index(step.block)];
    if (!stay) passing[space] += bytes;
    allocators::PoolForecast& forecast = forecasts[space];
    if (bytes > 0)
      forecast.requests.push_back({.bytes = bytes, .stays = stay, .passing_peak = passing[space]});
    forecast.peak = std::max(forecast.peak, live[space]);
  }
  for (allocators::PoolForecast& forecast : forecasts)
    for (std::size_t i = forecast.requests.size(); i-- > 1;)
      forecast.requests[i - 1].passing_peak =
          std::max(forecast.requests[i - 1].passing_peak, forecast.requests[i].passing_peak);
  for (const Space space : {Space::device, Space::staging})
    choose_passing_block(plan, space, forecasts[index(space)]);
  return forecasts;
}

std::uint64_t unreused_heap_peak(const Plan& plan) {
  constexpr std::uint64_t kMapped = 32 << 20;
  std::uint64_t heap = 0, mapped = 0, peak = 0;
  for (const Step& step : plan.steps) {
    const Block& block = plan.block(step.block);
    if (step.verb == Verb::copy || block.space != Space::host) continue;
    if (block.bytes >= kMapped)
      mapped = step.verb == Verb::alloc ? mapped + block.bytes : mapped - block.bytes;
    else if (step.verb == Verb::alloc)
      heap += block.bytes;
    peak = std::max(peak, heap + mapped);
  }
  return peak;
}

// --- Replays host blocks with the small objects that go with them.

namespace {

constexpr std::size_t kMostReplayed = 20'000;  // blocks
constexpr std::size_t kMostEvents = 80'000;
constexpr std::uint64_t kAligning = 128;  // what a request for 64 aligned bytes asks for besides

// The size from which requests are mapped once a mapping with that many bytes was freed; 0: it does not rise.
// The next request of the same size comes from the heap.
std::uint64_t threshold_after(std::uint64_t bytes) {
  constexpr std::uint64_t kMost = 32 << 20, kPage = 4096, kLead = 48;  // glibc's DEFAULT_MMAP_THRESHOLD_MAX
  const std::uint64_t mapped = align_up(bytes + kAligning, kPage) - kLead;
  return mapped <= kMost ? mapped : 0;
}

// Requests to malloc that PyTorch makes for a tensor besides its bytes, and Python for its wrapper.
constexpr std::array<std::uint64_t, 7> kHostObjects = {96, 80, 29, 176, 24, 184, 24};
constexpr std::array<std::uint64_t, 5> kDeviceObjects = {96, 80, 29, 24, 184};

// The heap of one process while a plan runs.
class HeapReplay {
 public:
  HeapReplay(const HeapUse& use, std::uint64_t phase) : heap_({.threshold = use.threshold}), phase_(phase) {
    for (const std::uint64_t bytes : use.built_empty) {
      std::vector<Piece> built = {{heap_.allocate(bytes, kTorchHostAlignment, 0, false), 0}}, meta;
      add_objects(built, kHostObjects, 0);
      add_objects(meta, kDeviceObjects, 0);
      release(built);
    }
  }

  void alloc(std::size_t at, const Block& block, std::uint32_t thread) {
    if (pieces_.size() <= at) pieces_.resize(at + 1);
    std::vector<Piece>& pieces = pieces_[at];
    if (block.space == Space::device) return add_objects(pieces, kDeviceObjects, thread);
    start(thread);
    pieces.push_back({heap_.allocate(block.bytes, kTorchHostAlignment, thread), thread});
    add_objects(pieces, kHostObjects, thread);
    peak_ = std::max(peak_, heap_.resident());
  }

  void free(std::size_t at) {
    assert(at < pieces_.size() && "a block that was never allocated");
    release(pieces_[at]);
  }

  std::uint64_t peak() const { return peak_; }
  std::uint64_t reserved() const { return heap_.reserved(); }

 private:
  struct Piece {
    allocators::MallocHeap::Chunk chunk = {};
    std::uint32_t thread = 0;
  };

  // What a thread had allocated before decides where in a unit of 64 bytes its tensors begin.
  void start(std::uint32_t thread) {
    constexpr std::uint64_t kBefore = 2048, kStep = 16;
    if (started_.size() <= thread) started_.resize(thread + 1);
    if (started_[thread]) return;
    started_[thread] = true;
    heap_.allocate(kBefore + kStep * phase_, kStep, thread);
  }

  void add_objects(std::vector<Piece>& pieces, std::span<const std::uint64_t> objects, std::uint32_t thread) {
    for (const std::uint64_t bytes : objects) pieces.push_back({heap_.allocate(bytes, 16, thread), thread});
  }

  void release(std::vector<Piece>& pieces) {
    for (const Piece& piece : pieces) heap_.release(piece.chunk, piece.thread);
    pieces = {};
  }

  allocators::MallocHeap heap_;
  const std::uint64_t phase_;
  std::vector<std::vector<Piece>> pieces_;  // by block
  std::vector<bool> started_;               // by thread
  std::uint64_t peak_ = 0;
};

}  // namespace

HeapForecast::HeapForecast(HeapUse use)
    : use_(std::move(use)), threshold_(use_.threshold), mappings_(mappings()) {
  for (const std::uint64_t bytes : use_.built_empty)
    threshold_ = std::max(threshold_, threshold_after(bytes));
  most_committed_ = mappings_.bytes;
}

HeapForecast::Mappings HeapForecast::mappings() const {
  Mappings all;
  for (const HeapUse::MappedFile& file : use_.files) {
    all.blocks.push_back(file.stays ? 1 : 0);
    if (file.stays) all.bytes += file.bytes;
  }
  return all;
}

void HeapForecast::map(Mappings& mappings, const Block& block, bool free) const {
  const std::uint32_t file = use_.file_of[graph::index(*block.storage)];
  if (file >= use_.files.size()) return;
  std::uint32_t& alive = mappings.blocks[file];
  if (free && --alive == 0) mappings.bytes -= use_.files[file].bytes;
  if (!free && alive++ == 0) mappings.bytes += use_.files[file].bytes;
}

bool HeapForecast::counts(const Block& block) const {
  if (block.space == Space::page_cache) return block.storage && !use_.file_of.empty();
  return block.bytes > 0 && (block.space == Space::host || block.space == Space::device);
}

void HeapForecast::take(std::span<const Block> blocks, std::span<const Step> steps) {
  is_mapped_.resize(blocks.size());
  for (const Step& step : steps) {
    const std::size_t at = graph::index(step.block);
    const Block& block = blocks[at];
    if (step.verb == Verb::copy || !counts(block)) continue;
    const bool free = step.verb == Verb::free;
    too_many_ |= events_.size() >= kMostEvents;
    if (!too_many_ && !use_.fixed) events_.push_back({step.block, 0, free});
    if (block.space == Space::page_cache) map(mappings_, block, free);
    if (block.space == Space::host && !free) {
      is_mapped_[at] = block.bytes + kAligning >= threshold_;
      fuses_ |= use_.workers > 0 && !block.storage;
      live_ += block.bytes;
      (is_mapped_[at] ? mapped_ : heap_) += block.bytes;
    } else if (block.space == Space::host) {
      live_ -= block.bytes;
      if (is_mapped_[at]) mapped_ -= block.bytes;
      if (is_mapped_[at]) threshold_ = std::max(threshold_, threshold_after(block.bytes));
    }
    most_live_ = std::max(most_live_, live_);
    most_kept_ = std::max(most_kept_, heap_ + mapped_);
    most_committed_ = std::max(most_committed_, (use_.fixed ? live_ : heap_ + mapped_) + mappings_.bytes);
  }
}

std::uint64_t HeapForecast::built_bytes() const {
  if (use_.fixed || use_.built_empty.empty()) return 0;
  if (use_.built_empty.size() <= kMostReplayed) return HeapReplay(use_, 1).reserved();
  std::uint64_t all = 0;
  for (const std::uint64_t bytes : use_.built_empty) all += threshold_after(bytes) > 0 ? bytes : 0;
  return all;
}

HeapFigures HeapForecast::finish(std::span<const Block> blocks) const {
  constexpr std::uint64_t kPhases = 4, kManyBlocks = 1'000, kStack = 8 << 20;
  // kLeastScattered: so much was measured of thousands of small tensors, where the replay finds less
  constexpr double kSame = 1.02, kScattered = 1.06, kWidest = 1.5, kLeastScattered = 1.7;
  const auto times = [](double factor, std::uint64_t bytes) {
    return static_cast<std::uint64_t>(factor * static_cast<double>(bytes));
  };
  const std::uint64_t objects = use_.object_bytes, exact = most_live_ + objects,
                      beside = objects + kStack * use_.workers;
  const bool keeps = most_kept_ > times(kSame, most_live_) || (fuses_ && !too_many_);
  if (use_.fixed || !keeps) return {{exact, exact, exact}, most_committed_ + beside + built_bytes()};
  if (too_many_) return {{exact, most_kept_ + objects, exact}, most_committed_ + beside + built_bytes()};
  HeapFigures most;
  const auto look = [&](const Events& events, std::uint64_t phase) {
    const HeapFigures found = replay(blocks, events, phase);
    most.resident.high = std::max(most.resident.high, found.resident.high);
    most.committed = std::max(most.committed, found.committed);
  };
  const Events events = by_workers(blocks, 0, 0);
  for (std::uint64_t phase = 1; phase <= kPhases; phase += events.size() > 2 * kManyBlocks ? 2 : 1)
    look(events, phase);
  std::uint32_t other = 0;
  if (use_.workers > 1)
    for (const double spread : {0.3, 3.0})
      for (const std::uint32_t seed : {1u, 2u}) look(by_workers(blocks, spread, seed), 1 + other++ % kPhases);
  for (const Events& order : earlier_fusions(blocks, events)) look(order, 1 + other++ % kPhases);
  most.committed += beside;
  std::uint64_t peak = most.resident.high;
  most.resident = {peak + objects, peak + objects, exact};
  if (peak <= times(kSame, most_live_)) return most;
  if (use_.scattered || use_.workers > 1) peak = times(kScattered, peak);
  if (use_.scattered) peak = std::max(peak, times(kLeastScattered, most_live_));
  most.resident.high = peak + objects;
  most.resident.low = std::max(exact, times(1 / kWidest, most.resident.high));
  return most;
}

std::vector<HeapForecast::Item> HeapForecast::worker_items(std::span<const Block> blocks,
                                                           Events& rest) const {
  Events before;
  std::vector<Item> items;
  std::vector<std::uint32_t> item_of(blocks.size());  // from 1 on
  auto at = events_.begin();
  for (; at != events_.end(); ++at) {
    const Block& block = blocks[graph::index(at->block)];
    std::uint32_t& item = item_of[graph::index(at->block)];
    if (block.space == Space::host && !block.storage) break;
    if (block.space == Space::host && !at->free) {
      before.push_back(*at);
      items.push_back({at->block, std::exchange(before, {})});
      item = static_cast<std::uint32_t>(items.size());
    } else if (item > 0) {
      items[item - 1].passes = true;
    } else if (block.space == Space::page_cache || items.empty()) {
      before.push_back(*at);
    } else {
      items.back().events.push_back(*at);
    }
  }
  rest = std::move(before);
  rest.insert(rest.end(), at, events_.end());
  return items;
}

// The plan's events where workers bring the storages: each takes the next one when it is done with its last,
// which it then frees if it passes. A storage takes as long as its bytes, times up to 1 + `spread`.
HeapForecast::Events HeapForecast::by_workers(std::span<const Block> blocks, double spread,
                                              std::uint32_t seed) const {
  if (use_.workers == 0) return events_;
  Events order, rest;
  const std::vector<Item> items = worker_items(blocks, rest);
  using Worker = std::tuple<double, std::uint32_t, const Item*>;  // when it is done, and what it holds
  std::priority_queue<Worker, std::vector<Worker>, std::greater<>> workers;
  for (std::uint32_t thread = 1; thread <= use_.workers; ++thread) workers.emplace(0, thread, nullptr);
  const auto let_go = [&](const Item* item, std::uint32_t thread) {
    if (item != nullptr && item->passes) order.push_back({item->block, thread, true});
  };
  std::minstd_rand random(seed);
  constexpr double kCallBytes = 20'000;  // what a storage costs besides its bytes
  for (const Item& item : items) {
    const auto [now, thread, held] = workers.top();
    workers.pop();
    let_go(held, thread);
    for (Event event : item.events) {
      event.thread = thread;
      order.push_back(event);
    }
    const double share = static_cast<double>(random()) / static_cast<double>(std::minstd_rand::max());
    const auto bytes = static_cast<double>(blocks[graph::index(item.block)].bytes);
    workers.emplace(now + (1 + spread * share) * bytes + kCallBytes, thread, &item);
  }
  for (; !workers.empty(); workers.pop()) let_go(std::get<2>(workers.top()), std::get<1>(workers.top()));
  order.insert(order.end(), rest.begin(), rest.end());
  return order;
}

// Workers bring all storages, then the main thread fuses groups of them: so the plan has it. It may fuse each
// group as soon as its parts are there, or while the workers are one or two groups ahead: then what they free
// raises the threshold while others still come. Empty if nothing is fused on the host.
std::vector<HeapForecast::Events> HeapForecast::earlier_fusions(std::span<const Block> blocks,
                                                                const Events& events) const {
  if (use_.workers == 0) return {};
  Events brought;
  std::vector<std::uint32_t> place(blocks.size());  // in `brought`, from 1 on
  struct Group {
    Events events;
    std::uint32_t needs = 0;  // how many storages must be there
  };
  std::vector<Group> groups;
  std::size_t stacks = 0;  // temporary blocks of the group, alive
  // what follows goes to a device
  const auto end = std::ranges::find_if(
      events, [&](const Event& event) { return blocks[graph::index(event.block)].space == Space::device; });
  Events rest(end, events.end());
  for (const Event& event : std::span(events.begin(), end)) {
    const Block& block = blocks[graph::index(event.block)];
    if (block.storage && !event.free) {
      brought.push_back(event);
      place[graph::index(event.block)] = static_cast<std::uint32_t>(brought.size());
      continue;
    }
    const bool is_stack = !block.storage && block.use == BlockUse::temporary;
    if (!event.free && stacks == 0) groups.emplace_back();
    if (groups.empty()) return {};
    groups.back().events.push_back(event);
    groups.back().needs = std::max(groups.back().needs, place[graph::index(event.block)]);
    if (is_stack) event.free ? --stacks : ++stacks;
  }
  // what follows the last group that takes storages together is a pass
  while (!groups.empty() && groups.back().needs == 0) {
    rest.insert(rest.begin(), groups.back().events.begin(), groups.back().events.end());
    groups.pop_back();
  }
  for (std::size_t i = 1; i < groups.size(); ++i)
    groups[i].needs = std::max(groups[i].needs, groups[i - 1].needs);
  std::vector<Events> orders;
  constexpr std::size_t kMostAhead = 2;
  for (std::size_t ahead = 0; groups.size() > 1 && ahead <= kMostAhead; ++ahead) {
    Events& order = orders.emplace_back();
    std::size_t next = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::size_t until = groups[std::min(i + ahead, groups.size() - 1)].needs;
      for (; next < until; ++next) order.push_back(brought[next]);
      order.insert(order.end(), groups[i].events.begin(), groups[i].events.end());
    }
    for (; next < brought.size(); ++next) order.push_back(brought[next]);
    order.insert(order.end(), rest.begin(), rest.end());
  }
  return orders;
}

HeapFigures HeapForecast::replay(std::span<const Block> blocks, const Events& events,
                                 std::uint64_t phase) const {
  HeapReplay heap(use_, phase);
  Mappings files = mappings();
  std::uint64_t committed = files.bytes + heap.reserved();
  for (const Event& event : events) {
    const std::size_t at = graph::index(event.block);
    if (blocks[at].space == Space::page_cache)
      map(files, blocks[at], event.free);
    else
      event.free ? heap.free(at) : heap.alloc(at, blocks[at], event.thread);
    committed = std::max(committed, heap.reserved() + files.bytes);
  }
  return {{0, heap.peak()}, committed};
}

// --- Turns lifetimes of blocks into buffers.

SpaceProblem space_problem(const Plan& plan, const Timeline& timeline, Space space, std::uint64_t alignment) {
  SpaceProblem result;
  for (std::size_t i = 0; i < plan.blocks.size(); ++i) {
    const Lifetime& life = timeline.lifetimes[i];
    if (plan.blocks[i].space != space || plan.blocks[i].bytes == 0 || life.from_step == kNever) continue;
    result.problem.buffers.push_back({.lower = life.from_step,
                                      .upper = life.to_step == kNever ? plan.steps.size() + 1 : life.to_step,
                                      .size = align_up(plan.blocks[i].bytes, alignment),
                                      .alignment = alignment});
    result.blocks.push_back(BlockId{static_cast<std::uint32_t>(i)});
  }
  return result;
}

// --- Packs the blocks of a space.

namespace {

// Advice projects hundreds of loads. For a streaming load of 91,991 tensors the greedy heuristics take 0.1 s;
// the searches after them take 0.7 to 1.2 s more and save 0.001 % of the height. Below this size they take at
// most 0.2 s.
constexpr std::size_t kMany = 50'000;

}  // namespace

Arena plan_arena(const Plan& plan, const Timeline& timeline, Space space, Progress& progress,
                 std::uint64_t alignment) {
  const SpaceProblem blocks = space_problem(plan, timeline, space, alignment);
  packing::PackOptions options;
  options.effort = blocks.blocks.size() > kMany ? packing::Effort::greedy : packing::Effort::bounded;
  const packing::Packing packing = packing::pack(blocks.problem, options, progress);
  if (packing.offsets.size() != blocks.blocks.size())
    throw Error(ErrorCode::limit, "no arena below 2^62 bytes holds the blocks");
  Arena arena;
  arena.height = packing.height();
  arena.lower_bound = packing.lower_bound();
  arena.offsets.assign(plan.blocks.size(), 0);
  for (std::size_t i = 0; i < blocks.blocks.size(); ++i)
    arena.offsets[static_cast<std::size_t>(blocks.blocks[i])] = packing.offsets[i];
  return arena;
}

// --- Reads the whole file at once and frees the text once the buffers exist.

packing::Problem read_packing_file(const std::string& path) {
  constexpr std::uint64_t kMostFile = std::uint64_t{1} << 30;
  const io::SourceFile file = io::SourceFile::open(path);
  if (file.size() > kMostFile)
    throw Error(ErrorCode::limit, {.file = path}, "{} is over the limit of {}", format_bytes(file.size()),
                format_bytes(kMostFile));
  packing::Problem problem = packing::read_packing_csv(file.head(file.size()), path);
  packing::check_problem(problem);
  return problem;
}

}  // namespace loadline::plan
