// One function per operator computes the shapes of its results.
#include "core/forward/pass/lowering.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/family/operators.h"
#include "core/forward/pass/execution_order.h"
#include "core/forward/pass/training.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>

#include <fmt/core.h>

namespace loadline::forward {
namespace {

using Sizes = std::vector<graph::SizePoly>;

constexpr std::size_t kMostDimensions = 8;
constexpr std::size_t kMostValues = 500'000;
constexpr std::uint64_t kMostWork = 50'000'000;  // steps of expressions: 1000 layers take a twentieth

class Lowering {
 public:
  Lowering(const BoundModel& model, const Profile& profile)
      : model_(model),
        profile_(profile),
        activation_(profile.activation.value_or(model.dtype)),
        cache_(profile.cache.value_or(model.dtype)) {
    scope_.work = &work_;
    scope_.name = [this](std::string_view name) { return name_value(name); };
    scope_.call = std::bind_front(&Lowering::call, this);
  }

  graph::ForwardGraph lower() {
    const graph::SizePoly past = graph::SizePoly::symbol(graph::kPast),
                          sequence = graph::SizePoly::symbol(graph::kSequence);
    total_ = *graph::SizePoly::sum(sequence, past);
    for (const auto& [name, value] : model_.constants) constants_.insert_or_assign(name, value);
    for (const auto& [name, value] : profile_.flags) constants_.insert_or_assign(name, value);
    const std::pair<const char*, assets::Datum> sizes[] = {{"B", graph::SizePoly::symbol(graph::kBatch)},
                                                           {"S", sequence},
                                                           {"P", past},
                                                           {"T", total_},
                                                           {"e", bytes_of(activation_)},
                                                           {"ce", bytes_of(cache_)}};
    for (const auto& [name, value] : sizes) constants_.insert_or_assign(name, value);
    values_.resize(model_.values.size());
    made_by_.resize(model_.values.size());
    for (std::size_t i = 0; i < model_.inputs.size(); ++i) add_input(i);
    shared_.resize(profile_.shared.size());
    if (profile_.training.weights) training_.emplace(graph_, profile_, activation_);
    for (std::size_t i = 0, at = output_rows_at(); i < model_.ops.size(); ++i) add_op(model_.ops[i], i == at);
    if (!model_.ops.empty())
      for (const std::uint32_t output : model_.ops.back().outputs) graph_.outputs.push_back(*values_[output]);
    if (profile_.order == OpOrder::listed) begin_in_their_parts(graph_, turns_, shared_);
    hold(graph_, turns_, until_);
    if (profile_.hold_block_inputs) hold_block_inputs(graph_, turns_);
    if (profile_.order == OpOrder::inputs_first) put_inputs_first(graph_, early_, in_place_);
    merge_in_place(graph_, in_place_);
    if (training_) training_->finish(model_.config);
    return std::move(graph_);
  }

 private:
  void see_attributes(const BoundOp& op) {
    locals_.clear();
    for (const auto& [name, value] : op.attributes) locals_.insert_or_assign(name, value);
  }

  // The names that a rule sees of an operator whose outputs have their shapes.
  void see(const BoundOp& op) {
    see_attributes(op);
    locals_.insert_or_assign("weights", assets::Datum(static_cast<std::int64_t>(op.weights.size())));
    if (!op.inputs.empty()) {
      const Sizes& first = shape(0);
      graph::SizePoly rows(1);
      for (std::size_t i = 0; i + 1 < first.size(); ++i) rows = product(rows, first[i]);
      const std::string& name = model_.values[op.inputs[0]];
      locals_.insert_or_assign("input", assets::Datum(name.substr(0, name.find('.'))));
      locals_.insert_or_assign("n", assets::Datum(rows));
      locals_.insert_or_assign("c", assets::Datum(first.empty() ? graph::SizePoly(1) : first.back()));
      const Sizes& second = shape(op.inputs.size() > 1 ? 1 : 0);
      locals_.insert_or_assign("also", assets::Datum(second.empty() ? graph::SizePoly(1) : second.back()));
      locals_.insert_or_assign(
          "t", assets::Datum(second.size() > 1 ? second[second.size() - 2] : graph::SizePoly(1)));
      const auto window = windows_.find(op.inputs.size() > 1 ? op.inputs[1] : op.inputs[0]);
      locals_.insert_or_assign("within", assets::Datum(window == windows_.end() ? 0 : window->second));
      const std::string_view other = op.inputs.size() > 1 ? made_by_[op.inputs[1]] : std::string_view();
      locals_.insert_or_assign("other", assets::Datum(std::string(other)));
      locals_.insert_or_assign("in_heads", assets::Datum(std::int64_t{in_heads_.contains(op.inputs[0])}));
      locals_.insert_or_assign("parts", assets::Datum(parts(op)));
    }
    if (!op.outputs.empty()) {
      const Sizes& made = *graph_.value(*values_[op.outputs[0]]).shape;
      locals_.insert_or_assign("o", assets::Datum(made.empty() ? graph::SizePoly(1) : made.back()));
    }
  }

  // The number of equal parts of its input's width that a norm works on; 1 for other operators.
  std::int64_t parts(const BoundOp& op) const {
    const auto in_width = width(0);
    if (op.line->op != "norm" || !in_width || op.weights.empty() || op.weights[0].shape.empty()) return 1;
    return *in_width / std::max(std::int64_t{1}, static_cast<std::int64_t>(op.weights[0].shape.back()));
  }

  // Notes the results whose rows are seen as heads from here on.
  void see_heads(const BoundOp& op) {
    if (op.inputs.empty() || op.outputs.empty()) return;
    const bool passed_on = op.line->op == "scale" && in_heads_.contains(op.inputs[0]);
    if (op.line->op == "rope" || parts(op) > 1 || passed_on) in_heads_.insert(op.outputs[0]);
  }

  // Adds the shared values that this operator uses to its inputs. Its first user gives each its size.
  void add_shared(const BoundOp& op, graph::Op& lowered) {
    for (std::size_t i = 0; i < shared_.size(); ++i) {
      const SharedValue& shared = profile_.shared[i];
      if (std::ranges::find(shared.ops, op.line->op) == shared.ops.end()) continue;
      if (!shared.condition.text().empty() && !shared.condition.evaluate(scope_).truth()) continue;
      if (!shared_[i]) {
        const graph::SizePoly bytes = size_of(shared.bytes);
        if (bytes == graph::SizePoly(0)) continue;
        shared_[i] = add_value(shared.name, graph::DType::u8, {bytes}, graph::Lane::activation);
        graph_.inputs.push_back(*shared_[i]);
        if (shared.to_end) graph_.outputs.push_back(*shared_[i]);
      }
      lowered.inputs.push_back(*shared_[i]);
    }
  }

  // The position of the operator whose inputs an engine takes rows of; that of no operator if it takes none.
  std::size_t output_rows_at() const {
    const auto is = [](std::string_view kind) {
      return [kind](const BoundOp& op) { return op.line->op == kind; };
    };
    if (profile_.output_rows_at.empty()) return model_.ops.size();
    const auto last = std::find_if(model_.ops.rbegin(), model_.ops.rend(), is("attn")).base();
    return static_cast<std::size_t>(std::find_if(last, model_.ops.end(), is(profile_.output_rows_at)) -
                                    model_.ops.begin());
  }

  template <typename... Values>
  [[noreturn]] void fail(fmt::format_string<Values...> detail, const Values&... values) const {
    if (op_ == nullptr) throw Error(ErrorCode::limit, {.file = model_.architecture->path}, detail, values...);
    op_->line->place.fail(fmt::vformat(detail, fmt::make_format_args(values...)));
  }

  static std::int64_t bytes_of(graph::DType dtype) { return graph::dtype_info(dtype).block_bytes; }

  assets::Datum name_value(std::string_view name) const {
    if (const auto found = locals_.find(name); found != locals_.end()) return found->second;
    if (const auto found = constants_.find(name); found != constants_.end()) return found->second;
    return model_.config.get(name);
  }

  // min(size, number) becomes a symbol of its own if the size depends on batch or sequence.
  std::optional<assets::Datum> call(std::string_view function, std::span<const assets::Datum> arguments) {
    if (function != "min" || arguments.size() != 2) return std::nullopt;
    const bool first = arguments[0].poly() != nullptr;
    const graph::SizePoly* const of = arguments[first ? 0 : 1].poly();
    const std::int64_t* const most = arguments[first ? 1 : 0].number();
    if (of == nullptr || most == nullptr || *most < 0) return std::nullopt;
    return assets::Datum(least(*of, static_cast<std::uint64_t>(*most)));
  }

  graph::SizePoly least(const graph::SizePoly& of, std::uint64_t most) {
    if (most > INT64_MAX) return of;
    const graph::SizePoly bound(static_cast<std::int64_t>(most));
    for (const graph::ChosenSize& known : graph_.chosen)
      if (known.size == of && known.bound == bound) return graph::SizePoly::symbol(known.symbol);
    constexpr std::size_t kMostSymbols = 1000;
    if (graph_.symbols.size() == kMostSymbols) fail("more than a thousand different limits");
    const graph::SymbolId symbol{static_cast<std::uint16_t>(graph_.symbols.size())};
    graph_.symbols.push_back(fmt::format("min({}, {})", of.text(graph_.symbols), most));
    graph_.chosen.push_back({symbol, of, bound, bound, of});
    return graph::SizePoly::symbol(symbol);
  }

  graph::SizePoly size_of(const assets::Expression& expression) const {
    const auto size = expression.evaluate(scope_).size();
    if (!size) expression.place().fail("'{}' is not a size", expression.text());
    return *size;
  }

  graph::ValueId add_value(std::string name, graph::DType dtype, Sizes shape, graph::Lane lane,
                           std::optional<graph::ValueId> memory_of = {}) {
    if (graph_.values.size() == kMostValues) fail("more than 500,000 values and temporaries");
    const graph::ValueId id{static_cast<std::uint32_t>(graph_.values.size())};
    graph_.values.push_back({std::move(name), dtype, std::move(shape), lane, memory_of});
    return id;
  }

  void add_input(std::size_t i) {
    const InputSpec& input = model_.inputs[i];
    Sizes shape;
    for (const assets::Expression& size : input.shape) shape.push_back(size_of(size));
    values_[i] = add_value(input.name, input.dtype, std::move(shape), graph::Lane::activation);
    graph_.inputs.push_back(*values_[i]);
  }

  // Accessors for the rules of operators, below: inputs, weights and attributes of the current operator.
  const graph::Value& in(std::size_t i) const {
    if (i >= op_->inputs.size()) fail("'{}' needs {} input{}", op_->line->op, i + 1, i == 0 ? "" : "s");
    return graph_.value(*values_[op_->inputs[i]]);
  }
  const Sizes& shape(std::size_t i) const { return *in(i).shape; }
  Sizes with_last(std::size_t i, const graph::SizePoly& last) const {
    Sizes result = shape(i);
    if (result.empty()) fail("the input has no dimensions");
    result.back() = last;
    return result;
  }
  const BoundWeight& weight(std::size_t i) const {
    if (i >= op_->weights.size()) fail("'{}' needs a weight", op_->line->op);
    if (op_->weights[i].shape.empty())
      fail("'{}' cannot use the scalar '{}'", op_->line->op, safe_display(op_->weights[i].name, 100));
    return op_->weights[i];
  }
  // The outermost dimension of an input.
  const graph::SizePoly& batch(std::size_t i) const {
    if (shape(i).empty()) fail("the input has no dimensions");
    return shape(i).front();
  }
  const assets::Datum* attribute(std::string_view key) const {
    for (const auto& [name, value] : op_->attributes)
      if (name == key) return &value;
    return nullptr;
  }
  graph::SizePoly size_attribute(std::string_view key) const {
    const assets::Datum* const value = attribute(key);
    const auto size = value == nullptr ? std::nullopt : value->size();
    if (!size) fail("'{}' needs {}, a size", op_->line->op, key);
    return *size;
  }
  graph::SizePoly size_attribute(std::string_view key, const graph::SizePoly& otherwise) const {
    return attribute(key) == nullptr || attribute(key)->null() ? otherwise : size_attribute(key);
  }
  Sizes sizes_of(const assets::Datum& list) const {
    Sizes sizes;
    if (list.list() == nullptr || list.list()->size() > kMostDimensions)
      fail("{}: a list of at most {} sizes expected", list.shown(), kMostDimensions);
    for (const assets::Datum& one : *list.list()) {
      const auto size = one.size();
      if (!size) fail("{} is not a size", one.shown());
      sizes.push_back(*size);
    }
    return sizes;
  }
  static graph::SizePoly size(std::uint64_t n) { return graph::SizePoly(static_cast<std::int64_t>(n)); }
  graph::SizePoly product(const graph::SizePoly& a, const graph::SizePoly& b) const {
    const auto result = graph::SizePoly::product(a, b);
    if (!result) fail("a size becomes too large");
    return *result;
  }

  void out(std::size_t i, Sizes shape, graph::Lane lane = graph::Lane::activation,
           std::optional<graph::ValueId> memory_of = {}) {
    out(i, std::move(shape), lane == graph::Lane::cache ? cache_ : activation_, lane, memory_of);
  }
  void out(std::size_t i, Sizes shape, graph::DType dtype, graph::Lane lane,
           std::optional<graph::ValueId> memory_of = {}) {
    if (i >= op_->outputs.size()) fail("'{}' has {} results", op_->line->op, i + 1);
    const std::uint32_t number = op_->outputs[i];
    values_[number] = add_value(model_.values[number], dtype, std::move(shape), lane, memory_of);
  }

  // The width (last dimension) of an input, if it is a fixed number.
  std::optional<std::int64_t> width(std::size_t i) const {
    return shape(i).empty() ? std::nullopt : shape(i).back().constant();
  }
  void same(const BoundOp&) { out(0, shape(0)); }
  // A norm over the whole width, or over equal parts of it.
  void norm(const BoundOp& op) {
    const auto of = op.weights.empty() || op.weights[0].shape.empty()
                        ? std::nullopt
                        : std::optional(static_cast<std::int64_t>(op.weights[0].shape.back()));
    if (const auto in_width = width(0); of && in_width && *in_width % *of != 0)
      fail("the weight has {} numbers, the input rows of {}", *of, *in_width);
    same(op);
  }
  // Inputs have the same width, or a single column that applies to all columns.
  void add(const BoundOp& op) {
    const auto first = width(0);
    for (std::size_t i = 1; i < op.inputs.size(); ++i) {
      const auto other = width(i);
      if (first && other && *first != *other && *first != 1 && *other != 1)
        fail("'{}' of rows of {} and rows of {}", op.line->op, *first, *other);
    }
    same(op);
  }
  void embed(const BoundOp&) {
    Sizes result = shape(0);
    result.push_back(size(weight(0).shape.back()));
    out(0, std::move(result));
  }
  void linear(const BoundOp&) {
    const graph::Shape& stored = weight(0).shape;
    if (stored.empty()) fail("a weight of no dimensions");
    const assets::Datum* const layout = attribute("layout");
    if (attribute("cols") != nullptr) return out(0, with_last(0, size_attribute("cols")));
    Sizes result = with_last(0, size(layout != nullptr ? stored.back() : stored.front()));
    const std::uint64_t takes = layout != nullptr ? stored.front() : stored.back();
    if (const auto in_width = width(0);
        stored.size() == 2 && in_width && static_cast<std::uint64_t>(*in_width) != takes)
      fail("the weight takes rows of {}, the input has rows of {}", takes, *in_width);
    const assets::Datum* const rows = attribute("rows");
    if (rows != nullptr && !rows->null() && *rows != assets::Datum(std::string("last")) &&
        *rows != assets::Datum(std::string("first")))
      fail("rows is {}: 'first' or 'last' expected", rows->shown());
    // 'last': the logits, and a profile may want all rows; 'first': a pooler, which always has one row
    const bool one = rows != nullptr && !(profile_.all_logits && *rows == assets::Datum(std::string("last")));
    if (one && result.size() > 1) result[result.size() - 2] = graph::SizePoly(1);
    out(0, std::move(result));
  }
  // A table with one row for each number of the input, or with a given shape.
  void table(const BoundOp&) {
    const assets::Datum* const dims = attribute("dims");
    if (dims != nullptr) return out(0, sizes_of(*dims));
    Sizes result = shape(0);
    result.push_back(size_attribute("cols"));
    out(0, std::move(result));
  }
  void split(const BoundOp& op) {
    const assets::Datum* const by = attribute("by");
    if (by == nullptr || by->list() == nullptr || by->list()->size() != op.outputs.size())
      fail("'split' needs by, a list of one size for each result");
    graph::SizePoly sum;
    for (const assets::Datum& part : *by->list())
      if (const auto size = part.size()) sum = graph::SizePoly::sum(sum, *size).value_or(sum);
    if (shape(0).empty() || sum != shape(0).back()) fail("'by' does not add up to the width of the input");
    // refers to the owner of the memory: views of views would make long chains
    const graph::ValueId whole = in(0).memory_of.value_or(*values_[op.inputs[0]]);
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      const auto part = (*by->list())[i].size();
      if (!part) fail("'by' holds something that is not a size");
      out(i, with_last(0, *part), in(0).dtype.value_or(activation_), graph::Lane::activation, whole);
    }
  }
  // Concatenates along the width, or along the rows.
  void concat(const BoundOp&) {
    const graph::DType dtype = in(0).dtype.value_or(activation_);
    if (attribute("rows") == nullptr)
      return out(0, with_last(0, size_attribute("cols")), dtype, graph::Lane::activation);
    Sizes result = attribute("cols") == nullptr ? shape(0) : with_last(0, size_attribute("cols"));
    if (result.size() < 2) fail("'concat' with rows needs an input that has rows");
    result[result.size() - 2] = size_attribute("rows");
    out(0, std::move(result), dtype, graph::Lane::activation);
  }
  // [rows, positions, width]. The positions are all tokens, or limited by a window, or a fixed number; with
  // "once" they are the input's, written by the first pass.
  void cache(const BoundOp& op) {
    const graph::SizePoly fixed = size_attribute("fixed", graph::SizePoly(0)),
                          window = size_attribute("window", graph::SizePoly(0));
    graph::SizePoly positions = fixed != graph::SizePoly(0) ? fixed : total_;
    const std::int64_t most = window.constant().value_or(0);
    if (most > 0) positions = window_positions(op, static_cast<std::uint64_t>(most));
    const bool once = attribute("once") != nullptr && attribute("once")->truth();
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      Sizes result = shape(i);
      if (result.size() < 2) fail("a cached value has rows, positions and a width");
      (once ? result.front() : result[result.size() - 2]) =
          once ? graph::SizePoly::symbol(graph::kBatch) : positions;
      // a step of training needs no cache; a layer that will run again has none
      const bool view = training_ && profile_.training.checkpoints;
      out(i, training_ ? shape(i) : std::move(result),
          training_ ? graph::Lane::activation : graph::Lane::cache,
          view ? std::optional(in(i).memory_of.value_or(*values_[op.inputs[i]])) : std::nullopt);
      if (most > 0) windows_.insert_or_assign(op.outputs[i], most);
    }
  }
  // The positions that a cache with a window keeps; some frameworks keep more than the window.
  graph::SizePoly window_positions(const BoundOp& op, std::uint64_t window) {
    const assets::Expression& windowed = profile_.rule(op.line->op).windowed;
    if (windowed.text().empty()) return least(total_, window);
    see_attributes(op);
    const graph::SizePoly positions = size_of(windowed);
    locals_.clear();
    return positions;
  }
  void attention(const BoundOp&) {
    const graph::SizePoly heads = size_attribute("heads"), dim = size_attribute("dim");
    out(0, with_last(0, product(heads, size_attribute("vdim", dim))));
  }
  // For each row, the chosen experts as I64 and their weights as F32.
  void route(const BoundOp&) {
    out(0, with_last(0, product(size_attribute("k"), size(8 + 4))), graph::DType::u8,
        graph::Lane::activation);
  }
  void take(const BoundOp&) {
    Sizes result = shape(0);
    if (result.size() < 2) fail("'take' needs rows to take from");
    result[result.size() - 2] = size_attribute("rows", graph::SizePoly(1));
    out(0, std::move(result));
  }
  // Patches of an image or steps of a signal become rows; without "rows", the number of rows stays the same.
  void convolution(const BoundOp&) {
    const graph::SizePoly channels = size(weight(0).shape.front());
    if (attribute("rows") == nullptr) return out(0, with_last(0, channels));
    out(0, {batch(0), size_attribute("rows"), channels});
  }
  // Gives the result, and a state that does not grow with the sequence.
  void scan(const BoundOp& op) {
    out(0, shape(0));
    if (op.outputs.size() == 1) return;
    const graph::DType own = graph::dtype_info(cache_).block_elements == 1 ? cache_ : activation_;
    const graph::SizePoly kept = product(size_attribute("state"), graph::SizePoly(bytes_of(own))),
                          wide = product(size_attribute("wide", size(0)), size(4));
    out(1, {batch(0), graph::SizePoly::sum(kept, wide).value_or(kept)}, graph::DType::u8, graph::Lane::cache);
  }

  // One rule for each operator, in the order of kOperators.
  struct Rule {
    std::string_view name;
    void (Lowering::*make)(const BoundOp& op);
  };
  static constexpr std::array<Rule, kOperators.size()> kRules = {{{"embed", &Lowering::embed},
                                                                  {"norm", &Lowering::norm},
                                                                  {"linear", &Lowering::linear},
                                                                  {"table", &Lowering::table},
                                                                  {"rope", &Lowering::same},
                                                                  {"cache", &Lowering::cache},
                                                                  {"attn", &Lowering::attention},
                                                                  {"act", &Lowering::same},
                                                                  {"mul", &Lowering::same},
                                                                  {"add", &Lowering::add},
                                                                  {"scale", &Lowering::same},
                                                                  {"split", &Lowering::split},
                                                                  {"concat", &Lowering::concat},
                                                                  {"route", &Lowering::route},
                                                                  {"experts", &Lowering::same},
                                                                  {"conv", &Lowering::convolution},
                                                                  {"scan", &Lowering::scan},
                                                                  {"take", &Lowering::take},
                                                                  {"cap", &Lowering::same}}};
  static_assert(std::equal(kRules.begin(), kRules.end(), kOperators.begin(),
                           [](const Rule& rule, const OperatorInfo& known) {
                             return rule.name == known.name;
                           }));

  // Copies the rows of each input that go into the output.
  void take_rows(const BoundOp& op) {
    for (const std::uint32_t input : op.inputs) {
      graph::Value copy = graph_.value(*values_[input]);
      if (copy.lane != graph::Lane::activation || !copy.shape) continue;
      graph::Op take = {
          .kind = "take", .name = op.name, .inputs = {*values_[input]}, .weights = {}, .outputs = {}};
      values_[input] = add_value(copy.name + ".rows", *copy.dtype, *copy.shape, graph::Lane::activation);
      take.outputs = {*values_[input]};
      graph_.ops.push_back(std::move(take));
      turns_.push_back(op.turn);
    }
  }

  void add_op(const BoundOp& op, bool of_output_rows) {
    op_ = &op;
    if (of_output_rows) take_rows(op);
    const auto row = std::ranges::find_if(kRules, [&](const Rule& one) { return one.name == op.line->op; });
    if (row == kRules.end())
      fail("there is no operator '{}'; there are: {}", safe_display(op.line->op, 40), operator_list());
    (this->*row->make)(op);
    graph::Op lowered;
    lowered.kind = op.line->op;
    lowered.name = op.name;
    for (const std::uint32_t input : op.inputs) lowered.inputs.push_back(*values_[input]);
    see(op);
    add_shared(op, lowered);
    lowered.weights = tensors_of(op);
    for (const std::uint32_t output : op.outputs) {
      if (!values_[output]) fail("'{}' does not give so many results", op.line->op);
      lowered.outputs.push_back(*values_[output]);
    }
    apply_rule(op, lowered);
    see_heads(op);
    for (const std::uint32_t output : op.outputs) made_by_[output] = op.line->op;
    graph_.ops.push_back(std::move(lowered));
    turns_.push_back(op.turn);
  }

  std::vector<graph::ValueId> temporaries(const BoundOp& op, const std::vector<assets::Expression>& sizes) {
    std::vector<graph::ValueId> ids;
    for (const assets::Expression& expression : sizes) {
      const graph::SizePoly bytes = size_of(expression);
      if (bytes == graph::SizePoly(0)) continue;
      ids.push_back(add_value(fmt::format("{}.{}", op.line->op, ids.size()), graph::DType::u8, {bytes},
                              graph::Lane::temporary));
    }
    return ids;
  }

  graph::ValueId root_of(graph::ValueId id) const { return graph_.value(id).memory_of.value_or(id); }

  // Operators before this one, each with one result that the next one uses.
  void add_stages(const BoundOp& op, const OpRule& rule, graph::Op& lowered) {
    for (const graph::ValueId id : temporaries(op, rule.stages)) {
      graph::Op stage = {.kind = lowered.kind,
                         .name = lowered.name,
                         .inputs = std::move(lowered.inputs),
                         .weights = std::move(lowered.weights),
                         .outputs = {id}};
      graph_.ops.push_back(std::move(stage));
      turns_.push_back(op.turn);
      lowered.inputs = {id};
      lowered.weights.clear();
    }
  }

  // Temporaries that outlive their operator.
  void keep(const BoundOp& op, const std::vector<assets::Expression>& sizes, const char* until,
            graph::Op& lowered) {
    std::vector<graph::ValueId> kept = temporaries(op, sizes);
    if (kept.empty()) return;
    lowered.temporaries.insert(lowered.temporaries.end(), kept.begin(), kept.end());
    until_.push_back({graph_.ops.size(), until, std::move(kept)});
  }

  void apply_rule(const BoundOp& op, graph::Op& lowered) {
    const OpRule& rule = profile_.rule(op.line->op);
    const std::size_t first_op = graph_.ops.size();
    see(op);
    if (const auto input = input_number(rule.view, scope_); input && *input < op.inputs.size())
      graph_.values[static_cast<std::size_t>(lowered.outputs.at(0))].memory_of =
          root_of(*values_[op.inputs[*input]]);
    if (const auto first = input_number(rule.first, scope_); first && *first < lowered.inputs.size())
      std::rotate(lowered.inputs.begin(), lowered.inputs.begin() + static_cast<std::ptrdiff_t>(*first),
                  lowered.inputs.end());
    if (!rule.before.empty()) {
      graph::Op first = {
          .kind = lowered.kind, .name = lowered.name, .inputs = lowered.inputs, .weights = {}, .outputs = {}};
      first.temporaries = temporaries(op, rule.before);
      graph_.ops.push_back(std::move(first));
      turns_.push_back(op.turn);
    }
    if (!rule.stages.empty()) add_stages(op, rule, lowered);
    lowered.temporaries = temporaries(op, rule.temporaries);
    for (const graph::ValueId id : temporaries(op, rule.to_end)) {
      lowered.temporaries.push_back(id);
      graph_.outputs.push_back(id);
    }
    if (rule.output_to_end.evaluate(scope_).truth())
      graph_.outputs.insert(graph_.outputs.end(), lowered.outputs.begin(), lowered.outputs.end());
    if (rule.without.evaluate(scope_).truth())
      for (const graph::ValueId id : lowered.outputs)
        graph_.values[static_cast<std::size_t>(id)].shape = Sizes{graph::SizePoly(0)};
    const assets::Datum until = rule.until.evaluate(scope_);
    if (until.truth() && until.text() == nullptr) rule.until.place().fail("the name of an operator expected");
    if (until.truth() && find_operator(*until.text()) == nullptr && *until.text() != "turn" &&
        *until.text() != "loop" && *until.text() != "end")
      rule.until.place().fail("'{}' is neither an operator nor 'turn', 'loop' or 'end'",
                              safe_display(*until.text(), 40));
    if (until.truth()) until_.push_back({graph_.ops.size(), *until.text(), lowered.outputs});
    keep(op, rule.kept, "again", lowered);
    keep(op, rule.returned, "next", lowered);
    if (const auto input = input_number(rule.in_place, scope_))
      in_place_.push_back({graph_.ops.size(), *input});
    if (rule.early.evaluate(scope_).truth()) early_.push_back(static_cast<std::uint32_t>(graph_.ops.size()));
    if (training_) training_->add(op, scope_, first_op, lowered);
    locals_.clear();
  }

  const BoundModel& model_;
  const Profile& profile_;
  graph::DType activation_;
  graph::DType cache_;
  assets::Scope scope_;
  std::uint64_t work_ = kMostWork;
  std::map<std::string, assets::Datum, std::less<>> constants_;
  std::map<std::string, assets::Datum, std::less<>> locals_;  // names that the current operator defines
  graph::SizePoly total_;                                     // S + P
  graph::ForwardGraph graph_;
  std::vector<std::optional<graph::ValueId>> values_;  // by number of the value in the BoundModel
  std::vector<std::string_view> made_by_;              // operators, by that number; empty for an input
  std::vector<std::optional<graph::ValueId>> shared_;  // parallel to the profile's; those that are used
  std::vector<std::uint32_t> turns_;                   // of each operator: BoundOp::turn
  std::vector<Until> until_;
  std::vector<InPlace> in_place_;
  std::vector<std::uint32_t> early_;               // positions in the graph
  std::map<std::uint32_t, std::int64_t> windows_;  // of cached values, by number in the BoundModel
  std::set<std::uint32_t> in_heads_;               // values whose rows are seen as heads, by number there
  const BoundOp* op_ = nullptr;
  std::optional<TrainingStep> training_;
};

}  // namespace

graph::ForwardGraph lower(const BoundModel& model, const Profile& profile) {
  return Lowering(model, profile).lower();
}

}  // namespace loadline::forward
