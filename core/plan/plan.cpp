// The verbs, the check, reads of the files, values as blocks.
#include "core/plan/plan.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/forward/pass/lifetimes.h"

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

enum class State : std::uint8_t { unborn, alive, dead };

// Walks the steps once and stops at the first violation.
class PlanChecker {
 public:
  PlanChecker(const Plan& plan, const graph::MetaGraph& graph)
      : plan_(plan), graph_(graph), states_(plan.blocks.size(), State::unborn) {}

  std::optional<std::string> check() {
    std::uint64_t live = 0;
    for (at_ = 0; at_ < plan_.steps.size(); ++at_) {
      const Step& step = plan_.steps[at_];
      if (graph::index(step.block) >= plan_.blocks.size())
        return fault("block {} does not exist", graph::index(step.block));
      const Block& block = plan_.block(step.block);
      State& state = states_[graph::index(step.block)];
      if (step.verb == Verb::alloc) {
        if (state != State::unborn) return fault("block {} is allocated twice", graph::index(step.block));
        const auto sum = checked_add(live, block.bytes);
        if (!sum || *sum >> 63 != 0) return fault("more than 2^63 bytes are alive", 0);
        live = *sum;
        state = State::alive;
        if (auto problem = check_mapping(block)) return problem;
        continue;
      }
      if (state != State::alive)
        return fault("block {} is used while it is not allocated", graph::index(step.block));
      if (step.verb == Verb::free) {
        state = State::dead;
        live -= block.bytes;
      } else if (auto problem = check_copy(step, block)) {
        return problem;
      }
    }
    return std::nullopt;
  }

 private:
  template <typename... Args>
  std::string fault(fmt::format_string<Args...> text, Args... args) const {
    return fmt::format("step {}: ", at_) + fmt::format(text, std::move(args)...);
  }

  std::optional<std::string> check_mapping(const Block& block) const {
    if (block.prepack && (block.space != Space::device || !block.storage || !can_be_made(*block.prepack) ||
                          block.bytes != convert::prepacked_bytes(*block.prepack)))
      return fault("block {} is not a packed weight on the device", graph::index(plan_.steps[at_].block));
    if (block.storage && graph::index(*block.storage) >= graph_.storages.size())
      return fault("storage {} does not exist", graph::index(*block.storage));
    if (block.space != Space::page_cache) return std::nullopt;
    if (!block.storage || graph::index(*block.storage) >= graph_.storages.size())
      return fault("a page_cache block maps no storage");
    if (block.bytes > graph_.storage(*block.storage).bytes)
      return fault("maps {} bytes of a storage of {}", block.bytes, graph_.storage(*block.storage).bytes);
    return std::nullopt;
  }

  std::optional<std::string> check_copy(const Step& step, const Block& to) const {
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
    if (to.prepack) {
      const std::uint64_t unit = graph::dtype_info(to.prepack->from).block_bytes;
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
    if (graph::index(from) >= plan_.blocks.size())
      return fault("block {} does not exist", graph::index(from));
    if (from == step.block) return fault("block {} is copied onto itself", graph::index(from));
    if (states_[graph::index(from)] != State::alive)
      return fault("block {} is read while it is not allocated", graph::index(from));
    if (to.space == Space::page_cache) return fault("a mapping is read-only");
    if (plan_.block(from).prepack) return fault("block {} is read, but it is packed", graph::index(from));
    if (!range_fits(step.from_offset, step.bytes, plan_.block(from).bytes))
      return fault("reads {} bytes at {} of a block of {}", step.bytes, step.from_offset,
                   plan_.block(from).bytes);
    return std::nullopt;
  }

  const Plan& plan_;
  const graph::MetaGraph& graph_;
  std::vector<State> states_;
  std::size_t at_ = 0;
};

}  // namespace

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

BlockId alloc(Plan& plan, Block block) {
  const BlockId id{static_cast<std::uint32_t>(plan.blocks.size())};
  plan.blocks.push_back(std::move(block));
  plan.steps.push_back({.verb = Verb::alloc, .block = id});
  return id;
}

void copy(Plan& plan, BlockId to, std::uint64_t offset, CopySource from, std::uint64_t from_offset,
          std::uint64_t bytes, std::optional<Cast> cast) {
  plan.steps.push_back({.verb = Verb::copy,
                        .cast = cast,
                        .block = to,
                        .from = from,
                        .offset = offset,
                        .from_offset = from_offset,
                        .bytes = bytes});
}

std::optional<std::uint64_t> cast_bytes(const Cast& cast, std::uint64_t bytes) {
  const graph::DTypeInfo &from = graph::dtype_info(cast.from), &to = graph::dtype_info(cast.to);
  if (from.block_bytes == 0 || to.block_bytes == 0 || bytes % from.block_bytes != 0) return std::nullopt;
  const auto elements = checked_mul(bytes / from.block_bytes, std::uint64_t{from.block_elements});
  return elements ? graph::byte_size(cast.to, *elements) : std::nullopt;
}

void free(Plan& plan, BlockId block) { plan.steps.push_back({.verb = Verb::free, .block = block}); }

void mark(Plan& plan, std::string label) { plan.marks.push_back({plan.steps.size(), std::move(label)}); }

std::optional<std::string> check_plan(const Plan& plan, const graph::MetaGraph& graph) {
  return PlanChecker(plan, graph).check();
}

std::string block_label(const Block& block, const graph::MetaGraph& graph,
                        const std::vector<std::optional<graph::TensorId>>& owners) {
  if (!block.label.empty() || !block.storage) return block.label;
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

ReadPattern read_pattern(const Plan& plan, const graph::MetaGraph& graph) {
  ReadPattern pattern;
  std::vector<std::optional<std::uint64_t>> ends(graph.files.size());  // of the last read in each file
  graph::FileId last = graph::kNoFile;
  for (const Step& step : plan.steps) {
    if (step.verb != Verb::copy || !std::holds_alternative<graph::StorageId>(step.from)) continue;
    const graph::Storage& storage = graph.storage(std::get<graph::StorageId>(step.from));
    const std::uint64_t from = stored_at(storage, step.from_offset);
    const std::uint64_t to = stored_at(storage, step.from_offset + step.bytes);
    pattern.bytes = saturating_add(pattern.bytes, to - from);
    ++pattern.reads;
    if (graph::index(storage.file) >= ends.size()) continue;  // kNoFile
    const std::uint64_t start = storage.offset + from;
    auto& end = ends[graph::index(storage.file)];
    const std::uint64_t skipped = !end ? 0 : start >= *end ? start - *end : *end - start;
    const bool goes_on = storage.file == last && start >= *end && skipped < kPage;
    if (!goes_on && last != graph::kNoFile) ++pattern.jumps;
    pattern.distance = saturating_add(pattern.distance, skipped);
    end = storage.offset + to;
    last = storage.file;
  }
  return pattern;
}

// --- Turns values into blocks and operators into steps.

namespace {

BlockUse use_of(graph::Lane lane) {
  return lane == graph::Lane::temporary ? BlockUse::temporary : BlockUse::value;
}

}  // namespace

void append_forward_pass(Plan& plan, const ForwardPass& pass, Space space) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  const graph::ForwardGraph& graph = *pass.graph;
  const std::vector<forward::OpRange> lives = forward::lifetimes(graph);
  const auto sizes = forward::value_sizes(graph, pass.symbols);
  std::vector<std::vector<graph::ValueId>> begins(graph.ops.size()), ends(graph.ops.size() + 1);
  std::vector<std::size_t> named_by(graph.values.size(), 0);  // the operator in a value's label
  for (std::size_t i = 0; i < lives.size(); ++i) {
    if (lives[i].empty() || sizes[i].value_or(0) == 0 || lives[i].first >= graph.ops.size()) continue;
    if (*sizes[i] > kMost) throw Error(ErrorCode::limit, "a value of a forward pass exceeds 2^62 bytes");
    named_by[i] = lives[i].first;
    begins[lives[i].first].push_back(graph::ValueId{static_cast<std::uint32_t>(i)});
    ends[lives[i].end].push_back(graph::ValueId{static_cast<std::uint32_t>(i)});
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
  std::vector<bool> kept(graph.values.size(), false);
  for (const graph::ValueId id : graph.outputs) kept[static_cast<std::size_t>(id)] = true;
  std::vector<BlockId> blocks(graph.values.size());
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    for (const graph::ValueId id : begins[i]) {
      const graph::Value& value = graph.value(id);
      const std::string& op = graph.ops[named_by[static_cast<std::size_t>(id)]].name;
      blocks[static_cast<std::size_t>(id)] =
          alloc(plan, {.space = space,
                       .bytes = *sizes[static_cast<std::size_t>(id)],
                       .use = use_of(value.lane),
                       .label = op.empty() ? value.name : fmt::format("{} of {}", value.name, op)});
    }
    for (const graph::ValueId id : ends[i + 1]) {
      if (!kept[static_cast<std::size_t>(id)]) free(plan, blocks[static_cast<std::size_t>(id)]);
    }
  }
  mark(plan, "first token");
}

}  // namespace loadline::plan
