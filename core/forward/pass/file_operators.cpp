// What rules see of an operator; one walk with a reference count for each piece of memory.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/pass/execution_order.h"
#include "core/forward/pass/lowering.h"
#include "core/graph/name.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include <fmt/core.h>

namespace loadline::forward {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;
constexpr std::size_t kMostTemporaries = 500'000;
constexpr std::size_t kMostPassedOn =
    4'000'000;  // weights of constants, counted once for each operator that uses them
constexpr std::uint64_t kMostWork = 50'000'000;  // steps of expressions: an operator takes about ten

std::uint32_t index(graph::ValueId id) { return static_cast<std::uint32_t>(id); }

// --- What rules see of an operator.

// Names and functions for the rules of operators of `graph`; sizes that rules choose become symbols of `to`.
class OperatorScope {
 public:
  OperatorScope(const graph::ForwardGraph& graph, std::span<const graph::Tensor> tensors,
                const Profile& profile, graph::ForwardGraph& to)
      : graph_(graph), tensors_(tensors), profile_(profile), to_(to) {}

  // A name whose value is unknown is null. `lets`: the names of the profile that can be seen, from the first.
  assets::Scope of(const graph::Op& op, std::size_t lets = SIZE_MAX) {
    return {[this, &op, lets](std::string_view name) { return name_value(op, name, lets); },
            [this, &op](std::string_view function, std::span<const assets::Datum> arguments) {
              return call(op, function, arguments);
            },
            &work_};
  }

  // Whether the sizes of all that goes in and comes out are known.
  bool is_sized(const graph::Op& op) const {
    const auto known = [&](graph::ValueId id) { return graph::value_bytes(graph_.value(id)).has_value(); };
    return std::ranges::all_of(op.inputs, known) && std::ranges::all_of(op.outputs, known);
  }

  // What of the operator as it stands the profile says nothing about: its kind, or "Conv.pads" for an
  // attribute; empty if it says what the operator needs.
  std::string unaccounted(const graph::Op& op) {
    const FileRules& file = profile_.file;
    const auto rule = profile_.ops.find(op.kind);
    const bool moves = file.movers.contains(op.kind), listed = moves || file.plain.contains(op.kind);
    if (rule == profile_.ops.end() && !listed) return op.kind;
    static const std::vector<std::string> kNoNames;
    const std::vector<std::string>* const known = rule == profile_.ops.end() ? &kNoNames
                                                  : rule->second.attributes  ? &*rule->second.attributes
                                                                             : nullptr;
    if (known != nullptr)
      for (const auto& [name, value] : op.attributes)
        if (!graph::is_for_people(name) && std::ranges::find(*known, name) == known->end())
          return attribute_of(op, name);
    const auto is_known_type = [&](graph::ValueId id) {
      const std::optional<graph::DType>& dtype = graph_.value(id).dtype;
      return !dtype || file.types.empty() || std::ranges::find(file.types, *dtype) != file.types.end();
    };
    if (rule != profile_.ops.end()) {
      const OpRule& of_kind = rule->second;
      if (!of_kind.condition.text().empty())
        return !is_sized(op) || of_kind.condition.evaluate(of(op)).truth() ? "" : op.kind;
      if (!of_kind.view.text().empty() || !of_kind.without.text().empty()) return "";
    }
    const bool known_types =
        std::ranges::all_of(op.inputs, is_known_type) && std::ranges::all_of(op.outputs, is_known_type);
    return moves || known_types ? "" : op.kind;
  }

  // Attributes that rules have read, although their values were not kept.
  const std::set<std::string>& unread() const { return unread_; }

  // The value at a position of the inputs, from 0; nothing if a weight or nothing is there.
  static std::optional<graph::ValueId> value_at(const graph::Op& op, std::size_t position) {
    if (!op.arguments.empty())
      return position < op.arguments.size() ? op.arguments[position].value : std::nullopt;
    return position < op.inputs.size() ? std::optional(op.inputs[position]) : std::nullopt;
  }

 private:
  assets::Datum name_value(const graph::Op& op, std::string_view name, std::size_t lets) {
    const graph::Value* const first = op.inputs.empty() ? nullptr : &graph_.value(op.inputs.front());
    const graph::Value* const out = op.outputs.empty() ? nullptr : &graph_.value(op.outputs.front());
    const auto count = [](std::size_t number) { return assets::Datum(static_cast<std::int64_t>(number)); };
    if (name == "B") return assets::Datum(graph::SizePoly::symbol(graph::kBatch));
    if (name == "S") return assets::Datum(graph::SizePoly::symbol(graph::kSequence));
    if (name == "P") return assets::Datum(graph::SizePoly::symbol(graph::kPast));
    if (name == "inputs") return count(op.inputs.size());
    if (name == "arguments") return count(std::max(op.arguments.size(), op.inputs.size()));
    if (name == "results") return count(op.outputs.size());
    if (name == "opset") return assets::Datum(graph_.opset);
    if (name == "e" && out != nullptr) return element_bytes(out->dtype);
    if (name == "out" && out != nullptr) return size(graph::value_bytes(*out));
    if (name == "o" && out != nullptr) return width(*out);
    if (name == "n" && first != nullptr) return rows(*first);
    if (name == "c" && first != nullptr) return width(*first);
    for (std::size_t i = 0; i < std::min(lets, profile_.file.let.size()); ++i)
      if (profile_.file.let[i].first == name) return profile_.file.let[i].second.evaluate(of(op, i));
    return attribute(op, name);
  }

  static std::string attribute_of(const graph::Op& op, std::string_view name) {
    return fmt::format("{}.{}", op.kind, name);
  }

  assets::Datum attribute(const graph::Op& op, std::string_view name) {
    for (const auto& [key, value] : op.attributes) {
      if (key != name) continue;
      if (std::holds_alternative<std::monostate>(value)) unread_.insert(attribute_of(op, name));
      if (const auto* const number = std::get_if<std::int64_t>(&value)) return assets::Datum(*number);
      if (const auto* const real = std::get_if<double>(&value)) return assets::Datum(*real);
      if (const auto* const text = std::get_if<std::string>(&value)) return assets::Datum(*text);
      if (const auto* const list = std::get_if<std::vector<std::int64_t>>(&value))
        return assets::Datum(std::vector<assets::Datum>(list->begin(), list->end()));
    }
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
  static assets::Datum element_bytes(const std::optional<graph::DType>& dtype) {
    if (!dtype || graph::dtype_info(*dtype).block_elements != 1) return {};
    return assets::Datum(static_cast<std::int64_t>(graph::dtype_info(*dtype).block_bytes));
  }
  static assets::Datum dimensions(const std::optional<std::vector<graph::SizePoly>>& shape) {
    if (!shape) return {};
    return assets::Datum(std::vector<assets::Datum>(shape->begin(), shape->end()));
  }

  std::optional<assets::Datum> call(const graph::Op& op, std::string_view function,
                                    std::span<const assets::Datum> arguments) {
    const auto number = [&](std::size_t i) { return i < arguments.size() ? arguments[i].number() : nullptr; };
    if ((function == "shape" || function == "width" || function == "result") && arguments.size() == 1 &&
        number(0) != nullptr && *number(0) > 0)
      return described(op, function, static_cast<std::size_t>(*number(0) - 1));
    if (function == "product" && arguments.size() == 2 && number(1) != nullptr)
      return product(arguments[0], *number(1));
    const bool compares = function == "choose"
                              ? arguments.size() == 4
                              : (function == "min" || function == "max") && arguments.size() == 2;
    std::vector<graph::SizePoly> sizes;
    for (const assets::Datum& one : arguments)
      if (const auto known = one.size()) sizes.push_back(*known);
    if (!compares || sizes.size() != arguments.size()) return std::nullopt;
    if (function == "choose") return size(choose(sizes[0], sizes[1], sizes[2], sizes[3]));
    if (function == "max") return size(choose(sizes[0], sizes[1], sizes[0], sizes[1]));
    return size(choose(sizes[0], sizes[1], sizes[1], sizes[0]));
  }

  // `then` where a is more than b, else `otherwise`. Nothing beyond kMostChosen such sizes.
  std::optional<graph::SizePoly> choose(const graph::SizePoly& a, const graph::SizePoly& b,
                                        const graph::SizePoly& then, const graph::SizePoly& otherwise) {
    constexpr std::size_t kMostChosen = 1000;
    if (a.constant() && b.constant()) return *a.constant() > *b.constant() ? then : otherwise;
    if (then == otherwise) return then;
    graph::ChosenSize one = {{}, a, b, then, otherwise};
    for (const graph::ChosenSize& known : to_.chosen) {
      one.symbol = known.symbol;
      if (known == one) return graph::SizePoly::symbol(known.symbol);
    }
    if (to_.chosen.size() == kMostChosen || to_.symbols.size() > UINT16_MAX) return std::nullopt;
    one.symbol = graph::SymbolId{static_cast<std::uint16_t>(to_.symbols.size())};
    to_.symbols.push_back(fmt::format("size {}", to_.chosen.size() + 1));
    to_.chosen.push_back(one);
    return graph::SizePoly::symbol(one.symbol);
  }

  assets::Datum described(const graph::Op& op, std::string_view function, std::size_t at) const {
    if (function == "result") {
      if (at >= op.outputs.size()) return {};
      return dimensions(graph_.value(op.outputs[at]).shape);
    }
    if (const auto id = value_at(op, at))
      return function == "shape" ? dimensions(graph_.value(*id).shape)
                                 : element_bytes(graph_.value(*id).dtype);
    const auto weight = at < op.arguments.size() ? op.arguments[at].weight : std::nullopt;
    if (!weight || static_cast<std::size_t>(*weight) >= tensors_.size()) return {};
    const graph::Tensor& tensor = tensors_[static_cast<std::size_t>(*weight)];
    if (function == "width") return element_bytes(tensor.dtype);
    std::vector<assets::Datum> list;
    for (const std::uint64_t one : tensor.shape) list.emplace_back(static_cast<std::int64_t>(one));
    return assets::Datum(std::move(list));
  }

  // Of the entries of a list from a position on; null if it is no list of sizes or the product is too large.
  static assets::Datum product(const assets::Datum& of, std::int64_t from) {
    if (of.list() == nullptr || from < 0) return {};
    std::optional<graph::SizePoly> result(1);
    for (auto i = static_cast<std::size_t>(from); result && i < of.list()->size(); ++i) {
      const auto one = (*of.list())[i].size();
      result = one ? graph::SizePoly::product(*result, *one) : std::nullopt;
    }
    return size(result);
  }

  const graph::ForwardGraph& graph_;
  std::span<const graph::Tensor> tensors_;
  const Profile& profile_;
  graph::ForwardGraph& to_;
  std::set<std::string> unread_;
  std::uint64_t work_ = kMostWork;
};

// --- One walk over the operators.

class FileGraph {
 public:
  FileGraph(const graph::ForwardGraph& from, std::span<const graph::Tensor> tensors, const Profile& profile)
      : from_(from),
        profile_(profile),
        scope_(from, tensors, profile, to_),
        runs_(graph::bodies_that_run(from)),
        is_output_(from.values.size(), false),
        now_(from.values.size()),
        made_of_(from.values.size()) {
    to_.symbols = from.symbols;
    to_.chosen = from.chosen;
    to_.sizes = from.sizes;
    to_.opset = from.opset;
    unaccounted_.insert(from.unaccounted.begin(), from.unaccounted.end());
    open_.resize(from.symbols.size(), false);
    for (const bool open : {true, false})
      for (const graph::NamedSize& size : from.sizes)
        if (const auto at = position_of(size.taken_as); at < open_.size() && size.open == open)
          open_[at] = open;
    for (const graph::ValueId id : from.outputs) is_output_[index(id)] = true;
    for (std::size_t i = 0; i < from.bodies.size(); ++i)
      if (runs_[i])
        for (const graph::ValueId id : from.bodies[i].outputs) is_output_[index(id)] = true;
    for (std::size_t i = 0; i < from.symbols.size(); ++i) numbers_.push_back(fmt::format("#{}", i));
  }

  FilePass run() {
    constant_.resize(from_.values.size(), nullptr);
    find_constants(from_.ops);
    uses_.resize(from_.values.size(), 0);
    count_uses(from_.inputs, from_.outputs, from_.ops);
    for (std::size_t i = 0; i < from_.bodies.size(); ++i)
      if (const graph::Body& body = from_.bodies[i]; runs_[i])
        count_uses(body.inputs, body.outputs, body.ops);
    for (const graph::ValueId id : from_.inputs) {
      add(id);
      to_.inputs.push_back(now_[index(id)]);
    }
    run(from_.ops, from_.outputs, graph::OpPlace::kMain);
    for (const graph::ValueId id : from_.outputs) to_.outputs.push_back(now_[index(id)]);
    if (profile_.hold_block_inputs && !to_.ops.empty()) {
      std::vector<graph::ValueId>& held = to_.ops.back().held;
      held.insert(held.end(), to_.inputs.begin(), to_.inputs.end());
      // what no operator uses is released with all else
      std::ranges::copy_if(made_, std::back_inserter(held),
                           [&](graph::ValueId id) { return !is_used_[index(id)]; });
    }
    unaccounted_.insert(scope_.unread().begin(), scope_.unread().end());
    to_.unaccounted.assign(unaccounted_.begin(), unaccounted_.end());
    return {std::move(to_), std::move(places_), std::move(made_of_)};
  }

 private:
  // The value at the position of the inputs that a rule names; nothing if it names none or a weight is there.
  std::optional<graph::ValueId> input_of(const assets::Expression& rule, const graph::Op& op) {
    if (rule.text().empty()) return std::nullopt;
    const auto position = input_number(rule, scope_.of(op));
    return position ? OperatorScope::value_at(op, *position) : std::nullopt;
  }

  // Finds operators that only copy or view weights. They need not run, unless their result is an output of
  // the graph.
  void find_constants(std::span<const graph::Op> ops) {
    for (const graph::Op& op : ops) {
      for (const std::uint32_t body : op.bodies)
        if (runs_[body]) find_constants(from_.bodies[body].ops);
      const auto leaves = [&](graph::ValueId id) { return is_output_[index(id)]; };
      if (std::ranges::any_of(op.outputs, leaves)) continue;
      const OpRule& rule = profile_.rule(op.kind);
      const graph::Op* source = nullptr;
      const assets::Scope seen = scope_.of(op);
      if (op.inputs.empty() && (input_number(rule.view, seen) || rule.without.evaluate(seen).truth()))
        source = &op;
      else if (const auto view = input_of(rule.view, op))
        source = constant_[index(*view)];
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
      for (const graph::ValueId id : used_by(op)) ++uses_[index(id)];
      for (const graph::ValueId id : op.outputs) ++uses_[index(id)];
    }
  }
  // The values that an operator uses, each as often as the file lists it: first at the positions of its
  // inputs, then those that only its bodies use.
  static std::vector<graph::ValueId> used_by(const graph::Op& op) {
    std::vector<graph::ValueId> used;
    std::size_t met = 0;  // inputs are in the order in which they are listed first
    for (const graph::Argument& argument : op.arguments) {
      if (!argument.value) continue;
      used.push_back(*argument.value);
      if (met < op.inputs.size() && op.inputs[met] == *argument.value) ++met;
    }
    used.insert(used.end(), op.inputs.begin() + static_cast<std::ptrdiff_t>(met), op.inputs.end());
    return used;
  }

  void add(graph::ValueId id) {
    const graph::ValueId fresh{static_cast<std::uint32_t>(to_.values.size())};
    to_.values.push_back(from_.value(id));
    to_.values.back().memory_of.reset();
    now_[index(id)] = fresh;
    made_of_[index(id)] = fresh;
    place_.push_back(index(fresh));
    refers_.push_back(uses_[index(id)]);
    room_.push_back(room_of(from_.value(id)));
    is_used_.push_back(false);
  }

  // The position of a size that is one symbol; SIZE_MAX for others.
  static std::size_t position_of(const graph::SizePoly& size) {
    const auto symbol = size.as_symbol();
    return symbol ? static_cast<std::size_t>(*symbol) : SIZE_MAX;
  }

  // A number for each shape and element width; kNone if either is unknown, and for scalars, which are too
  // small to reuse.
  std::uint32_t room_of(const graph::Value& value) {
    if (!value.shape || value.shape->empty() || !value.dtype) return kNone;
    const graph::DTypeInfo& info = graph::dtype_info(*value.dtype);
    if (info.block_elements != 1) return kNone;
    // what the writer of the file could not infer, onnxruntime does not infer either; nor does it know how
    // large the pictures will be
    const auto is_unknown = [&](const graph::SizePoly& size) {
      const std::size_t at = position_of(size);
      return at < open_.size() && open_[at];
    };
    if (value.half_declared || std::ranges::any_of(*value.shape, is_unknown)) return kNone;
    std::string key = fmt::format("{}/{}:", body_, info.block_bytes);  // bodies are planned for themselves
    for (const graph::SizePoly& size : *value.shape) key += size.text(numbers_) + ',';
    const auto fresh = static_cast<std::uint32_t>(given_up_.size());
    const auto [found, is_fresh] = rooms_.try_emplace(std::move(key), fresh);
    if (is_fresh) given_up_.emplace_back();
    return found->second;
  }

  // The value whose memory `id` shares, or kNone for memory of its own.
  std::uint32_t shared_place(const graph::Op& op, const OpRule& rule, graph::ValueId id) {
    if (const auto view = input_of(rule.view, op); view && can_be_view(from_.value(*view), from_.value(id)))
      if (const std::uint32_t place = place_of(*view); place != kNone) return place;
    const std::uint32_t room = room_[index(now_[index(id)])];
    if (room == kNone) return kNone;
    if (const auto input = input_of(rule.in_place, op)) {
      const std::uint32_t place = place_of(*input);
      if (place != kNone && room_[index(now_[index(*input)])] == room && refers_[place] == 1) return place;
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

  void run(std::span<const graph::Op> ops, std::span<const graph::ValueId> outputs, std::uint32_t body) {
    for (const std::uint32_t op : op_order(ops, outputs, profile_.order))
      if (!is_constant(ops[op])) run(ops[op], {body, op});
  }

  // Runs a body, before its operator makes its own outputs. The outputs of the body live to the body's end.
  void run_body(const graph::Op& op, graph::OpPlace place, std::uint32_t at) {
    const graph::Body& body = from_.bodies[at];
    const std::uint32_t outer = std::exchange(body_, ++bodies_);
    const std::size_t first = to_.ops.size();
    graph::Op turn = {.kind = op.kind + " turn", .name = op.name, .inputs = {}, .weights = {}, .outputs = {}};
    for (const graph::ValueId id : body.inputs) {
      add(id);
      turn.outputs.push_back(now_[index(id)]);
    }
    if (!turn.outputs.empty()) push(std::move(turn), place);
    run(body.ops, body.outputs, at);
    for (const graph::ValueId id : body.outputs)
      if (to_.ops.size() > first) to_.ops.back().held.push_back(now_[index(id)]);
    body_ = outer;
  }

  void push(graph::Op op, graph::OpPlace place) {
    to_.ops.push_back(std::move(op));
    places_.push_back(place);
  }

  void run(const graph::Op& op, graph::OpPlace place) {
    static const OpRule kPlain;
    for (const std::uint32_t body : op.bodies)
      if (runs_[body]) run_body(op, place, body);
    const OpRule& rule = profile_.rule(op.kind);
    graph::Op fresh = {.kind = op.kind, .name = op.name, .inputs = {}, .weights = op.weights, .outputs = {}};
    for (const graph::ValueId id : op.inputs) {
      if (const graph::Op* const constant = constant_[index(id)]) {
        pass_on(constant->weights, fresh);
        continue;
      }
      fresh.inputs.push_back(now_[index(id)]);
      is_used_[place_of(id)] = true;
    }
    for (const graph::ValueId id : op.held)
      if (constant_[index(id)] == nullptr) fresh.held.push_back(now_[index(id)]);
    for (const graph::ValueId id : op.outputs) {
      add(id);
      fresh.outputs.push_back(now_[index(id)]);
      const bool first = id == op.outputs.front();
      if (!is_output_[index(id)]) share(shared_place(op, first ? rule : kPlain, id));
      if (body_ == 0 && place_of(id) == index(now_[index(id)])) made_.push_back(now_[index(id)]);
    }
    for (const graph::ValueId id : op.temporaries) {
      add(id);
      fresh.temporaries.push_back(now_[index(id)]);
    }
    if (std::string part = scope_.unaccounted(op); !part.empty())
      unaccounted_.insert(std::move(part));
    else
      add_temporaries(op, rule, fresh);
    for (const graph::ValueId id : used_by(op))
      if (constant_[index(id)] == nullptr) give_up(place_of(id));
    for (const graph::ValueId id : op.outputs) give_up(place_of(id));
    push(std::move(fresh), place);
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
    for (std::size_t i = 0; i < rule.temporaries.size() && scope_.is_sized(op); ++i) {
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
      is_used_.push_back(false);
    }
  }

  // The size of a temporary. Nothing if it is null, or does not fit in 64 bits: the file is at fault then,
  // not the rule.
  std::optional<graph::SizePoly> temporary_bytes(const graph::Op& op, const assets::Expression& rule) {
    assets::Datum bytes;
    try {
      bytes = rule.evaluate(scope_.of(op));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::limit) throw;
      return std::nullopt;
    }
    if (!bytes.size() && !bytes.null()) rule.place().fail("'{}' is not a size", rule.text());
    return bytes.size();
  }

  const graph::ForwardGraph& from_;
  const Profile& profile_;
  graph::ForwardGraph to_;
  OperatorScope scope_;
  std::set<std::string> unaccounted_;
  std::vector<bool> runs_;  // by body
  std::vector<bool> is_output_;
  std::vector<const graph::Op*>
      constant_;                     // by value: the operator with its weights if it is a constant, else null
  std::vector<bool> open_;           // by symbol: without a name, so that no two such sizes count as equal
  std::vector<std::uint32_t> uses_;  // by value
  std::vector<graph::ValueId> now_;  // by value: its number in to_
  std::vector<std::optional<graph::ValueId>> made_of_;  // the same, once it is made
  std::vector<graph::OpPlace> places_;                  // per operator of to_: the one that it runs
  std::size_t passed_on_ = 0;
  std::uint32_t body_ = 0;  // the body that runs; 0 for the graph itself
  std::uint32_t bodies_ = 0;
  std::size_t temporaries_ = 0;
  // per value of to_
  std::vector<std::uint32_t> place_;   // the value whose memory it uses
  std::vector<std::uint32_t> refers_;  // references to its memory, if the memory is its own
  std::vector<std::uint32_t> room_;
  std::vector<bool> is_used_;         // by an operator, if the memory is its own
  std::vector<graph::ValueId> made_;  // by operators of the graph itself, in memory of their own
  std::vector<std::string> numbers_;  // short names of symbols for the keys of rooms_: names may be long
  graph::TextMap<std::uint32_t> rooms_;
  std::vector<std::vector<std::uint32_t>> given_up_;  // by room: memory without references
};

// Back from the places of operators among the steps to those of the operators that have them.
void join_steps(std::vector<graph::OpPlace>& places, const graph::ForwardGraph& graph,
                const Profile& profile) {
  const auto origins_of = [&](const std::vector<graph::Op>& ops) {
    std::vector<std::uint32_t> origins;
    for (std::uint32_t i = 0; i < ops.size(); ++i)
      origins.insert(origins.end(), step_count(ops[i], profile), i);
    return origins;
  };
  const std::vector<std::uint32_t> main = origins_of(graph.ops);
  std::vector<std::vector<std::uint32_t>> bodies;
  for (const graph::Body& body : graph.bodies) bodies.push_back(origins_of(body.ops));
  for (graph::OpPlace& place : places)
    place.at = (place.body == graph::OpPlace::kMain ? main : bodies[place.body])[place.at];
}

}  // namespace

FilePass file_pass(const graph::ForwardGraph& graph, const Profile& profile,
                   std::span<const graph::Tensor> tensors) {
  const auto has_steps = [&](const graph::Op& op) { return !profile.rule(op.kind).steps.empty(); };
  const auto any_has = [&](const auto& part) { return std::ranges::any_of(part.ops, has_steps); };
  if (!any_has(graph) && std::ranges::none_of(graph.bodies, any_has))
    return FileGraph(graph, tensors, profile).run();
  const graph::ForwardGraph expanded = with_steps(graph, profile);
  FilePass pass = FileGraph(expanded, tensors, profile).run();
  join_steps(pass.ops, graph, profile);
  pass.values.resize(graph.values.size());  // those between steps are not the file's
  return pass;
}

graph::ForwardGraph with_profile(const graph::ForwardGraph& graph, const Profile& profile,
                                 std::span<const graph::Tensor> tensors) {
  return file_pass(graph, profile, tensors).graph;
}

std::size_t sharing_values(const graph::ForwardGraph& graph) {
  return static_cast<std::size_t>(std::ranges::count_if(
      graph.values, [](const graph::Value& value) { return value.memory_of.has_value(); }));
}

}  // namespace loadline::forward
