// Reads the claims of a bound model; puts a GGUF file's tensors in the places of a checkpoint's; counts
// parameters.
#include "core/forward/model/expected_tensors.h"

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/forward/family/settings.h"
#include "core/forward/family/tensor_names.h"
#include "core/forward/gguf/gguf_map.h"
#include "core/forward/model/known_models.h"
#include "core/graph/names/file_names.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::forward {

// --- Binds the architecture to the model, without a profile, and reads the claims.

std::string doubts(const BoundModel& bound, const graph::MetaGraph& graph) {
  const Claims& claims = bound.claims;
  if (!claims.missing.empty())
    return fmt::format("architecture '{}' asks for {} that the files do not hold, {} first",
                       bound.architecture->family, counted(claims.missing.size(), "tensor"),
                       safe_display(claims.missing.front(), 100));
  if (!claims.disagreements.empty())
    return fmt::format("tensor '{}': {}", safe_display(claims.disagreements.front().tensor.value_or(""), 100),
                       claims.disagreements.front().text);
  constexpr std::uint64_t kHundredth = 100;
  if (claims.unclaimed_bytes > graph::storage_bytes(graph) / kHundredth)
    return fmt::format("architecture '{}' leaves {} of {} unexplained", bound.architecture->family,
                       format_bytes(claims.unclaimed_bytes), format_bytes(graph::storage_bytes(graph)));
  return "";
}

namespace {

void claim(ModelClaims& result, const graph::MetaGraph& graph, BoundModel bound, std::uint64_t parameters) {
  result.family = bound.architecture->family;
  if (doubts(bound, graph).empty()) result.parameters = parameters;
  const std::unordered_set<std::string_view> known(graph.missing.begin(), graph.missing.end());
  for (std::string& name : bound.claims.missing)
    if (!known.contains(name)) result.missing.push_back(std::move(name));
  result.unclaimed = std::move(bound.claims.unclaimed);
  result.notes = std::move(bound.claims.disagreements);
  result.unaccounted = std::move(bound.unaccounted);
  std::vector<std::string> parts = left_out(*bound.architecture, bound.config);
  for (const std::string& part : parts)
    result.notes.push_back(graph::make_note(graph::Severity::info, {}, "{} is not described: text model only",
                                            safe_display(part, 60)));
  if (graph.format != "config") return;
  // what a class puts on top of a family of other classes cannot be counted
  const std::vector<std::string> classes = bound.config.architectures();
  const std::vector<std::string>& described = bound.architecture->classes;
  if (parts.empty() && !classes.empty() && std::ranges::find(described, classes.front()) == described.end())
    parts.push_back("what is special to " + safe_display(classes.front(), 60));
  result.without = std::move(parts);
}

}  // namespace

std::string but_for_text(const ModelClaims& claims) {
  return claims.unaccounted.empty() ? "" : ", known but for " + settings_text(claims.unaccounted);
}

std::string without_text(const ModelClaims& claims) {
  return claims.without.empty() ? "" : ", without " + join_names(claims.without, 4);
}

ModelClaims model_claims(const graph::MetaGraph& graph, const ForwardAssets& assets) {
  ModelClaims result;
  result.missing = graph.missing;
  const std::string* const json = graph::find_text(graph, graph::kConfigKey);
  try {
    // an ONNX export beside a config.json names its tensors differently
    const bool checkpoint = !graph.forward && graph.format != "onnx" && graph.format != "gguf";
    if (const auto config = gguf_config(graph)) {
      GgufBinding binding = bind_gguf(*config, graph, assets);
      claim(result, graph, std::move(binding.bound), binding.parameters);
    } else if (json != nullptr && checkpoint) {
      const ModelConfig config_json(*json, std::string(graph::kConfigKey));
      if (const Architecture* const architecture = assets.architecture(config_json)) {
        BoundModel bound = bind_architecture(*architecture, config_json, &graph);
        const std::uint64_t count = parameters(bound, graph);
        claim(result, graph, std::move(bound), count);
      }
    }
  } catch (const Error& error) {
    result.notes.push_back({graph::Severity::info, {}, error.what()});
  }
  if (result.parameters == 0) result.parameters = graph::parameter_count(graph);
  return result;
}

std::shared_ptr<const ModelClaims> ClaimsOnce::get() const {
  once_.run([&] { claims_ = std::make_shared<const ModelClaims>(model_claims(*graph_, *assets_)); });
  return claims_;
}

std::string lacking_text(const graph::MetaGraph& graph, const ModelClaims& claims) {
  if (graph.tensors.empty()) return "it has no tensors";
  if (claims.missing.empty()) return "";
  return fmt::format(
      "{} missing that its settings ask for: {}",
      claims.missing.size() == 1 ? "1 tensor is" : fmt::format("{} tensors are", claims.missing.size()),
      join_names(claims.missing, 3));
}

// --- Binds the architecture to the tensors of a checkpoint that would become this file, then puts the file's
// tensors in their places.

namespace {

using Sides = std::vector<std::uint64_t>;

// Tensors that writers may put into one: the converter's options --fuse-qkv and --fuse-gate-up-exps, and
// files from before latent attention was split for absorption.
struct Fused {
  std::string_view whole;
  std::array<std::string_view, 3> parts;
};
constexpr Fused kFused[] = {
    {"attn_qkv", {"attn_q", "attn_k", "attn_v"}},
    {"ffn_gate_up", {"ffn_gate", "ffn_up"}},
    {"ffn_gate_up_exps", {"ffn_gate_exps", "ffn_up_exps"}},
    {"attn_kv_b", {"attn_k_b", "attn_v_b"}},
};
constexpr std::string_view kExperts = "_exps";  // older files: one tensor for each expert, "ffn_up.3"

// "blk.3.attn_q.weight": "blk.3.", "attn_q", ".weight"
struct NameParts {
  std::string_view before, base, ending;

  explicit NameParts(std::string_view name) {
    const std::size_t dot = name.rfind('.');
    ending = dot == std::string_view::npos ? std::string_view() : name.substr(dot);
    name.remove_suffix(ending.size());
    const std::size_t last = name.rfind('.');
    base = last == std::string_view::npos ? name : name.substr(last + 1);
    before = name.substr(0, name.size() - base.size());
  }
  std::string with(std::string_view other) const { return fmt::format("{}{}{}", before, other, ending); }
};

// The shape of what the steps give.
class MappedShape {
 public:
  MappedShape(const graph::MetaGraph& checkpoint, const MappedTensor& tensor)
      : checkpoint_(checkpoint), tensor_(tensor) {}

  Sides shape() {
    for (const NameStep& step : tensor_.steps) shapes_.push_back(of(step));
    return std::move(shapes_.back());
  }

 private:
  Sides of(const NameStep& step) const {
    if (step.kind == NameStepKind::source) return checkpoint_.tensor(step.tensor).shape.vector();
    if (step.kind == NameStepKind::values) return {step.values.size()};
    Sides sides = shapes_[step.inputs.front()];
    switch (step.kind) {
      case NameStepKind::stack:
        sides.insert(sides.begin(), step.inputs.size());
        break;
      case NameStepKind::join:
        for (std::size_t i = 1; i < step.inputs.size(); ++i)
          side(sides, 0) += shapes_[step.inputs[i]].empty() ? 0 : shapes_[step.inputs[i]].front();
        break;
      case NameStepKind::part:
        side(sides, number(step, 0)) = number(step, 2);
        break;
      case NameStepKind::half:
        side(sides, number(step, 0)) /= 2;
        break;
      case NameStepKind::shape:
        return {step.arguments.begin(), step.arguments.end()};
      case NameStepKind::transpose:
        if (sides.size() > 1) std::swap(sides[sides.size() - 1], sides[sides.size() - 2]);
        break;
      default:  // rows in another order, or other numbers
        break;
    }
    return sides;
  }
  static std::uint64_t number(const NameStep& step, std::size_t i) {
    return static_cast<std::uint64_t>(step.arguments[i]);
  }
  std::uint64_t& side(Sides& sides, std::uint64_t axis) const {
    if (axis >= sides.size())
      throw Error(ErrorCode::malformed, {.tensor = tensor_.name}, "there is no dimension {} of {}", axis,
                  sides.size());
    return sides[axis];
  }

  const graph::MetaGraph& checkpoint_;
  const MappedTensor& tensor_;
  std::vector<Sides> shapes_;
};

std::uint64_t product(const Sides& sides) { return graph::element_count(graph::Shape(sides)).value_or(0); }

Sides without_ones(Sides sides) {
  std::erase(sides, 1u);
  return sides;
}

class GgufBinder {
 public:
  GgufBinder(const GgufConfig& config, const graph::MetaGraph& graph, const ForwardAssets& assets)
      : keys_(config),
        graph_(graph),
        path_(graph.files.empty() ? "" : graph.files.front().path),
        config_(config.json, path_),
        architecture_(assets.architecture(config_)),
        file_(graph, {}),
        asked_of_(graph.tensors.size(), 0) {
    if (architecture_ == nullptr)
      throw config_.fail(
          fmt::format(
              "no asset describes the operators of '{}'",
              safe_display(
                  config_.model_type().empty() ? "a model without 'model_type'" : config_.model_type(), 60)),
          ErrorCode::unsupported);
    checkpoint_ = config_graph(config.json, path_, assets);
  }

  GgufBinding bind(const std::vector<std::pair<std::string, assets::Datum>>& flags) {
    const GgufMap map = map_to_gguf(*keys_.family, config_, checkpoint_);
    for (const MappedTensor& tensor : map.tensors) place(tensor);
    compare_fused();
    keep_present();
    GgufBinding result{bind_architecture(*architecture_, config_, &checkpoint_, flags)};
    result.parameters = loadline::forward::parameters(result.bound, checkpoint_);
    for (const std::string& name : map.dropped) lost_.try_emplace(name);
    translate(result.bound);
    for (const auto* others : {&result.bound.claims.unclaimed, &result.bound.claims.ignored})
      for (const graph::TensorId id : *others)
        if (!from_checkpoint_[graph::index(id)])
          result.parameters =
              checked_add(result.parameters, graph::elements(graph_.tensor(id))).value_or(UINT64_MAX);
    return result;
  }

 private:
  // The file's tensors that hold a mapped one, together with others perhaps. None if they are missing.
  std::vector<graph::TensorId> find(const std::string& name) const {
    if (const auto id = file_.find(name)) return {*id};
    const NameParts parts(name);
    for (const Fused& fused : kFused) {
      const bool is_part = std::ranges::find(fused.parts, parts.base) != fused.parts.end();
      if (const auto id = is_part ? file_.find(parts.with(fused.whole)) : std::nullopt) return {*id};
      if (parts.base != fused.whole) continue;
      std::vector<graph::TensorId> found;
      for (const std::string_view part : fused.parts)
        if (const auto id = part.empty() ? std::nullopt : file_.find(parts.with(part))) found.push_back(*id);
      if (!found.empty()) return found;
    }
    std::vector<graph::TensorId> experts;
    if (parts.base.ends_with(kExperts)) {
      const std::string_view one = parts.base.substr(0, parts.base.size() - kExperts.size());
      while (const auto id = file_.find(parts.with(fmt::format("{}.{}", one, experts.size()))))
        experts.push_back(*id);
    }
    return experts;
  }

  void place(const MappedTensor& mapped) {
    stored_.resize(checkpoint_.tensors.size());
    lacking_.resize(checkpoint_.tensors.size(), false);
    const std::vector<graph::TensorId> found = find(mapped.name);
    const Sides asked = MappedShape(checkpoint_, mapped).shape();
    for (const graph::TensorId id : found)
      asked_of_[graph::index(id)] += found.size() == 1 ? product(asked) : 0;
    if (found.size() == 1 && graph_.tensor(found.front()).name.view() == mapped.name) {
      const Sides has = graph_.tensor(found.front()).shape.vector();
      if (without_ones(has) != without_ones(asked)) disagree(found.front(), asked, has);
    }
    if (found.size() > 1) compare_parts(mapped, found, product(asked));
    bool computed = true;
    for (const NameStep& step : mapped.steps) {
      if (step.kind != NameStepKind::source) continue;
      computed = false;
      std::vector<graph::TensorId>& stored = stored_[graph::index(step.tensor)];
      if (found.empty()) {
        lacking_[graph::index(step.tensor)] = true;
        lost_.try_emplace(checkpoint_.tensor(step.tensor).name.str(), mapped.name);
      }
      for (const graph::TensorId id : found)
        if (std::ranges::find(stored, id) == stored.end()) stored.push_back(id);
    }
    if (computed) extra_.insert(extra_.end(), found.begin(), found.end());
  }

  void disagree(graph::TensorId id, const Sides& asked, const Sides& has) {
    disagreements_.push_back(graph::make_note(graph::Severity::warning, graph_.tensor(id).name.str(),
                                              "the file's keys say [{}], the tensor has [{}]",
                                              fmt::format("{}", fmt::join(asked, ",")),
                                              fmt::format("{}", fmt::join(has, ","))));
  }
  void disagree(const std::string& name, std::uint64_t asked, std::uint64_t has) {
    disagreements_.push_back(graph::make_note(
        graph::Severity::warning, name, "the file's keys say {} elements, the tensors have {}", asked, has));
  }

  void compare_parts(const MappedTensor& mapped, const std::vector<graph::TensorId>& found,
                     std::uint64_t asked) {
    std::uint64_t has = 0;
    for (const graph::TensorId id : found)
      has = checked_add(has, graph::elements(graph_.tensor(id))).value_or(UINT64_MAX);
    if (has != asked) disagree(mapped.name, asked, has);
  }
  // A tensor that holds several mapped ones has as many elements as they have together.
  void compare_fused() {
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
      const NameParts parts(graph_.tensors[i].name.view());
      const std::uint64_t has = graph::elements(graph_.tensors[i]);
      if (asked_of_[i] == 0 || asked_of_[i] == has) continue;
      if (std::ranges::find(kFused, parts.base, &Fused::whole) != std::end(kFused))
        disagree(graph_.tensors[i].name.str(), asked_of_[i], has);
    }
  }

  // Leaves out the tensors of the checkpoint that the file does not hold, or only a part of.
  void keep_present() {
    std::vector<graph::Tensor> kept;
    std::vector<std::vector<graph::TensorId>> stored;
    from_checkpoint_.assign(graph_.tensors.size(), false);
    for (std::size_t i = 0; i < checkpoint_.tensors.size(); ++i) {
      if (stored_[i].empty() || lacking_[i]) continue;
      for (const graph::TensorId id : stored_[i]) from_checkpoint_[graph::index(id)] = true;
      kept.push_back(std::move(checkpoint_.tensors[i]));
      stored.push_back(std::move(stored_[i]));
    }
    checkpoint_.tensors = std::move(kept);
    checkpoint_.logical.clear();
    stored_ = std::move(stored);
  }

  // A missing tensor is named as in the file; what the file has no place for is not missing.
  std::vector<std::string> missing(const std::vector<std::string>& of) const {
    std::vector<std::string> names;
    for (const std::string& name : of) {
      const auto lost = lost_.find(name);
      if (lost == lost_.end())
        names.push_back(name);
      else if (!lost->second.empty() && std::ranges::find(names, lost->second) == names.end())
        names.push_back(lost->second);
    }
    return names;
  }

  void translate(BoundModel& bound) const {
    for (BoundOp& op : bound.ops)
      for (BoundWeight& weight : op.weights) translate(weight);
    for (BoundWeight& weight : bound.stored) translate(weight);
    Claims& claims = bound.claims;
    claims.missing = missing(claims.missing);
    claims.disagreements.insert(claims.disagreements.end(), disagreements_.begin(), disagreements_.end());
    const std::vector<graph::TensorId> ignored = file_ids(claims.ignored), other = file_ids(claims.unclaimed);
    claims.ignored = ignored;
    claims.extra = file_ids(claims.extra);
    claims.extra.insert(claims.extra.end(), extra_.begin(), extra_.end());
    std::vector<bool> explained = from_checkpoint_;
    for (const graph::TensorId id : other) explained[graph::index(id)] = false;
    for (const graph::TensorId id : extra_) explained[graph::index(id)] = true;
    claims.unclaimed.clear();
    claims.unclaimed_bytes = 0;
    for (std::size_t i = 0; i < graph_.tensors.size(); ++i) {
      if (explained[i]) continue;
      if (is_beside(graph_.tensors[i])) {
        claims.ignored.push_back(graph::TensorId{static_cast<std::uint32_t>(i)});
        continue;
      }
      claims.unclaimed.push_back(graph::TensorId{static_cast<std::uint32_t>(i)});
      claims.unclaimed_bytes += graph::tensor_bytes(graph_, graph_.tensors[i]);
    }
  }

  // Whether it is of a file that goes with the model: a projector or a draft model.
  bool is_beside(const graph::Tensor& tensor) const {
    const graph::FileId file = graph_.storage(tensor.storage).file;
    return !graph::set_role(graph_, file).empty();
  }

  void translate(BoundWeight& weight) const {
    if (!weight.tensor) return;
    const std::vector<graph::TensorId>& stored = stored_[graph::index(*weight.tensor)];
    weight.tensor = stored.front();
    weight.companions.assign(stored.begin() + 1, stored.end());
    weight.name = graph_.tensor(stored.front()).name.str();
    weight.dtype = graph_.tensor(stored.front()).dtype;
  }
  std::vector<graph::TensorId> file_ids(const std::vector<graph::TensorId>& of) const {
    std::vector<graph::TensorId> ids;
    for (const graph::TensorId id : of)
      ids.insert(ids.end(), stored_[graph::index(id)].begin(), stored_[graph::index(id)].end());
    return ids;
  }

  const GgufConfig& keys_;
  const graph::MetaGraph& graph_;
  std::string path_;
  ModelConfig config_;
  const Architecture* architecture_;
  graph::MetaGraph checkpoint_;
  Header file_;
  std::vector<std::vector<graph::TensorId>> stored_;  // of the checkpoint's tensors: those of the file
  std::vector<bool> lacking_;                         // a part of the checkpoint's tensor is missing
  std::vector<bool> from_checkpoint_;                 // of the file's tensors
  std::vector<std::uint64_t> asked_of_;  // of the file's tensors: elements that the map puts there
  std::unordered_map<std::string, std::string> lost_;  // by name in a checkpoint: the name that is missing in
                                                       // the file, or none if it never has a place
  std::vector<graph::TensorId> extra_;                 // computed from the configuration
  std::vector<graph::Note> disagreements_;
};

}  // namespace

std::vector<std::pair<std::string, assets::Datum>> flags_for(
    const GgufConfig& config, std::vector<std::pair<std::string, assets::Datum>> flags) {
  for (auto& [name, value] : flags)
    for (const auto& [own, chosen] : config.flags)
      if (own == name) value = chosen;
  return flags;
}

GgufBinding bind_gguf(const GgufConfig& config, const graph::MetaGraph& graph, const ForwardAssets& assets,
                      const std::vector<std::pair<std::string, assets::Datum>>& flags) {
  GgufBinding binding = GgufBinder(config, graph, assets).bind(flags_for(config, flags));
  std::ranges::copy(config.unread, std::back_inserter(binding.bound.unaccounted));
  return binding;
}

// --- Sums the weights of operators, and the tensors that the architecture does not describe.

namespace {

bool is_scale(std::string_view name) {
  constexpr std::array<std::string_view, 3> kEndings = {".weight_scale_inv", ".weight_scale", "_scales"};
  return std::ranges::any_of(kEndings, [&](std::string_view ending) { return name.ends_with(ending); });
}

// A sum of elements that counts each weight once, at its first name.
class Sum {
 public:
  explicit Sum(const graph::MetaGraph& graph) : graph_(graph) {}

  void add(const BoundWeight& weight) {
    if (is_scale(weight.name)) return;
    if (weight.tensor ? !first_at(*weight.tensor) : !names_.insert(weight.name).second) return;
    const bool packed = weight.dtype == graph::DType::u8 && weight.name.ends_with("_blocks");
    add(graph::element_count(weight.shape).value_or(0));
    if (packed) add(graph::element_count(weight.shape).value_or(0));
  }
  void add(graph::TensorId id) {
    const graph::Tensor& tensor = graph_.tensor(id);
    if (!is_scale(tensor.name) && first_at(id)) add(graph::elements(tensor));
  }
  std::uint64_t value() const { return sum_; }

 private:
  void add(std::uint64_t count) { sum_ = checked_add(sum_, count).value_or(UINT64_MAX); }
  bool first_at(graph::TensorId id) {
    const graph::Tensor& tensor = graph_.tensor(id);
    return places_.emplace(graph::index(tensor.storage), tensor.offset).second;
  }

  const graph::MetaGraph& graph_;
  std::set<std::pair<std::size_t, std::uint64_t>> places_;
  std::unordered_set<std::string_view> names_;
  std::uint64_t sum_ = 0;
};

}  // namespace

std::uint64_t parameters(const BoundModel& model, const graph::MetaGraph& graph) {
  Sum sum(graph);
  for (const BoundOp& op : model.ops)
    for (const BoundWeight& weight : op.weights) sum.add(weight);
  for (const graph::TensorId id : model.claims.ignored) sum.add(id);
  for (const graph::TensorId id : model.claims.unclaimed) sum.add(id);
  return sum.value();
}

}  // namespace loadline::forward
