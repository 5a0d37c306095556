// The verbs, the check, reads of the files, values as blocks.
#include "core/plan/plan.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/forward/pass/lifetimes.h"
#include "core/plan/block_contents.h"
#include "core/plan/timeline.h"

#include <optional>
#include <vector>

#include <fmt/core.h>

namespace loadline::plan {

// --- The verbs that append steps, and the validity check of plans.

namespace {

bool can_be_made(const convert::Prepack& prepack) {
  const auto numbers = checked_mul(prepack.rows, prepack.columns);
  return numbers && *numbers > 0 && *numbers < convert::kMostPrepacked &&
         convert::can_prepack(prepack.from, prepack.to);
}

template <typename... Args>
std::string fault(fmt::format_string<Args...> text, Args... args) {
  return fmt::format(text, std::move(args)...);
}

}  // namespace

std::optional<std::string> PlanChecker::check(std::span<const Block> blocks, std::span<const Step> steps,
                                              std::size_t first) {
  begin(blocks);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (is_plain(steps[i])) continue;
    if (const auto problem = check_step(steps[i])) return fmt::format("step {}: {}", first + i, *problem);
  }
  return std::nullopt;
}

std::optional<std::string> PlanChecker::check_step(const Step& step) {
  if (graph::index(step.block) >= blocks_.size())
    return fault("block {} does not exist", graph::index(step.block));
  const Block& block = blocks_[graph::index(step.block)];
  State& state = states_[graph::index(step.block)];
  if (step.verb == Verb::alloc) {
    if (state != State::unborn) return fault("block {} is allocated twice", graph::index(step.block));
    const auto sum = checked_add(live_, block.bytes);
    if (!sum || *sum >> 63 != 0) return fault("more than 2^63 bytes are alive");
    live_ = *sum;
    state = State::alive;
    return check_mapping(step, block);
  }
  if (state != State::alive)
    return fault("block {} is used while it is not allocated", graph::index(step.block));
  if (step.verb == Verb::copy) return check_copy(step, block);
  state = State::dead;
  live_ -= block.bytes;
  return std::nullopt;
}

std::optional<std::string> PlanChecker::check_mapping(const Step& step, const Block& block) const {
  if (block.prepack() && (block.space != Space::device || !block.storage || !can_be_made(*block.prepack()) ||
                          block.bytes != convert::prepacked_bytes(*block.prepack())))
    return fault("block {} is not a packed weight on the device", graph::index(step.block));
  if (block.storage && graph::index(*block.storage) >= graph_.storages.size())
    return fault("storage {} does not exist", graph::index(*block.storage));
  if (block.space != Space::page_cache) return std::nullopt;
  if (!block.storage || graph::index(*block.storage) >= graph_.storages.size())
    return fault("a page_cache block maps no storage");
  if (block.bytes > graph_.storage(*block.storage).bytes)
    return fault("maps {} bytes of a storage of {}", block.bytes, graph_.storage(*block.storage).bytes);
  return std::nullopt;
}

std::optional<std::string> PlanChecker::check_copy(const Step& step, const Block& to) const {
  std::uint64_t written = step.bytes;
  if (step.cast) {
    const auto cast = cast_bytes(*step.cast, step.bytes);
    if (!cast || !cast_bytes(*step.cast, step.from_offset))
      return fault("casts {} bytes at {} from {} to {}, which are not whole numbers", step.bytes,
                   step.from_offset, graph::dtype_info(step.cast->from).name,
                   graph::dtype_info(step.cast->to).name);
    if (to.space == Space::page_cache) return fault("a mapping holds what its file holds");
    written = *cast;
  }
  if (!range_fits(step.offset, written, to.addressed_bytes()))
    return fault("writes {} bytes at {} of a block of {}", written, step.offset, to.addressed_bytes());
  if (to.prepack()) {
    const std::uint64_t unit = graph::dtype_info(to.prepack()->from).block_bytes;
    if (step.cast || step.offset % unit != 0 || step.bytes % unit != 0)
      return fault("packs {} bytes at {}, which are not whole numbers as stored", step.bytes, step.offset);
  }
  if (const auto* storage = std::get_if<graph::StorageId>(&step.from)) {
    if (graph::index(*storage) >= graph_.storages.size())
      return fault("storage {} does not exist", graph::index(*storage));
    const std::uint64_t size = graph_.storage(*storage).bytes;
    if (!range_fits(step.from_offset, step.bytes, size))
      return fault("reads {} bytes at {} of a storage of {}", step.bytes, step.from_offset, size);
    if (to.space == Space::page_cache && (to.storage != *storage || step.offset != step.from_offset))
      return fault("a mapping can only hold its own storage at the same offset");
    return std::nullopt;
  }
  const BlockId from = std::get<BlockId>(step.from);
  if (graph::index(from) >= blocks_.size()) return fault("block {} does not exist", graph::index(from));
  if (from == step.block) return fault("block {} is copied onto itself", graph::index(from));
  if (states_[graph::index(from)] != State::alive)
    return fault("block {} is read while it is not allocated", graph::index(from));
  if (to.space == Space::page_cache) return fault("a mapping is read-only");
  if (blocks_[graph::index(from)].prepack())
    return fault("block {} is read, but it is packed", graph::index(from));
  if (!range_fits(step.from_offset, step.bytes, blocks_[graph::index(from)].bytes))
    return fault("reads {} bytes at {} of a block of {}", step.bytes, step.from_offset,
                 blocks_[graph::index(from)].bytes);
  return std::nullopt;
}

std::string_view space_name(Space space) {
  constexpr PerSpace<std::string_view> kNames = {"host", "page_cache", "staging", "device"};
  return kNames[index(space)];
}

std::string_view space_title(Space space) {
  return space == Space::page_cache ? "page cache" : space_name(space);
}

std::vector<Space> spaces_in(unsigned mask) {
  std::vector<Space> spaces;
  for (const Space space : kSpaceOrder)
    if ((mask & space_bit(space)) != 0) spaces.push_back(space);
  return spaces;
}

void hand_over(Plan& plan) {
  if (plan.taker == nullptr) return;
  plan.taker->take(plan.blocks, plan.steps, plan.taken);
  plan.taken += plan.steps.size();
  if (plan.taken >= kNever) throw Error(ErrorCode::limit, "the plan has {} steps or more", kNever);
  plan.steps.clear();
}

std::optional<std::uint64_t> cast_bytes(const Cast& cast, std::uint64_t bytes) {
  const graph::DTypeInfo &from = graph::dtype_info(cast.from), &to = graph::dtype_info(cast.to);
  if (from.block_bytes == 0 || to.block_bytes == 0 || bytes % from.block_bytes != 0) return std::nullopt;
  const auto elements = checked_mul(bytes / from.block_bytes, std::uint64_t{from.block_elements});
  return elements ? graph::byte_size(cast.to, *elements) : std::nullopt;
}

void mark(Plan& plan, std::string label) {
  plan.marks.push_back({plan.taken + plan.steps.size(), std::move(label)});
}

std::optional<std::string> check_plan(const Plan& plan, const graph::MetaGraph& graph) {
  return PlanChecker(graph).check(plan.blocks, plan.steps, 0);
}

std::string block_label(const Block& block, const graph::MetaGraph& graph,
                        const std::vector<std::optional<graph::TensorId>>& owners) {
  if (!block.label().empty()) return std::string(block.label());
  if (!block.storage) return "";
  const std::optional<graph::TensorId> owner = owners[graph::index(*block.storage)];
  return owner ? graph.tensor(*owner).name.str() : fmt::format("storage {}", graph::index(*block.storage));
}

// --- Follows a plan's reads through the files.

namespace {

constexpr std::uint64_t kPage = 4096;

// The offset in the stored storage that corresponds to byte `at` of its decoded contents.
std::uint64_t stored_at(const graph::Storage& storage, std::uint64_t at) {
  if (storage.stored_bytes == storage.bytes || storage.bytes == 0) return at;
  const auto exact = static_cast<unsigned __int128>(storage.stored_bytes) * at / storage.bytes;
  return static_cast<std::uint64_t>(exact);  // at <= bytes
}

std::uint64_t saturating_add(std::uint64_t a, std::uint64_t b) {
  return checked_add(a, b).value_or(UINT64_MAX);
}

}  // namespace

void ReadCounter::add_read(const Step& step) {
  const graph::Storage& storage = graph_.storage(std::get<graph::StorageId>(step.from));
  const std::uint64_t from = stored_at(storage, step.from_offset);
  const std::uint64_t to = stored_at(storage, step.from_offset + step.bytes);
  pattern_.bytes = saturating_add(pattern_.bytes, to - from);
  ++pattern_.reads;
  if (graph::index(storage.file) >= ends_.size()) return;  // kNoFile
  const std::uint64_t start = storage.offset + from;
  auto& end = ends_[graph::index(storage.file)];
  const std::uint64_t skipped = !end ? 0 : start >= *end ? start - *end : *end - start;
  const bool goes_on = storage.file == last_ && start >= *end && skipped < kPage;
  if (!goes_on && last_ != graph::kNoFile) ++pattern_.jumps;
  pattern_.distance = saturating_add(pattern_.distance, skipped);
  end = storage.offset + to;
  last_ = storage.file;
}

ReadPattern read_pattern(const Plan& plan, const graph::MetaGraph& graph) {
  ReadCounter counter(graph);
  for (const Step& step : plan.steps) counter.add(step);
  return counter.pattern();
}

// --- Turns values into blocks and operators into steps.

namespace {

BlockUse use_of(graph::Lane lane) {
  return lane == graph::Lane::temporary ? BlockUse::temporary : BlockUse::value;
}

// What each operator takes before it runs and frees after it, for the plan of a pass and for who looks into
// it.
struct PassSchedule {
  std::vector<std::optional<std::uint64_t>> sizes;        // per value
  std::vector<std::vector<graph::ValueId>> begins, ends;  // per operator
  std::vector<std::size_t> named_by;                      // per value: the operator in its label

  explicit PassSchedule(const ForwardPass& pass);
};

PassSchedule::PassSchedule(const ForwardPass& pass) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  const graph::ForwardGraph& graph = *pass.graph;
  const std::vector<forward::OpRange> lives = forward::lifetimes(graph);
  sizes = forward::value_sizes(graph, pass.symbols);
  begins.resize(graph.ops.size());
  ends.resize(graph.ops.size());
  named_by.resize(graph.values.size(), 0);
  std::vector<bool> kept(graph.values.size(), false);
  for (const graph::ValueId id : graph.outputs) kept[static_cast<std::size_t>(id)] = true;
  for (std::size_t i = 0; i < lives.size(); ++i) {
    if (lives[i].empty() || sizes[i].value_or(0) == 0 || lives[i].first >= graph.ops.size()) continue;
    if (*sizes[i] > kMost) throw Error(ErrorCode::limit, "a value of a forward pass exceeds 2^62 bytes");
    named_by[i] = lives[i].first;
    const graph::ValueId id{static_cast<std::uint32_t>(i)};
    begins[lives[i].first].push_back(id);
    if (lives[i].end > 0 && !kept[i]) ends[lives[i].end - 1].push_back(id);
  }
  // the cache lives from the operator that writes it on; with a past, every layer's is there before the pass
  const auto past_at = static_cast<std::size_t>(graph::kPast);
  const bool has_past = past_at < pass.symbols.size() && pass.symbols[past_at] > 0;
  for (std::size_t i = 0; i < graph.ops.size(); ++i)
    for (const graph::ValueId id : graph.ops[i].outputs) {
      const graph::Value& value = graph.value(id);
      const auto at = static_cast<std::size_t>(id);
      if (value.lane != graph::Lane::cache || value.memory_of || sizes[at].value_or(0) == 0) continue;
      named_by[at] = i;
      begins[has_past ? 0 : i].push_back(id);
    }
}

}  // namespace

void append_forward_pass(Plan& plan, const ForwardPass& pass, Space space) {
  const graph::ForwardGraph& graph = *pass.graph;
  const PassSchedule schedule(pass);
  std::vector<BlockId> blocks(graph.values.size());
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    for (const graph::ValueId id : schedule.begins[i]) {
      const graph::Value& value = graph.value(id);
      const auto at = static_cast<std::size_t>(id);
      const std::string& op = graph.ops[schedule.named_by[at]].name;
      blocks[at] = alloc(plan, {.bytes = *schedule.sizes[at],
                                .space = space,
                                .use = use_of(value.lane),
                                .extra = op.empty() ? value.name : fmt::format("{} of {}", value.name, op)});
    }
    for (const graph::ValueId id : schedule.ends[i]) free(plan, blocks[static_cast<std::size_t>(id)]);
  }
  mark(plan, "first token");
}

std::optional<PassPlaces> pass_places(const Plan& plan, const ForwardPass& pass) {
  const PassSchedule schedule(pass);
  std::size_t steps = 0;
  for (std::size_t i = 0; i < schedule.begins.size(); ++i)
    steps += schedule.begins[i].size() + schedule.ends[i].size();
  if (steps == 0 || steps > plan.steps.size()) return std::nullopt;
  PassPlaces places;
  places.blocks.resize(pass.graph->values.size());
  std::size_t at = plan.steps.size() - steps;
  for (std::size_t i = 0; i < schedule.begins.size(); ++i) {
    places.begins.push_back(at);
    for (const graph::ValueId id : schedule.begins[i]) {
      const Step& step = plan.steps[at++];
      const auto value = static_cast<std::size_t>(id);
      if (step.verb != Verb::alloc || plan.block(step.block).bytes != schedule.sizes[value])
        return std::nullopt;
      places.blocks[value] = step.block;
    }
    for (const graph::ValueId id : schedule.ends[i])
      if (const Step& step = plan.steps[at++];
          step.verb != Verb::free || places.blocks[static_cast<std::size_t>(id)] != step.block)
        return std::nullopt;
  }
  places.begins.push_back(at);
  // what shares the memory of another value has its block
  for (std::size_t i = 0; i < places.blocks.size(); ++i)
    if (const auto earlier = pass.graph->values[i].memory_of)
      places.blocks[i] = places.blocks[static_cast<std::size_t>(*earlier)];
  return places;
}

}  // namespace loadline::plan
