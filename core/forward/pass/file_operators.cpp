// One walk over the operators, with a reference count for each piece of memory.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/pass/execution_order.h"
#include "core/forward/pass/lowering.h"
#include "core/graph/name.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace loadline::forward {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;
constexpr std::size_t kMostTemporaries = 500'000;
constexpr std::size_t kMostPassedOn =
    4'000'000;  // weights of constants, counted once for each operator that uses them
constexpr std::uint64_t kMostWork = 50'000'000;  // steps of expressions: an operator takes about ten

std::uint32_t index(graph::ValueId id) { return static_cast<std::uint32_t>(id); }

class FileGraph {
 public:
  FileGraph(const graph::ForwardGraph& from, const Profile& profile)
      : from_(from), profile_(profile), is_output_(from.values.size(), false), now_(from.values.size()) {
    to_.symbols = from.symbols;
    to_.least = from.least;
    to_.sizes = from.sizes;
    for (const graph::ValueId id : from.outputs) is_output_[index(id)] = true;
    for (const graph::Body& body : from.bodies)
      for (const graph::ValueId id : body.outputs) is_output_[index(id)] = true;
    for (std::size_t i = 0; i < from.symbols.size(); ++i) numbers_.push_back(fmt::format("#{}", i));
  }

  graph::ForwardGraph run() {
    constant_.resize(from_.values.size(), nullptr);
    find_constants(from_.ops);
    uses_.resize(from_.values.size(), 0);
    count_uses(from_.inputs, from_.outputs, from_.ops);
    for (const graph::Body& body : from_.bodies) count_uses(body.inputs, body.outputs, body.ops);
    for (const graph::ValueId id : from_.inputs) {
      add(id);
      to_.inputs.push_back(now_[index(id)]);
    }
    run(from_.ops, from_.outputs);
    for (const graph::ValueId id : from_.outputs) to_.outputs.push_back(now_[index(id)]);
    if (profile_.hold_block_inputs && !to_.ops.empty()) {
      std::vector<graph::ValueId>& held = to_.ops.back().held;
      held.insert(held.end(), to_.inputs.begin(), to_.inputs.end());
    }
    return std::move(to_);
  }

 private:
  // The names that a rule sees for an operator. A name whose value is unknown is null.
  assets::Scope scope(const graph::Op& op) {
    return {[this, &op](std::string_view name) { return name_value(op, name); }, {}, &work_};
  }

  assets::Datum name_value(const graph::Op& op, std::string_view name) const {
    const graph::Value* const first = op.inputs.empty() ? nullptr : &from_.value(op.inputs.front());
    const graph::Value* const out = op.outputs.empty() ? nullptr : &from_.value(op.outputs.front());
    if (name == "B") return assets::Datum(graph::SizePoly::symbol(graph::kBatch));
    if (name == "S") return assets::Datum(graph::SizePoly::symbol(graph::kSequence));
    if (name == "P") return assets::Datum(graph::SizePoly::symbol(graph::kPast));
    if (name == "inputs") return assets::Datum(static_cast<std::int64_t>(op.inputs.size()));
    if (name == "e" && out != nullptr && out->dtype && graph::dtype_info(*out->dtype).block_elements == 1)
      return assets::Datum(static_cast<std::int64_t>(graph::dtype_info(*out->dtype).block_bytes));
    if (name == "out" && out != nullptr) return size(graph::value_bytes(*out));
    if (name == "o" && out != nullptr) return width(*out);
    if (name == "n" && first != nullptr) return rows(*first);
    if (name == "c" && first != nullptr) return width(*first);
    return {};
  }
  static assets::Datum size(const std::optional<graph::SizePoly>& poly) {
    return poly ? assets::Datum(*poly) : assets::Datum();
  }
  static assets::Datum width(const graph::Value& value) {
    if (!value.shape) return {};
    return assets::Datum(value.shape->empty() ? graph::SizePoly(1) : value.shape->back());
  }
  static assets::Datum rows(const graph::Value& value) {
    if (!value.shape) return {};
    std::optional<graph::SizePoly> product(1);
    for (std::size_t i = 0; product && i + 1 < value.shape->size(); ++i)
      product = graph::SizePoly::product(*product, (*value.shape)[i]);
    return size(product);
  }

  // The position in op.inputs that a rule names (the rule counts from 1); nothing if it names none.
  std::optional<std::size_t> input_of(const assets::Expression& rule, const graph::Op& op) {
    return input_number(rule, scope(op));
  }

  // Finds operators that only copy or view weights. They need not run, unless their result is an output of
  // the graph.
  void find_constants(std::span<const graph::Op> ops) {
    for (const graph::Op& op : ops) {
      for (const std::uint32_t body : op.bodies) find_constants(from_.bodies[body].ops);
      const auto leaves = [&](graph::ValueId id) { return is_output_[index(id)]; };
      if (std::ranges::any_of(op.outputs, leaves)) continue;
      const OpRule& rule = profile_.rule(op.kind);
      const auto view = input_of(rule.view, op);
      const graph::Op* source = nullptr;
      if (op.inputs.empty() && (view || rule.without.evaluate(scope(op)).truth()))
        source = &op;
      else if (view && *view < op.inputs.size())
        source = constant_[index(op.inputs[*view])];
      for (const graph::ValueId id : op.outputs) constant_[index(id)] = source;
    }
  }
  bool is_constant(const graph::Op& op) const {
    return !op.outputs.empty() && constant_[index(op.outputs.front())] != nullptr;
  }

  // Counts the references to each value: the operators that use it, the operator that makes it, and the
  // caller. An operator's reference ends when the operator ends.
  void count_uses(std::span<const graph::ValueId> inputs, std::span<const graph::ValueId> outputs,
                  std::span<const graph::Op> ops) {
    for (const graph::ValueId id : inputs) ++uses_[index(id)];
    for (const graph::ValueId id : outputs) ++uses_[index(id)];
    for (const graph::Op& op : ops) {
      for (const graph::ValueId id : op.inputs) ++uses_[index(id)];
      for (const graph::ValueId id : op.outputs) ++uses_[index(id)];
    }
  }

  void add(graph::ValueId id) {
    const graph::ValueId fresh{static_cast<std::uint32_t>(to_.values.size())};
    to_.values.push_back(from_.value(id));
    to_.values.back().memory_of.reset();
    now_[index(id)] = fresh;
    place_.push_back(index(fresh));
    refers_.push_back(uses_[index(id)]);
    room_.push_back(room_of(from_.value(id)));
  }

  // A number for each shape and element width; kNone if either is unknown, and for scalars, which are too
  // small to reuse.
  std::uint32_t room_of(const graph::Value& value) {
    if (!value.shape || value.shape->empty() || !value.dtype) return kNone;
    const graph::DTypeInfo& info = graph::dtype_info(*value.dtype);
    if (info.block_elements != 1) return kNone;
    const auto is_fixed = [](const graph::SizePoly& size) { return size.constant().has_value(); };
    if (value.inferred && !std::ranges::all_of(*value.shape, is_fixed)) return kNone;
    std::string key = fmt::format("{}/{}:", body_, info.block_bytes);  // bodies are planned for themselves
    for (const graph::SizePoly& size : *value.shape) key += size.text(numbers_) + ',';
    const auto fresh = static_cast<std::uint32_t>(given_up_.size());
    const auto [found, is_fresh] = rooms_.try_emplace(std::move(key), fresh);
    if (is_fresh) given_up_.emplace_back();
    return found->second;
  }

  // The value whose memory `id` shares, or kNone for memory of its own.
  std::uint32_t shared_place(const graph::Op& op, const OpRule& rule, graph::ValueId id) {
    const auto view = input_of(rule.view, op);
    if (view && *view < op.inputs.size() && can_be_view(from_.value(op.inputs[*view]), from_.value(id)))
      if (const std::uint32_t place = place_of(op.inputs[*view]); place != kNone) return place;
    const std::uint32_t room = room_[index(now_[index(id)])];
    if (room == kNone) return kNone;
    const auto preferred = input_of(rule.in_place, op);
    for (std::size_t i = 0; preferred && i < op.inputs.size(); ++i) {
      const graph::ValueId input = op.inputs[(i + *preferred) % op.inputs.size()];
      const std::uint32_t place = place_of(input);
      if (place != kNone && room_[index(now_[index(input)])] == room && refers_[place] == 1) return place;
    }
    if (!profile_.reuse || given_up_[room].empty()) return kNone;
    const std::uint32_t place = given_up_[room].back();
    given_up_[room].pop_back();
    return place;
  }

  // Whether `value` can be a view of `of`: same dtype, same bytes. If not, the input that the rule means is a
  // weight, which Op::inputs leaves out, and `of` is another input, such as the new shape.
  static bool can_be_view(const graph::Value& of, const graph::Value& value) {
    if (of.dtype && value.dtype && *of.dtype != *value.dtype) return false;
    const auto given = graph::value_bytes(of), shown = graph::value_bytes(value);
    return !given || !shown || !given->constant() || !shown->constant() || *given == *shown;
  }

  std::uint32_t place_of(graph::ValueId id) const {
    return constant_[index(id)] != nullptr ? kNone : place_[index(now_[index(id)])];
  }

  void give_up(std::uint32_t place) {
    if (--refers_[place] == 0 && room_[place] != kNone) given_up_[room_[place]].push_back(place);
  }

  void run(std::span<const graph::Op> ops, std::span<const graph::ValueId> outputs) {
    for (const std::uint32_t op : op_order(ops, outputs, profile_.order))
      if (!is_constant(ops[op])) run(ops[op]);
  }

  // Runs a body, before its operator makes its own outputs. The outputs of the body live to the body's end.
  void run_body(const graph::Op& op, const graph::Body& body) {
    const std::uint32_t outer = std::exchange(body_, ++bodies_);
    const std::size_t first = to_.ops.size();
    graph::Op turn = {.kind = op.kind + " turn", .name = op.name, .inputs = {}, .weights = {}, .outputs = {}};
    for (const graph::ValueId id : body.inputs) {
      add(id);
      turn.outputs.push_back(now_[index(id)]);
    }
    if (!turn.outputs.empty()) to_.ops.push_back(std::move(turn));
    run(body.ops, body.outputs);
    for (const graph::ValueId id : body.outputs)
      if (to_.ops.size() > first) to_.ops.back().held.push_back(now_[index(id)]);
    body_ = outer;
  }

  void run(const graph::Op& op) {
    static const OpRule kPlain;
    for (const std::uint32_t body : op.bodies) run_body(op, from_.bodies[body]);
    const OpRule& rule = profile_.rule(op.kind);
    graph::Op fresh = {.kind = op.kind, .name = op.name, .inputs = {}, .weights = op.weights, .outputs = {}};
    for (const graph::ValueId id : op.inputs) {
      if (const graph::Op* const constant = constant_[index(id)])
        pass_on(constant->weights, fresh);
      else
        fresh.inputs.push_back(now_[index(id)]);
    }
    for (const graph::ValueId id : op.held)
      if (constant_[index(id)] == nullptr) fresh.held.push_back(now_[index(id)]);
    for (const graph::ValueId id : op.outputs) {
      add(id);
      fresh.outputs.push_back(now_[index(id)]);
      const bool first = id == op.outputs.front();
      if (!is_output_[index(id)]) share(shared_place(op, first ? rule : kPlain, id));
    }
    for (const graph::ValueId id : op.temporaries) {
      add(id);
      fresh.temporaries.push_back(now_[index(id)]);
    }
    add_temporaries(op, rule, fresh);
    for (const graph::ValueId id : op.inputs)
      if (constant_[index(id)] == nullptr) give_up(place_of(id));
    for (const graph::ValueId id : op.outputs) give_up(place_of(id));
    to_.ops.push_back(std::move(fresh));
  }

  // Gives the weights of a constant to a user of the constant; limited, as a file may list many of both.
  void pass_on(const std::vector<graph::TensorId>& weights, graph::Op& to) {
    if (weights.size() > kMostPassedOn - passed_on_)
      throw Error(ErrorCode::limit, "operators use weights of constants {} times or more",
                  format_grouped(kMostPassedOn));
    passed_on_ += weights.size();
    to.weights.insert(to.weights.end(), weights.begin(), weights.end());
  }

  // Puts the value made last into the memory of the value `place`.
  void share(std::uint32_t place) {
    if (place == kNone) return;
    const auto last = static_cast<std::uint32_t>(to_.values.size() - 1);
    to_.values[last].memory_of = graph::ValueId{place};
    refers_[place] += refers_[last];
    place_[last] = place;
  }

  void add_temporaries(const graph::Op& op, const OpRule& rule, graph::Op& fresh) {
    const bool known = name_value(op, "out").size() && (op.inputs.empty() || name_value(op, "n").size());
    for (std::size_t i = 0; known && i < rule.temporaries.size(); ++i) {
      const auto bytes = temporary_bytes(op, rule.temporaries[i]);
      if (bytes == graph::SizePoly(0)) continue;
      if (++temporaries_ > kMostTemporaries)
        throw Error(ErrorCode::limit, "profile '{}' gives more than {} temporaries",
                    safe_display(profile_.id, 40), format_grouped(kMostTemporaries));
      fresh.temporaries.push_back(graph::ValueId{static_cast<std::uint32_t>(to_.values.size())});
      to_.values.push_back({.name = fmt::format("{}.{}", op.kind, i),
                            .dtype = graph::DType::u8,
                            .shape = {},
                            .lane = graph::Lane::temporary});
      if (bytes) to_.values.back().shape = std::vector<graph::SizePoly>{*bytes};
      place_.push_back(index(fresh.temporaries.back()));
      refers_.push_back(0);
      room_.push_back(kNone);
    }
  }

  // The size of a temporary. Nothing if it does not fit in 64 bits: the file is at fault then, not the rule.
  std::optional<graph::SizePoly> temporary_bytes(const graph::Op& op, const assets::Expression& rule) {
    assets::Datum bytes;
    try {
      bytes = rule.evaluate(scope(op));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::limit) throw;
      return std::nullopt;
    }
    if (!bytes.size()) rule.place().fail("'{}' is not a size", rule.text());
    return bytes.size();
  }

  const graph::ForwardGraph& from_;
  const Profile& profile_;
  std::vector<bool> is_output_;
  std::vector<const graph::Op*>
      constant_;                     // by value: the operator with its weights if it is a constant, else null
  std::vector<std::uint32_t> uses_;  // by value
  std::vector<graph::ValueId> now_;  // by value: its number in to_
  std::uint64_t work_ = kMostWork;
  std::size_t passed_on_ = 0;
  std::uint32_t body_ = 0;  // the body that runs; 0 for the graph itself
  std::uint32_t bodies_ = 0;
  std::size_t temporaries_ = 0;
  graph::ForwardGraph to_;
  // per value of to_
  std::vector<std::uint32_t> place_;   // the value whose memory it uses
  std::vector<std::uint32_t> refers_;  // references to its memory, if the memory is its own
  std::vector<std::uint32_t> room_;
  std::vector<std::string> numbers_;  // short names of symbols for the keys of rooms_: names may be long
  graph::TextMap<std::uint32_t> rooms_;
  std::vector<std::vector<std::uint32_t>> given_up_;  // by room: memory without references
};

}  // namespace

graph::ForwardGraph with_profile(const graph::ForwardGraph& graph, const Profile& profile) {
  return FileGraph(graph, profile).run();
}

std::size_t sharing_values(const graph::ForwardGraph& graph) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.values, [](const graph::Value& value) { return value.memory_of.has_value(); }));
}

}  // namespace loadline::forward
