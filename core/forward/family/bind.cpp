// Runs an asset's lines once, in order, with the loops unrolled.
#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/family/architecture.h"
#include "core/forward/family/model_config.h"
#include "core/forward/family/settings.h"
#include "core/forward/family/tensor_names.h"
#include "core/graph/names/tensor_names.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::forward {
namespace {

constexpr std::size_t kMostTensors = 500'000;
constexpr std::size_t kMostValues = 200'000;
constexpr std::size_t kMostOps = 25'000;         // one takes about 2 KiB, bound and lowered
constexpr std::int64_t kMostTurns = 10'000;      // of one loop
constexpr std::size_t kMostLines = 100'000;      // after unrolling loops
constexpr std::uint64_t kMostWork = 10'000'000;  // of expressions: a thousand layers take a twentieth
// No real model has a larger size; the product of two such sizes fits in 64 bits.
constexpr std::int64_t kMostSize = std::int64_t{1} << 40;

struct Fp8 {
  std::uint64_t rows = 0, columns = 0;  // of a block that shares one scale
};

// What the class puts on top of the model. Others' classes that end in "Model" may have a head.
std::string_view head_of(const assets::Datum& classes, const Architecture& architecture) {
  struct Row {
    std::string_view ending, head;
  };
  constexpr Row kHeads[] = {
      {"ForSequenceClassification", "sequence"},
      {"ForTokenClassification", "tokens"},
      {"ForQuestionAnswering", "answers"},
      {"ForMultipleChoice", "choice"},
      {"ForImageClassification", "image"},
      {"LMHeadModel", "words"},
      {"Model", "none"},
  };
  const bool named = classes.list() != nullptr && !classes.list()->empty();
  const std::string* const name = named ? classes.list()->front().text() : nullptr;
  if (name == nullptr) return "words";
  const auto found =
      std::ranges::find_if(kHeads, [&](const Row& row) { return name->ends_with(row.ending); });
  const bool own = std::ranges::find(architecture.classes, *name) != architecture.classes.end();
  return found == std::end(kHeads) || (found->head == "none" && !own) ? "words" : found->head;
}

assets::Datum labels_of(const ModelConfig& config) {
  const assets::Datum count = config.get("num_labels"), names = config.get("id2label");
  if (count.number() != nullptr) return count;
  const bool named = names.object() != nullptr && names.object()->fields > 0;
  return assets::Datum(named ? names.object()->fields : std::int64_t{2});
}

class Binder {
 public:
  Binder(const Architecture& architecture, const ModelConfig& config, const graph::MetaGraph* graph,
         const std::vector<std::pair<std::string, assets::Datum>>& flags)
      : architecture_(architecture), model_{.architecture = &architecture, .config = config} {
    if (graph != nullptr)
      header_.emplace(*graph,
                      NameVariants{config.is_part_of_another() ? prefixes_in(*graph, architecture.prefixes)
                                                               : architecture.prefixes,
                                   architecture.spellings});
    scope_.work = &work_;
    here_ = {std::make_shared<const std::string>(architecture.path), 1, 1};
    names_.emplace("head", assets::Datum(std::string(head_of(config.get("architectures"), architecture))));
    names_.emplace("labels", labels_of(config));
    for (const auto& [name, value] : flags) names_.insert_or_assign(name, value);
    scope_.name = [this](std::string_view name) { return name_value(name); };
    scope_.call = [this](std::string_view function, std::span<const assets::Datum> arguments) {
      return call(function, arguments);
    };
  }

  BoundModel bind() {
    model_.dtype = config_dtype();
    fp8_ = fp8_block();
    if (const assets::Datum kept = model_.config.get("quantization_config.modules_to_not_convert");
        kept.list())
      for (const assets::Datum& name : *kept.list())
        if (name.text() != nullptr) unquantized_.insert(*name.text());
    for (const auto& [name, value] : architecture_.let) {
      read_.begin_line();
      const assets::Datum result = value.evaluate(scope_);
      mention(value);
      if (result.null()) value.place().fail("'{}' is missing", safe_display(value.text(), 60));
      names_.insert_or_assign(name, result);
      read_.define(name);
      model_.constants.emplace_back(name, result);
    }
    tied_ = architecture_.tie.evaluate(scope_).truth();
    may_tie_ =
        tied_ || (model_.config.is_part_of_another() && model_.config.get("tie_word_embeddings").null());
    add_inputs();
    run("main", "", false);
    sink_ = &model_.absent;
    absent_ = true;
    run("absent", "", true);
    absent_ = false;
    run_extra();
    finish_claims();
    account();
    return std::move(model_);
  }

  const SettingsRead& settings_read() const { return read_; }

 private:
  assets::Datum name_value(std::string_view name) const {
    if (sizes_ && name.size() == 1)
      if (const auto size = pass_size(name[0])) return assets::Datum(*size);
    read_.note(name);
    const auto found = names_.find(name);
    if (found != names_.end()) return found->second;
    // cached: a list in the configuration may be long and read in every layer
    const auto known = configured_.find(name);
    if (known != configured_.end()) return known->second;
    const assets::Datum& value =
        configured_.emplace(std::string(name), model_.config.get(name)).first->second;
    read_.is_setting(name, !value.null());
    return value;
  }

  // Settings that an expression names and has not looked at count as read, too: what it has looked at, such
  // as the tensors of the file, stands for them.
  void mention(const assets::Expression& expression) {
    const auto is_name = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
    };
    const std::string_view text = expression.text();
    if (text.empty() || !mentioned_.insert(&expression).second) return;
    for (std::size_t at = 0; at < text.size();) {
      if (text[at] == '\'') {
        at = std::min(text.find('\'', at + 1), text.size() - 1) + 1;
        continue;
      }
      std::size_t end = at;
      while (end < text.size() && is_name(text[end])) ++end;
      const std::string_view name = text.substr(at, end - at);
      if (!name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 && !names_.contains(name))
        read_.is_setting(name, model_.config.given(name));
      at = std::max(end, at + 1);
    }
  }

  // The sizes of a pass (B, S, P, T) as symbols for attributes; they get numbers when a pass is evaluated.
  static std::optional<graph::SizePoly> pass_size(char name) {
    const graph::SizePoly sequence = graph::SizePoly::symbol(graph::kSequence),
                          past = graph::SizePoly::symbol(graph::kPast);
    if (name == 'B') return graph::SizePoly::symbol(graph::kBatch);
    if (name == 'S') return sequence;
    if (name == 'P') return past;
    return name == 'T' ? graph::SizePoly::sum(sequence, past) : std::nullopt;
  }

  // has('NAME'): whether the file holds that tensor; null without a file. NAME may hold expressions, as the
  // name of a weight may, but no has(): the text may come from the configuration and recurse without end.
  std::optional<assets::Datum> call(std::string_view function, std::span<const assets::Datum> arguments) {
    if (function == "given" && arguments.size() == 1 && arguments[0].text() != nullptr)
      return assets::Datum(std::int64_t{model_.config.given(*arguments[0].text())});
    if (function != "has") return std::nullopt;
    if (!header_ || arguments.size() != 1 || arguments[0].text() == nullptr) return assets::Datum();
    if (asking_) here_.fail("has() within has()");
    asking_ = true;
    const std::string name = expand_name(*arguments[0].text(), here_, scope_);
    asking_ = false;
    return assets::Datum(std::int64_t{header_->find(name).has_value()});
  }

  graph::DType config_dtype() const {
    const std::string name = model_.config.dtype_name("float32");
    const auto dtype = graph::dtype_from(&graph::DTypeInfo::torch, name);
    if (!dtype) throw model_.config.fail("the type '{}' is not known", safe_display(name, 40));
    return *dtype;
  }

  // quantization_config's weight_block_size where quant_method is fp8, else nothing.
  std::optional<Fp8> fp8_block() {
    const ModelConfig& config = model_.config;
    if (header_) return std::nullopt;
    for (const std::string_view other : {"quantization", "compression_config"})
      if (!config.get(other).null())
        model_.remark = fmt::format("{} is not understood: sizes are those of weights in {}", other,
                                    graph::dtype_info(model_.dtype).name);
    if (config.get("quantization_config").null()) return std::nullopt;
    const assets::Datum named = config.get("quantization_config.quant_method");
    const std::string method = named.text() == nullptr ? "" : *named.text();
    if (method == "mxfp4") return std::nullopt;  // the asset has its tensors
    const assets::Datum block = config.get("quantization_config.weight_block_size");
    const auto side = [&](std::size_t i) -> std::uint64_t {
      const std::int64_t* const size = (*block.list())[i].number();
      return size == nullptr || *size <= 0 ? 0 : static_cast<std::uint64_t>(*size);
    };
    const bool two_sizes = block.list() != nullptr && block.list()->size() == 2 && side(0) > 0 && side(1) > 0;
    if (method == "fp8" && two_sizes) return Fp8{side(0), side(1)};
    model_.remark = fmt::format("quantization_config{} is not understood: sizes are those of weights in {}",
                                method.empty() ? "" : fmt::format(" ({})", safe_display(method, 40)),
                                graph::dtype_info(model_.dtype).name);
    return std::nullopt;
  }

  void add_inputs() {
    model_.inputs = architecture_.inputs;
    const auto known = [&](std::string_view name) {
      return std::ranges::any_of(model_.inputs, [&](const InputSpec& input) { return input.name == name; });
    };
    // some frameworks number the positions of all sequences at once
    for (const auto& [name, rows] : {std::pair("ids", "B"), std::pair("pos", "(one_position ?? 0) ? 1 : B")})
      if (!known(name))
        model_.inputs.push_back(
            {name,
             here_,
             {assets::Expression::parse(rows, here_), assets::Expression::parse("S", here_)},
             graph::DType::i64});
    for (const InputSpec& input : model_.inputs) new_value(input.name);
  }

  std::uint32_t new_value(const std::string& name) {
    if (model_.values.size() == kMostValues)
      throw Error(ErrorCode::limit, {.file = architecture_.path}, "more than 200,000 values");
    const auto number = static_cast<std::uint32_t>(model_.values.size());
    const std::uint32_t times = used_[name]++;
    model_.values.push_back(times == 0 ? name : fmt::format("{}.{}", name, times));
    current_[name] = number;
    return number;
  }

  void run(std::string_view block, const std::string& prefix, bool stored_only) {
    for (const OpLine& line : architecture_.block(block)) {
      if (++lines_ > kMostLines)
        throw Error(ErrorCode::limit, {.file = architecture_.path}, "loops with more than 100,000 lines");
      read_.begin_line();
      const bool holds = line.condition.text() == "" || line.condition.evaluate(scope_).truth();
      mention(line.condition);
      if (!holds) continue;
      const bool stored = stored_only || line.stored_only;
      if (line.kind == OpLine::Kind::each)
        loop(line, prefix, stored);
      else if (stored)
        add_stored(line, prefix);
      else
        operate(line, prefix);
    }
  }

  void loop(const OpLine& line, const std::string& prefix, bool stored_only) {
    const std::int64_t first = line.first.text() == "" ? 0 : turn(line.first);
    const std::int64_t end = turn(line.end);
    const std::optional<assets::Datum> hidden = defined(line.variable);
    const bool numbered = line.prefix.find('{') != std::string::npos;
    for (std::int64_t i = first; i < end; ++i) {
      if (++lines_ > kMostLines)
        throw Error(ErrorCode::limit, {.file = architecture_.path}, "loops of more than 100,000 turns");
      names_.insert_or_assign(line.variable, assets::Datum(i));
      if (numbered && depth_++ == 0) turn_ = ++turns_;
      const std::string inner = line.prefix.empty() ? "" : expand_name(line.prefix, line.place, scope_) + ".";
      run(line.block, prefix + inner, stored_only);
      if (numbered && --depth_ == 0) turn_ = 0;
    }
    define(line.variable, hidden);
  }

  // The meaning of a loop variable's name outside of the loop: saved before the loop, restored after it.
  std::optional<assets::Datum> defined(const std::string& name) const {
    const auto found = names_.find(name);
    return found == names_.end() ? std::nullopt : std::optional(found->second);
  }
  void define(const std::string& name, const std::optional<assets::Datum>& value) {
    if (value)
      names_.insert_or_assign(name, *value);
    else
      names_.erase(name);
  }

  std::int64_t turn(const assets::Expression& expression) const {
    const assets::Datum value = expression.evaluate(scope_);
    if (value.number() == nullptr || *value.number() < 0 || *value.number() > kMostTurns)
      expression.place().fail("'{}' is {}: a whole number from 0 to {} expected", expression.text(),
                              value.shown(), kMostTurns);
    return *value.number();
  }

  void operate(const OpLine& line, const std::string& prefix) {
    if (model_.ops.size() == kMostOps) line.place.fail("more than 25,000 operators");
    BoundOp op;
    op.line = &line;
    op.turn = turn_;
    for (const std::string& name : line.inputs) {
      const auto value = current_.find(name);
      if (value == current_.end()) line.place.fail("there is no value '{}' yet", name);
      op.inputs.push_back(value->second);
    }
    sizes_ = true;
    for (const auto& [key, value] : line.attributes) op.attributes.emplace_back(key, value.evaluate(scope_));
    sizes_ = false;
    add_weights(line, prefix, op.weights);
    op.name = line.weights.empty() || has_experts(line)
                  ? prefix + line.outputs.front()
                  : prefix + expand_name(line.weights.front().name, line.place, scope_);
    for (const std::string& name : line.outputs) op.outputs.push_back(new_value(name));
    model_.ops.push_back(std::move(op));
  }

  // A file may omit tensors that no operator uses, so they never count as missing. For example, transformers
  // does not save layers that predict further tokens.
  void add_stored(const OpLine& line, const std::string& prefix) {
    const std::size_t missing = model_.claims.missing.size();
    add_weights(line, prefix, *sink_);
    model_.claims.missing.resize(missing);
  }

  static bool has_experts(const OpLine& line) {
    return std::ranges::any_of(
        line.weights, [](const WeightSpec& spec) { return spec.name.find("{e}") != std::string::npos; });
  }

  // "{e}" in a name stands for each of the n experts.
  void add_weights(const OpLine& line, const std::string& prefix, std::vector<BoundWeight>& to) {
    std::int64_t experts = 1;
    if (has_experts(line)) {
      const auto n = std::ranges::find_if(line.attributes,
                                          [](const auto& attribute) { return attribute.first == "count"; });
      if (n == line.attributes.end()) line.place.fail("'{e}' needs count, the number of experts");
      experts = turn(n->second);
    }
    const std::optional<assets::Datum> hidden = defined("e");
    for (std::int64_t e = 0; e < experts; ++e) {
      if (has_experts(line)) names_.insert_or_assign("e", assets::Datum(e));
      for (const WeightSpec& spec : line.weights) add_weight(spec, line, prefix, to);
    }
    define("e", hidden);
  }

  graph::Shape contract(const WeightSpec& spec) const {
    std::vector<std::uint64_t> shape;
    for (const assets::Expression& size : spec.shape) {
      const assets::Datum value = size.evaluate(scope_);
      if (value.number() == nullptr || *value.number() <= 0 || *value.number() > kMostSize)
        size.place().fail("'{}' is {}: a whole number from 1 to {} expected", size.text(), value.shown(),
                          kMostSize);
      shape.push_back(static_cast<std::uint64_t>(*value.number()));
    }
    return graph::Shape(shape);
  }

  void add_weight(const WeightSpec& spec, const OpLine& line, const std::string& prefix,
                  std::vector<BoundWeight>& to) {
    const std::string base = prefix + expand_name(spec.name, spec.place, scope_);
    const graph::Shape shape = contract(spec);
    const bool linear = line.op == "linear" || line.op == "experts";
    const std::string name = spec.bare ? base : base + ".weight";
    const bool quantized = fp8_ && linear && !spec.keep && shape.size() == 2 && !kept_whole(base);
    add(name, shape, spec, quantized ? graph::DType::f8_e4m3 : spec.dtype.value_or(model_.dtype), to);
    if (quantized)
      add(base + ".weight_scale_inv",
          graph::Shape{(shape[0] + fp8_->rows - 1) / fp8_->rows,
                       (shape[1] + fp8_->columns - 1) / fp8_->columns},
          spec, graph::DType::f32, to);
    if (!spec.bias) return;
    const std::string bias = base + ".bias";
    const bool asked = spec.bias_if.text() == "" || spec.bias_if.evaluate(scope_).truth();
    if (header_ ? found(bias) : asked) {
      if (shape.empty()) spec.place.fail("a scalar has no bias");
      const bool transposed = std::ranges::any_of(
          line.attributes, [](const auto& attribute) { return attribute.first == "layout"; });
      add(bias, graph::Shape{transposed ? shape.back() : shape[0]}, spec, spec.dtype.value_or(model_.dtype),
          to);
    } else if (header_ && spec.bias_if.text() == "") {
      model_.claims.missing.push_back(bias);
    }
  }

  // Whether the file holds the tensor under its own name or under its owner's.
  bool found(const std::string& name) const {
    const std::string* const owner = tied_to(name);
    return header_->find(name) || (owner != nullptr && may_tie_ && header_->find(*owner));
  }

  // Whether the configuration lists the module as not quantized, by its name or by a suffix after a dot.
  bool kept_whole(const std::string& base) const {
    for (std::size_t at = 0; !unquantized_.empty(); ++at) {
      if (unquantized_.contains(base.substr(at))) return true;
      at = base.find('.', at);
      if (at == std::string::npos) return false;
    }
    return false;
  }

  void add(const std::string& name, const graph::Shape& shape, const WeightSpec& spec, graph::DType dtype,
           std::vector<BoundWeight>& to) {
    const auto count = graph::element_count(shape);
    const auto bytes = count ? graph::byte_size(dtype, *count) : std::nullopt;
    const auto total = bytes ? checked_add(total_, *bytes) : std::nullopt;
    if (!total || *total >> 62 != 0 || ++tensors_ > kMostTensors)
      throw Error(ErrorCode::limit, {.file = model_.config.path()}, "tensor '{}' makes the model too large",
                  safe_display(name, 200));
    total_ = *total;
    if (absent_) return to.push_back({name, shape, dtype, std::nullopt});
    const std::string* const owner = tied_to(name);
    if (!header_) {
      if (owner != nullptr && tied_) {
        model_.tied.emplace_back(name, *owner);
        return to.push_back({*owner, shape, dtype, std::nullopt});
      }
      if (spec.optional) return;
      const auto [asked, first] = asked_.try_emplace(name, model_.asked.size());
      if (first) model_.asked.push_back({name, shape, dtype, std::nullopt});
      const BoundWeight& weight = model_.asked[asked->second];
      if (weight.shape != shape || weight.dtype != dtype)
        spec.place.fail("tensor '{}' is asked for twice: as {} [{}] and as {} [{}]", safe_display(name, 200),
                        graph::dtype_info(weight.dtype).name, fmt::join(weight.shape, ","),
                        graph::dtype_info(dtype).name, fmt::join(shape, ","));
      return to.push_back(weight);
    }
    if (const auto id = header_->find(name)) {
      header_->claim(*id);
      BoundWeight found = found_weight(*id, name);
      if (found.shape != shape && squeezed(found.shape) != squeezed(shape)) disagree(found, shape);
      found.shape = shape;
      return to.push_back(std::move(found));
    }
    if (const auto id = owner != nullptr && may_tie_ ? header_->find(*owner) : std::nullopt) {
      model_.tied.emplace_back(name, *owner);
      return to.push_back(found_weight(*id, *owner));
    }
    if (!spec.optional) model_.claims.missing.push_back(name);
    to.push_back({name, shape, dtype, std::nullopt});
  }

  // The shape without dimensions of 1, which writers may omit or insert anywhere.
  static std::vector<std::uint64_t> squeezed(const graph::Shape& shape) {
    std::vector<std::uint64_t> sides;
    std::copy_if(shape.begin(), shape.end(), std::back_inserter(sides),
                 [](std::uint64_t side) { return side != 1; });
    return sides;
  }

  void disagree(const BoundWeight& found, const graph::Shape& shape) {
    model_.claims.disagreements.push_back({graph::Severity::warning, found.name,
                                           fmt::format("config.json says [{}], the file [{}]",
                                                       fmt::join(shape, ","), fmt::join(found.shape, ","))});
  }

  // The tensor with that id, or the packed weight of which it holds the codes. An asset may ask for the codes
  // themselves.
  BoundWeight found_weight(graph::TensorId id, std::string_view asked) const {
    const graph::Tensor& tensor = header_->graph().tensor(id);
    const graph::LogicalTensor* const weight = header_->packed(id);
    if (weight == nullptr || (weight->name != tensor.name && asked.ends_with(last_part(tensor.name))))
      return {tensor.name.str(), tensor.shape, tensor.dtype, id};
    BoundWeight found{weight->name.str(), weight->shape, weight->dtype, id};
    for (const graph::CompanionTensor& companion : weight->companions)
      found.companions.push_back(companion.tensor);
    return found;
  }
  static std::string_view last_part(std::string_view name) { return name.substr(name.rfind('.') + 1); }

  const std::string* tied_to(const std::string& name) const {
    const auto found =
        std::ranges::find_if(architecture_.tied, [&](const auto& pair) { return pair.first == name; });
    return found == architecture_.tied.end() ? nullptr : &found->second;
  }

  // Buffers that some writers store. With a file, they count if the file has them; without one, if the
  // configuration sets Loadline's own key "loadline_stored_buffers".
  void run_extra() {
    std::vector<BoundWeight> extra;
    sink_ = &extra;
    const bool wanted = header_ || model_.config.get("loadline_stored_buffers").truth();
    if (wanted) run("extra", "", true);
    for (BoundWeight& weight : extra) {
      if (header_ && !weight.tensor) continue;
      if (weight.tensor) model_.claims.extra.push_back(*weight.tensor);
      model_.stored.push_back(std::move(weight));
    }
  }

  void account() {
    const std::vector<Setting> all = model_.config.settings();
    model_.unaccounted = read_.unaccounted(all, Reach::numbers);
    std::erase_if(model_.unaccounted, [&](const Setting& setting) { return row_of(setting) == true; });
    // what the asset says of a setting that it does not read goes before what holds for all models
    for (const Setting& setting : all)
      if (!read_.reads(setting.name) && row_of(setting) == false &&
          std::ranges::find(model_.unaccounted, setting.name, &Setting::name) == model_.unaccounted.end())
        model_.unaccounted.push_back(setting);
    // what is known of a configuration alone are names, and sizes that follow from it
    const bool stored = header_ && header_->graph().format != "config";
    std::vector<Setting> packing = unaccounted_packing(all, stored ? PackedUse::stored : PackedUse::foretell);
    // weights that are stored as they are would be packed by who loads them
    constexpr std::string_view kMethod = "quantization_config.quant_method";
    if (stored && header_->graph().logical.empty() &&
        std::ranges::find(packing, kMethod, &Setting::name) == packing.end())
      std::ranges::copy_if(all, std::back_inserter(packing),
                           [&](const Setting& setting) { return setting.name == kMethod; });
    std::ranges::move(packing, std::back_inserter(model_.unaccounted));
  }

  // Whether a row of the asset accounts for the setting with its value; nothing without a row.
  std::optional<bool> row_of(const Setting& setting) {
    std::optional<bool> accounted;
    for (const auto& [pattern, holds] : architecture_.settings) {
      if (!graph::glob_matches(pattern, setting.name)) continue;
      names_.insert_or_assign("value", model_.config.get(setting.name));
      accounted = accounted.value_or(false) || holds.evaluate(scope_).truth();
    }
    return accounted;
  }

  void finish_claims() {
    if (!header_) return;
    const graph::MetaGraph& graph = header_->graph();
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
      const graph::TensorId id{static_cast<std::uint32_t>(i)};
      if (header_->claimed(id)) continue;
      const bool ignored = std::ranges::any_of(architecture_.ignore, [&](const std::string& pattern) {
        return graph::glob_matches(pattern, graph.tensors[i].name);
      });
      (ignored ? model_.claims.ignored : model_.claims.unclaimed).push_back(id);
      if (!ignored) model_.claims.unclaimed_bytes += graph::tensor_bytes(graph, graph.tensors[i]);
    }
  }

  const Architecture& architecture_;
  BoundModel model_;
  std::optional<Header> header_;
  assets::Scope scope_;
  std::map<std::string, assets::Datum, std::less<>> names_;  // loop variables, "let" and flags
  std::unordered_map<std::string, std::uint32_t> current_;   // the value that a name denotes now
  std::unordered_map<std::string, std::uint32_t> used_;      // how many values had that name so far
  std::unordered_map<std::string, std::size_t> asked_;       // positions of names in BoundModel::asked
  std::vector<BoundWeight>* sink_ = &model_.stored;          // receives the weights of "have" lines
  std::optional<Fp8> fp8_;
  std::unordered_set<std::string> unquantized_;
  std::uint64_t total_ = 0;
  std::size_t tensors_ = 0;
  mutable SettingsRead read_;                                             // by expressions, for messages
  mutable std::map<std::string, assets::Datum, std::less<>> configured_;  // values of keys that were read
  std::unordered_set<const assets::Expression*> mentioned_;
  std::size_t lines_ = 0;
  std::uint64_t work_ = kMostWork;
  std::uint32_t turns_ = 0, turn_ = 0;  // see BoundOp
  int depth_ = 0;                       // of nested numbered loops
  assets::AssetPlace here_;             // the asset's file without a line, for faults without a place
  bool tied_ = false;
  bool may_tie_ =
      false;  // a tensor absent from the file may be its owner's, unless the configuration denies tying
  bool absent_ = false;
  bool asking_ = false;  // inside has()
  bool sizes_ = false;   // inside an attribute: B, S, P and T are known
};

}  // namespace

BoundModel bind_architecture(const Architecture& architecture, const ModelConfig& config,
                             const graph::MetaGraph* graph,
                             const std::vector<std::pair<std::string, assets::Datum>>& flags) {
  Binder binder(architecture, config, graph, flags);
  try {
    return binder.bind();
  } catch (const Error& error) {
    // assets are tested, so blame the configuration for a fault in the asset's place
    if (error.place().file != architecture.path) throw;
    throw config.fail(binder.settings_read().misfit(error.what(), architecture.path), error.code());
  }
}

}  // namespace loadline::forward
