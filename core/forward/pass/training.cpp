// Which operators keep what, and the order of the backward pass.
#include "core/forward/pass/training.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/option.h"
#include "core/base/text.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

namespace loadline::forward {

// --- The optimizers.

namespace {

constexpr std::array<OptimizerRow, 6> kOptimizers = {{{"adamw", Optimizer::adamw},
                                                      {"adamw_fused", Optimizer::adamw_fused},
                                                      {"adamw_8bit", Optimizer::adamw_8bit},
                                                      {"sgd", Optimizer::sgd},
                                                      {"momentum", Optimizer::momentum},
                                                      {"adafactor", Optimizer::adafactor}}};

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
  const auto whole = checked_add(a, b);
  if (!whole) throw Error(ErrorCode::limit, "the bytes of a training step do not fit in 64 bits");
  return *whole;
}
std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  const auto whole = checked_mul(a, b);
  if (!whole) throw Error(ErrorCode::limit, "the bytes of a training step do not fit in 64 bits");
  return *whole;
}

graph::SizePoly bytes_poly(std::uint64_t bytes) {
  if (bytes > INT64_MAX) throw Error(ErrorCode::limit, "the bytes of a training step do not fit in 64 bits");
  return graph::SizePoly(static_cast<std::int64_t>(bytes));
}

graph::SizePoly poly_product(const graph::SizePoly& a, const graph::SizePoly& b) {
  const auto product = graph::SizePoly::product(a, b);
  if (!product) throw Error(ErrorCode::limit, "a size of a training step becomes too large");
  return *product;
}

}  // namespace

std::span<const OptimizerRow> optimizers() { return kOptimizers; }

Optimizer find_optimizer(const std::string& id) {
  const auto row = std::ranges::find(kOptimizers, std::string_view(id), &OptimizerRow::id);
  std::vector<std::string> ids;
  for (const OptimizerRow& one : kOptimizers) ids.emplace_back(one.id);
  check_option_choice(id, ids);
  return row->optimizer;
}

std::string_view optimizer_id(Optimizer optimizer) {
  return std::ranges::find(kOptimizers, optimizer, &OptimizerRow::optimizer)->id;
}

std::string_view trained_weights_id(TrainedWeights weights) {
  return weights == TrainedWeights::lora ? "lora" : "full";
}

TrainedWeights find_trained_weights(const std::string& id) {
  check_option_choice(id, {"full", "lora"});
  return id == "lora" ? TrainedWeights::lora : TrainedWeights::full;
}

// --- The forward pass: what is kept.

TrainingStep::TrainingStep(graph::ForwardGraph& graph, const Profile& profile, graph::DType activation)
    : graph_(graph),
      profile_(profile),
      training_(profile.training),
      optimizer_(training_.optimizer.value_or(Optimizer::adamw)),
      activation_(activation),
      element_(graph::dtype_info(activation).block_bytes) {
  const auto makes_several = [](const auto& rule) {
    return !rule.second.stages.empty() || !rule.second.to_end.empty() || !rule.second.in_place.text().empty();
  };
  if (profile.order != OpOrder::listed || !profile.output_rows_at.empty() ||
      std::ranges::any_of(profile.ops, makes_several))
    throw Error(
        ErrorCode::malformed, {.file = profile.path},
        "a training step needs the operators as they are listed: 'order', 'output_rows_at', 'stages', "
        "'to_end' and 'in_place' cannot be had together with it");
}

graph::ValueId TrainingStep::append(graph::Value value) {
  constexpr std::size_t kMostValues = 1'000'000;
  if (graph_.values.size() == kMostValues)
    throw Error(ErrorCode::limit, "a training step of more than a million values");
  graph_.values.push_back(std::move(value));
  return graph::ValueId{static_cast<std::uint32_t>(graph_.values.size() - 1)};
}

graph::ValueId TrainingStep::make(std::string name, const graph::SizePoly& bytes, graph::Lane lane) {
  return append({std::move(name), graph::DType::u8, std::vector{bytes}, lane, {}});
}

graph::ValueId TrainingStep::copy_of(graph::ValueId id) {
  graph::Value value = graph_.value(id);
  if (value.memory_of) value.memory_of = now(*value.memory_of);
  return append(std::move(value));
}

bool TrainingStep::needs(graph::ValueId id) const { return needs_.contains(id); }

graph::ValueId TrainingStep::now(graph::ValueId id) const {
  const auto found = again_.find(id);
  return found == again_.end() ? id : found->second;
}

std::int64_t TrainingStep::element_of(const graph::Value& value) const {
  return value.dtype ? graph::dtype_info(*value.dtype).block_bytes : element_;
}

bool TrainingStep::targeted(const BoundOp& op) {
  if (!lora() || op.line->op != "linear" || op.weights.empty() || op.weights[0].shape.size() != 2)
    return false;
  const std::string_view last = std::string_view(op.name).substr(op.name.rfind('.') + 1);
  if (!training_.targets.empty()) {
    if (std::ranges::find(training_.targets, last) == training_.targets.end()) return false;
    targets_met_.emplace(last);
    return true;
  }
  return op.turn != 0;  // what stands behind the layers is a head
}

// The operator's result, plus B(A(x)) of F32 weights: peft casts the input and keeps A's result.
void TrainingStep::add_adapter(const BoundOp& op, const assets::Scope& scope, graph::Op& lowered,
                               Kept& kept) {
  const auto size = [&](std::string_view name) {
    const auto found = scope.name(name).size();
    return found.value_or(graph::SizePoly(0));
  };
  const graph::SizePoly rows = size("n"), four(4), rank = bytes_poly(training_.rank);
  const graph::Shape& shape = op.weights[0].shape;
  const bool transposed =
      std::ranges::any_of(op.attributes, [](const auto& one) { return one.first == "layout"; });
  const std::uint64_t in = transposed ? shape.front() : shape.back(),
                      out = transposed ? shape.back() : shape.front();
  const auto keep = [&](const char* what, const graph::SizePoly& columns) {
    const graph::ValueId id = make(fmt::format("{}.{}", op.name, what),
                                   poly_product(four, poly_product(rows, columns)), graph::Lane::activation);
    lowered.outputs.push_back(id);
    kept.saved.push_back(id);
  };
  if (element_ < 4)
    keep("lora_x", bytes_poly(in));
  else
    kept.saved.push_back(lowered.inputs.front());
  keep("lora_A", rank);
  const graph::SizePoly result = poly_product(four, poly_product(rows, bytes_poly(out)));
  for (const char* part : {"lora_B", "lora_scaled"})
    lowered.temporaries.push_back(make(fmt::format("{}.{}", op.name, part), result, graph::Lane::temporary));
  kept.weights.push_back({op.name + ".lora_A", times(training_.rank, in), in, 4});
  kept.weights.push_back({op.name + ".lora_B", times(training_.rank, out), training_.rank, 4});
  // Backwards, the way through the adapter comes first: the gradient times the scaling, behind a copy of it
  // in F32; then the gradient of what the adapter was given. The larger of the two, beside that of the input.
  const std::uint64_t scaled = times(element_ < 4 ? 8 : 4, out), through = times(4, in);
  const std::uint64_t given = times(static_cast<std::uint64_t>(element_), in);
  kept.scratch.push_back(
      poly_product(rows, bytes_poly(std::max(through, scaled > given ? scaled - given : 0))));
  kept.scratch.push_back(poly_product(four, poly_product(rows, rank)));
}

void TrainingStep::save(const OpRule& rule, const assets::Scope& scope,
                        const std::vector<graph::ValueId>& inputs, graph::Op& lowered, Kept& kept) {
  for (const assets::Expression& one : *rule.saves) {
    const assets::Datum what = one.evaluate(scope);
    if (const std::string* const text = what.text()) {
      const std::string_view name = *text;
      const bool input = name.size() == 3 && name.starts_with("in") && name[2] >= '1' && name[2] <= '9';
      const auto number = input ? static_cast<std::size_t>(name[2] - '1') : 0;
      if (name == "out")
        kept.saved.push_back(lowered.outputs.at(0));
      else if (input && number < inputs.size())
        kept.saved.push_back(inputs[number]);
      else if (name == "unknown")
        unknown_.insert(lowered.kind);
      else if (!name.empty() && !input)
        one.place().fail("'{}' is neither 'in1', 'in2', 'out', 'unknown' nor bytes", safe_display(name, 40));
      continue;
    }
    const auto bytes = what.size();
    if (!bytes) one.place().fail("'{}' is not a size", one.text());
    if (*bytes == graph::SizePoly(0)) continue;
    const graph::ValueId id =
        make(fmt::format("{}.kept{}", lowered.kind, kept.saved.size()), *bytes, graph::Lane::activation);
    lowered.outputs.push_back(id);
    kept.saved.push_back(id);
  }
  for (const assets::Expression& one : rule.backward) {
    const auto bytes = one.evaluate(scope).size();
    if (!bytes) one.place().fail("'{}' is not a size", one.text());
    if (*bytes != graph::SizePoly(0)) kept.scratch.push_back(*bytes);
  }
}

void TrainingStep::add(const BoundOp& op, const assets::Scope& scope, std::size_t first, graph::Op& lowered) {
  Kept kept;
  kept.at = graph_.ops.size();
  kept.turn = op.turn;
  if (op.turn != 0) {
    if (turns_.size() < op.turn) turns_.resize(op.turn, {first, first});
    turns_[op.turn - 1].second = kept.at + 1;
  }
  const std::vector<graph::ValueId> inputs = lowered.inputs, outputs = lowered.outputs;
  for (const graph::ValueId id : inputs)
    if (needs(id) && std::ranges::find(kept.inputs, id) == kept.inputs.end()) kept.inputs.push_back(id);
  const bool own = !lora() && !op.weights.empty(), adapter = targeted(op);
  if (!own && !adapter && kept.inputs.empty()) return;
  const OpRule& rule = profile_.rule(op.line->op);
  if (!rule.saves)
    throw Error(ErrorCode::unsupported,
                "profile '{}' does not say what '{}' keeps for the backward pass of a training step",
                safe_display(profile_.id, 60), op.line->op);
  assets::Scope seen = scope;
  seen.name = [&](std::string_view name) {
    return name == "trained" ? assets::Datum(std::int64_t{own}) : scope.name(name);
  };
  save(rule, seen, inputs, lowered, kept);
  kept.passes = rule.passes.evaluate(seen).truth();
  if (own)
    for (const BoundWeight& weight : op.weights) {
      std::uint64_t elements = 1;
      for (const std::uint64_t side : weight.shape) elements = times(elements, side);
      kept.weights.push_back(
          {weight.name, elements, weight.shape.size() > 1 ? weight.shape.back() : 1, element_});
    }
  if (adapter) add_adapter(op, scope, lowered, kept);
  for (const graph::ValueId id : outputs) {
    needs_.insert(id);
    kept.outputs.push_back(id);
  }
  kept_.push_back(std::move(kept));
}

// --- The backward pass.

// Cross entropy of the logits: the logarithms stay for the backward pass. Causal models take it in F32.
void TrainingStep::add_loss(bool causal) {
  if (graph_.outputs.empty() || !needs(graph_.outputs.front()))
    throw Error(ErrorCode::unsupported,
                "nothing is trained: no trained weight takes part in the model's result");
  const graph::ValueId logits = graph_.outputs.front();
  const graph::Value value = graph_.value(logits);
  const std::int64_t element = element_of(value);
  const bool cast = causal && element < 4;
  graph::SizePoly bytes(causal ? 4 : element);
  for (const graph::SizePoly& side : *value.shape) bytes = poly_product(bytes, side);
  graph_.outputs.clear();
  graph::Op loss = {
      .kind = "loss", .name = "cross_entropy", .inputs = {logits}, .weights = {}, .outputs = {}};
  if (cast) loss.temporaries.push_back(make("logits as F32", bytes, graph::Lane::temporary));
  const graph::ValueId logarithms = make("log_softmax", bytes, graph::Lane::activation);
  loss.outputs = {logarithms};
  graph_.ops.push_back(std::move(loss));
  graph_.training->backward = static_cast<std::uint32_t>(graph_.ops.size());
  const graph::ValueId of_loss = make("nll.grad", bytes, graph::Lane::activation);
  const graph::ValueId of_logits = make("logits.grad", bytes, graph::Lane::activation);
  graph_.ops.push_back(
      {.kind = "nll.backward", .name = {}, .inputs = {logarithms}, .weights = {}, .outputs = {of_loss}});
  graph_.ops.push_back({.kind = "log_softmax.backward",
                        .name = {},
                        .inputs = {logarithms, of_loss},
                        .weights = {},
                        .outputs = {of_logits}});
  graph::ValueId gradient = of_logits;
  if (cast) {
    gradient = copy_of(logits);
    graph_.values.back().name += ".grad";
    graph_.ops.push_back(
        {.kind = "cast", .name = {}, .inputs = {of_logits}, .weights = {}, .outputs = {gradient}});
  }
  gradients_.emplace(logits, gradient);
}

// The forward pass of a layer once more, from what it was given.
void TrainingStep::run_again(std::uint32_t turn) {
  again_.clear();
  const auto [first, end] = turns_[turn - 1];
  const auto renew = [&](std::vector<graph::ValueId>& ids, bool made) {
    for (graph::ValueId& id : ids) {
      if (made && !again_.contains(id)) again_.emplace(id, copy_of(id));
      id = now(id);
    }
  };
  for (std::size_t i = first; i < end; ++i) {
    graph::Op op = graph_.ops[i];
    renew(op.inputs, false);
    renew(op.outputs, true);
    renew(op.temporaries, true);
    renew(op.held, false);
    graph_.ops.push_back(std::move(op));
  }
}

void TrainingStep::add_backward(const Kept& kept) {
  graph::Op op = {.kind = graph_.ops[kept.at].kind + ".backward",
                  .name = graph_.ops[kept.at].name,
                  .inputs = {},
                  .weights = {},
                  .outputs = {}};
  std::vector<graph::ValueId> given;
  for (const graph::ValueId id : kept.outputs)
    if (const auto found = gradients_.find(id); found != gradients_.end()) given.push_back(found->second);
  if (given.empty()) return;
  op.inputs = given;
  for (const graph::ValueId id : kept.saved) op.inputs.push_back(now(id));
  for (std::size_t i = 0; i < kept.inputs.size(); ++i) {
    const graph::ValueId id = kept.inputs[i];
    const auto known = gradients_.find(id);
    if (kept.passes && known == gradients_.end()) {  // each its own, or all the same
      gradients_.emplace(id, given.size() == kept.inputs.size() ? given[i] : given.front());
      continue;
    }
    if (known != gradients_.end()) {  // until their sum is there
      op.inputs.push_back(known->second);
      op.temporaries.push_back(copy_of(known->second));
      graph_.values.back().memory_of.reset();
    }
    if (kept.passes) continue;
    const graph::ValueId made = copy_of(id);
    graph::Value& value = graph_.values.back();
    value.name += ".grad";
    value.memory_of.reset();
    op.outputs.push_back(made);
    gradients_.emplace(id, made);
  }
  for (const Trained& weight : kept.weights) {
    const std::uint64_t bytes = times(weight.elements, static_cast<std::uint64_t>(weight.width));
    const bool known = own_.contains(weight.name);
    const graph::ValueId made = make(weight.name + ".grad", bytes_poly(bytes),
                                     known ? graph::Lane::temporary : graph::Lane::activation);
    if (known) {  // a tied weight: beside the first gradient and their sum
      op.temporaries.push_back(made);
      op.temporaries.push_back(make(weight.name + ".grad", bytes_poly(bytes), graph::Lane::temporary));
      continue;
    }
    own_.emplace(weight.name, made);
    op.outputs.push_back(made);
    graph_.outputs.push_back(made);
    graph_.training->parameters = sum(graph_.training->parameters, weight.elements);
    graph_.training->gradient_bytes = sum(graph_.training->gradient_bytes, bytes);
    if (lora()) graph_.training->adapter_bytes = sum(graph_.training->adapter_bytes, bytes);
  }
  for (const graph::SizePoly& bytes : kept.scratch)
    op.temporaries.push_back(make(op.kind, bytes, graph::Lane::temporary));
  graph_.ops.push_back(std::move(op));
}

// --- The update.

namespace {

// What an optimizer keeps of a weight from step to step; bytes.
std::uint64_t state_bytes(Optimizer optimizer, std::uint64_t elements, std::uint64_t columns,
                          std::uint64_t width) {
  switch (optimizer) {
    case Optimizer::adamw:
    case Optimizer::adamw_fused:
      return sum(times(2 * width, elements), 4);  // and the number of the step
    case Optimizer::adamw_8bit: {
      // two states of a byte each with a factor for each 256; small weights in F32
      constexpr std::uint64_t kLeast = 4096, kBlock = 256;
      if (elements < kLeast) return times(8, elements);
      return sum(times(2, elements), times(8, elements / kBlock + (elements % kBlock != 0)));
    }
    case Optimizer::sgd:
      return 0;
    case Optimizer::momentum:
      return times(width, elements);
    case Optimizer::adafactor:
      return sum(4, times(width, columns > 1 ? elements / columns + columns : elements));
  }
  return 0;
}

}  // namespace

void TrainingStep::add_update() {
  graph_.training->update = static_cast<std::uint32_t>(graph_.ops.size());
  graph::Op update = {.kind = "update",
                      .name = std::string(optimizer_id(optimizer_)),
                      .inputs = {},
                      .weights = {},
                      .outputs = {}};
  std::uint64_t pair = 0, last = 0;  // bytes of two weights in a row: a loop still holds the one before
  std::set<std::string_view> met;
  for (const Kept& kept : kept_)
    for (const Trained& weight : kept.weights) {
      if (!own_.contains(weight.name) || !met.insert(weight.name).second) continue;
      const std::uint64_t own = times(weight.elements, static_cast<std::uint64_t>(weight.width));
      pair = std::max(pair, sum(own, std::exchange(last, own)));
      update.inputs.push_back(own_.at(weight.name));
      const std::uint64_t bytes =
          state_bytes(optimizer_, weight.elements, weight.columns, static_cast<std::uint64_t>(weight.width));
      const auto stays = [&](const char* what, std::uint64_t size) {
        if (size == 0) return;
        const graph::ValueId id = make(weight.name + what, bytes_poly(size), graph::Lane::activation);
        graph_.inputs.push_back(id);
        graph_.outputs.push_back(id);
      };
      stays(".state", bytes);
      if (lora()) stays("", own);
      graph_.training->state_bytes = sum(graph_.training->state_bytes, bytes);
    }
  // torch's AdamW takes the roots of all second moments at once
  const std::uint64_t roots = graph_.training->gradient_bytes;
  if (optimizer_ == Optimizer::adamw)
    update.temporaries.push_back(make("roots of second moments", bytes_poly(roots), graph::Lane::temporary));
  if (optimizer_ == Optimizer::adafactor)
    update.temporaries.push_back(make("updates of two weights", bytes_poly(pair), graph::Lane::temporary));
  graph_.ops.push_back(std::move(update));
}

void TrainingStep::add_dropout(const ModelConfig& config) {
  for (const Setting& setting : config.settings()) {
    const bool of_heads = setting.name.starts_with("classifier_") || setting.name.starts_with("summary_");
    if (of_heads || setting.name.find("drop") == std::string::npos) continue;
    const assets::Datum value = config.get(setting.name);
    if (value.real() != nullptr || (value.number() != nullptr && *value.number() > 0))
      graph_.unaccounted.push_back(fmt::format("{} {}", setting.name, setting.shown));
  }
}

void TrainingStep::finish(const ModelConfig& config) {
  add_dropout(config);
  for (const std::string& target : training_.targets)
    if (lora() && !targets_met_.contains(target))
      throw Error(ErrorCode::usage, "no linear layer is called '{}'", safe_display(target, 60));
  graph_.unaccounted.insert(graph_.unaccounted.end(), unknown_.begin(), unknown_.end());
  graph_.training.emplace().type = activation_;
  const std::vector<std::string> classes = config.architectures();
  const std::string_view name = classes.empty() ? std::string_view("ForCausalLM") : classes.front();
  const bool causal = name.ends_with("ForCausalLM") || name.ends_with("LMHeadModel");
  constexpr std::array<std::string_view, 3> kCrossEntropy = {"ForMaskedLM", "ForSequenceClassification",
                                                             "ForTokenClassification"};
  if (!causal && std::ranges::none_of(kCrossEntropy, [&](auto end) { return name.ends_with(end); }))
    graph_.unaccounted.push_back(fmt::format("the loss of {}", name));
  add_loss(causal);
  for (auto kept = kept_.rbegin(); kept != kept_.rend(); ++kept) {
    const bool entered = training_.checkpoints && kept->turn != 0 &&
                         (kept == kept_.rbegin() || (kept - 1)->turn != kept->turn);
    if (entered) run_again(kept->turn);
    if (kept->turn == 0) again_.clear();
    add_backward(*kept);
  }
  add_update();
}

}  // namespace loadline::forward
