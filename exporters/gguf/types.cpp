// Chooses types by policy and by the user's rules, and ends each recipe in its type.
#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/convert/numbers/elements.h"
#include "core/convert/numbers/quantize.h"
#include "core/graph/names/tensor_names.h"
#include "core/graph/packed/quantization.h"
#include "core/io/graph_reader.h"
#include "exporters/exporter.h"
#include "exporters/gguf/gguf.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::exporters {
namespace {

constexpr std::uint32_t kQuantizationVersion = 2;
constexpr std::size_t kMostNamed = 3;

// As llama.cpp's loader names a file by the type of most of its tensors (llama_ftype of llama.h).
struct FileTypeRow {
  graph::DType dtype;
  std::uint32_t number;
};
constexpr std::array<FileTypeRow, 20> kFileTypes = {
    {{graph::DType::f32, 0},     {graph::DType::f16, 1},    {graph::DType::q4_0, 2},
     {graph::DType::q4_1, 3},    {graph::DType::q8_0, 7},   {graph::DType::q5_0, 8},
     {graph::DType::q5_1, 9},    {graph::DType::q2_k, 10},  {graph::DType::q3_k, 12},
     {graph::DType::q4_k, 15},   {graph::DType::q5_k, 17},  {graph::DType::q6_k, 18},
     {graph::DType::iq4_nl, 25}, {graph::DType::iq3_s, 26}, {graph::DType::iq4_xs, 30},
     {graph::DType::bf16, 32},   {graph::DType::tq1_0, 36}, {graph::DType::tq2_0, 37},
     {graph::DType::mxfp4, 38},  {graph::DType::nvfp4, 39}}};

bool is_block(graph::DType dtype) { return graph::dtype_info(dtype).kind == graph::DTypeKind::block; }

// How many matrices a tensor stacks: experts.
std::uint64_t depth_of(const graph::Shape& shape) { return shape.size() < 3 ? 1 : shape[shape.size() - 3]; }

bool is_embedding(std::string_view name) {
  return name == "token_embd.weight" || name == "per_layer_token_embd.weight";
}

forward::TypePolicyPtr common_policy() {
  return forward::common_type_policy(forward::built_in_type_policies());
}

class TypeChooser {
 public:
  TypeChooser(const graph::MetaGraph& graph, std::vector<SlotDraft> drafts,
              const std::optional<forward::PolicyModel>& names, const ExportOptions& options)
      : graph_(graph),
        drafts_(std::move(drafts)),
        names_(names),
        options_(options),
        common_(common_policy()) {
    if (options.policy != nullptr && !names && !options.policy->plain) {
      const bool chosen = options.keep_names.value_or(false);
      const Error error(
          ErrorCode::unsupported,
          "the types of {} go by llama.cpp's names of tensors, and this output keeps the model's own{}",
          options.policy->name,
          chosen || graph::find_text(graph, graph::kConfigKey) != nullptr
              ? ""
              : ": no config.json lies beside the weights");
      throw chosen ? error.with({"names", "auto"}) : error;
    }
  }

  TypedSlots choose() {
    std::vector<std::optional<graph::DType>> types = types_of_policy();
    apply_rules(types);
    for (std::size_t i = 0; i < types.size(); ++i)
      result_.slots.push_back(types[i] ? typed(std::move(drafts_[i]), *types[i])
                                       : plain_slot(std::move(drafts_[i]), options_.outtype));
    check_total(result_.slots);
    add_notes();
    add_keys();
    return std::move(result_);
  }

 private:
  const forward::TypePolicy& policy() const {
    return options_.policy != nullptr ? *options_.policy : *common_;
  }

  static forward::PolicyTensor tensor_of(const Slot& slot) { return {slot.name.view(), slot.shape}; }

  // Whether it may get another type.
  bool changes(const Slot& slot) const {
    if (!convert::can_cast(slot.dtype, graph::DType::f32)) return false;
    if (names_) return forward::may_change(policy(), tensor_of(slot));
    const auto long_sides = std::ranges::count_if(slot.shape, [](std::uint64_t side) { return side != 1; });
    return long_sides > 1 && lower_case(slot.name.view()).find("norm") == std::string::npos;
  }

  std::vector<std::optional<graph::DType>> types_of_policy() const {
    std::vector<std::optional<graph::DType>> types(drafts_.size());
    if (options_.policy == nullptr) return types;
    if (names_) {
      std::vector<forward::PolicyTensor> tensors;
      for (const SlotDraft& draft : drafts_) tensors.push_back(tensor_of(draft.floats));
      types = forward::policy_types(policy(), *names_, tensors);
    } else {
      std::ranges::fill(types, policy().plain);
    }
    for (std::size_t i = 0; i < drafts_.size(); ++i)
      if (!changes(drafts_[i].floats)) types[i].reset();
    return types;
  }

  // The tensors as filters see them: names of the output, types and sizes without a choice of types.
  graph::MetaGraph shown() const {
    graph::MetaGraph graph;
    for (const SlotDraft& draft : drafts_) {
      const Slot slot = plain_slot(draft, options_.outtype);
      const graph::StorageId storage = graph.add_storage(graph::shapes_only_storage(slot.bytes));
      graph.tensors.push_back({slot.name, slot.dtype, slot.shape, {}, storage, 0});
    }
    return graph;
  }

  void apply_rules(std::vector<std::optional<graph::DType>>& types) {
    if (options_.types.empty()) return;
    const graph::MetaGraph graph = shown();
    for (const TypeRule& rule : options_.types) {
      bool any = false;
      for (const graph::TensorId id : graph::TensorFilter(rule.filter).select(graph)) {
        if (!changes(drafts_[graph::index(id)].floats)) continue;
        types[graph::index(id)] = rule.type;
        any = true;
      }
      if (!any)
        result_.notes.push_back(graph::make_note(graph::Severity::warning, {},
                                                 "no tensor whose type can change matches '{}'",
                                                 safe_display(rule.filter, 100)));
    }
  }

  Slot typed(SlotDraft draft, graph::DType wanted) {
    Slot& slot = draft.floats;
    const std::uint64_t columns = slot.shape.empty() ? 1 : slot.shape.back();
    const graph::DType type = forward::fitting_type(policy(), wanted, columns);
    if (type != wanted) ++fallbacks_[{wanted, type}];
    if (draft.blocks && draft.blocks->dtype == type && draft.blocks->shape == slot.shape)
      return std::move(*draft.blocks);
    if (convert::is_cast_target(type)) return cast_slot(std::move(slot), type);
    if (!convert::can_quantize(type))
      throw Error(ErrorCode::unsupported, {.tensor = slot.name.str()}, "cannot be written as {}",
                  graph::dtype_info(type).name);
    if (const graph::DType source = stored_dtype(graph_, slot); is_block(source)) again_.insert(source);
    if (!convert::is_cast_target(slot.dtype)) slot = cast_slot(std::move(slot), graph::DType::f32);
    auto weights = importance(slot, type);
    return slot_then(std::move(slot),
                     {.kind = convert::StepKind::quantize, .dtype = type, .importance = std::move(weights)},
                     type);
  }

  // What the importance matrix says of a tensor, or null.
  const graph::TensorImportance* entry_of(const Slot& slot) const {
    const auto& entries = options_.importance->matrix.tensors;
    const auto entry =
        std::ranges::lower_bound(entries, slot.name.view(), {}, &graph::TensorImportance::name);
    return entry != entries.end() && entry->name == slot.name.view() ? &*entry : nullptr;
  }

  std::shared_ptr<const graph::TensorImportance> importance(const Slot& slot, graph::DType type) {
    if (options_.importance == nullptr || !convert::heeds_importance(type)) return nullptr;
    const graph::TensorImportance* const entry = entry_of(slot);
    const auto expected = checked_mul(slot.shape.back(), depth_of(slot.shape));
    const bool fits = entry != nullptr && expected == entry->weights.size();
    if (entry != nullptr && !fits && !is_embedding(slot.name.view()))
      throw Error(ErrorCode::malformed, {.file = options_.importance->path, .tensor = slot.name.str()},
                  "has {} weights, the tensor needs {}: {} columns of {} matrices", entry->weights.size(),
                  expected.value_or(0), slot.shape.back(), depth_of(slot.shape));
    if (!fits) {
      without_importance_.push_back(slot.name.str());
      return nullptr;
    }
    ++with_importance_;
    return {options_.importance, entry};
  }

  void add_notes() {
    std::vector<std::string> words;
    std::uint64_t count = 0;
    for (const auto& [types, tensors] : fallbacks_) {
      words.push_back(fmt::format("{} become {}", graph::dtype_info(types.first).name,
                                  graph::dtype_info(types.second).name));
      count += tensors;
    }
    if (count > 0)
      say("the rows of {} do not divide into blocks of the type: {}", counted(count, "tensor"),
          fmt::join(words, ", "));
    words.clear();
    for (const graph::DType type : again_) words.emplace_back(graph::dtype_info(type).name);
    if (!words.empty())
      say("weights that are already quantized ({}) are quantized again, which loses more than quantizing the "
          "original",
          fmt::join(words, ", "));
    if (options_.importance == nullptr) return;
    const std::string file = safe_display(options_.importance->path, 100);
    if (std::ranges::none_of(result_.slots, [&](const Slot& slot) { return entry_of(slot) != nullptr; }))
      throw Error(ErrorCode::unsupported, {.file = options_.importance->path},
                  "has no entry for any of the {} tensors of the output", result_.slots.size());
    if (with_importance_ == 0 && without_importance_.empty())
      say("the importance matrix '{}' changes nothing: no tensor gets a type that uses it", file);
    else if (!without_importance_.empty())
      say("the importance matrix '{}' has no weights for {}: {}", file,
          counted(without_importance_.size(), "tensor"), join_names(without_importance_, kMostNamed));
  }

  template <typename... Values>
  void say(fmt::format_string<Values...> text, const Values&... values) {
    result_.notes.push_back(graph::make_note(graph::Severity::info, {}, text, values...));
  }

  void add_keys() {
    if (options_.policy != nullptr && options_.policy->file_type)
      result_.keys.push_back({"general.file_type", *options_.policy->file_type});
    if (std::ranges::any_of(result_.slots, [](const Slot& slot) { return is_block(slot.dtype); }))
      result_.keys.push_back({"general.quantization_version", kQuantizationVersion});
    if (options_.importance == nullptr) return;
    const auto& [path, matrix] = *options_.importance;
    result_.keys.push_back({"quantize.imatrix.file", path});
    if (!matrix.datasets.empty())
      result_.keys.push_back({"quantize.imatrix.dataset", matrix.datasets.front()});
    const auto number = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
    result_.keys.push_back({"quantize.imatrix.entries_count", number(matrix.tensors.size())});
    if (matrix.chunks > 0) result_.keys.push_back({"quantize.imatrix.chunks_count", number(matrix.chunks)});
  }

  const graph::MetaGraph& graph_;
  std::vector<SlotDraft> drafts_;
  std::optional<forward::PolicyModel> names_;
  const ExportOptions& options_;
  forward::TypePolicyPtr common_;
  TypedSlots result_ = {};
  std::map<std::pair<graph::DType, graph::DType>, std::uint64_t> fallbacks_ = {};
  std::set<graph::DType> again_ = {};  // block types of the source that are quantized again
  std::uint64_t with_importance_ = 0;
  std::vector<std::string> without_importance_ = {};
};

// A key of either place: the output's own come first.
class KeyReader {
 public:
  KeyReader(const graph::MetaGraph& graph, const std::vector<graph::MetaEntry>& keys)
      : graph_(graph), keys_(keys) {}

  const graph::MetaValue* find(const std::string& name) const {
    const auto own = std::ranges::find(keys_, name, &graph::MetaEntry::key);
    if (own != keys_.end()) return &own->value;
    return graph_.format == "gguf" ? graph::find_metadata(graph_, name) : nullptr;
  }

  // A whole number; of a list, its first.
  std::int64_t number(const std::string& name, std::int64_t otherwise) const {
    const graph::MetaValue* const value = find(name);
    if (value == nullptr) return otherwise;
    if (const auto* const array = std::get_if<graph::MetaArray>(value)) {
      if (array->count == 0 || array->element == graph::MetaType::string) return otherwise;
      return whole(io::read_meta_array(graph_, *array, 0, 1).front(), otherwise);
    }
    return whole(*value, otherwise);
  }

 private:
  static std::int64_t whole(const graph::MetaValue& value, std::int64_t otherwise) {
    return std::visit(
        [&](const auto& held) -> std::int64_t {
          using Held = std::decay_t<decltype(held)>;
          if constexpr (std::is_integral_v<Held> && !std::is_same_v<Held, bool>)
            if (std::in_range<std::int64_t>(held)) return static_cast<std::int64_t>(held);
          return otherwise;
        },
        value);
  }

  const graph::MetaGraph& graph_;
  const std::vector<graph::MetaEntry>& keys_;
};

// What rules ask of a model, from the keys of its file. Nothing if no tensor has one of llama.cpp's names.
std::optional<forward::PolicyModel> policy_model(const graph::MetaGraph& graph,
                                                 const std::vector<graph::MetaEntry>& keys,
                                                 const std::vector<SlotDraft>& drafts) {
  const auto known = [](const SlotDraft& draft) {
    const std::string_view name = draft.floats.name.view();
    return name == "token_embd.weight" || name.starts_with("blk.");
  };
  const KeyReader reader(graph, keys);
  const graph::MetaValue* const architecture = reader.find("general.architecture");
  if (architecture == nullptr || !std::holds_alternative<std::string>(*architecture)) return std::nullopt;
  if (std::ranges::none_of(drafts, known)) return std::nullopt;
  forward::PolicyModel model;
  model.architecture = std::get<std::string>(*architecture);
  const std::string prefix = model.architecture + ".";
  model.layers = std::max<std::int64_t>(reader.number(prefix + "block_count", 0), 0);
  model.experts = std::max<std::int64_t>(reader.number(prefix + "expert_count", 0), 0);
  const std::int64_t heads = reader.number(prefix + "attention.head_count", 1);
  const std::int64_t kv_heads = reader.number(prefix + "attention.head_count_kv", heads);
  model.gqa = kv_heads <= 0 || heads < 0 ? 0 : heads / kv_heads;
  return model;
}

// Vectors, norms and the like of a file for llama.cpp, which expects them in F32.
void keep_f32(std::vector<SlotDraft>& drafts) {
  const forward::TypePolicyPtr policy = common_policy();
  for (SlotDraft& draft : drafts)
    draft.stays_f32 = draft.own == graph::DType::f32 && !draft.blocks &&
                      !forward::may_change(*policy, {draft.floats.name.view(), draft.floats.shape});
}

}  // namespace

TypedSlots typed_slots(const graph::MetaGraph& graph, std::vector<SlotDraft> drafts,
                       const std::vector<graph::MetaEntry>& keys, const ExportOptions& options) {
  const bool from_gguf = graph.format == "gguf" && options.outtype;
  auto names = options.chooses_types() || from_gguf ? policy_model(graph, keys, drafts) : std::nullopt;
  if (from_gguf && names) keep_f32(drafts);
  if (!options.chooses_types()) return {plain_slots(std::move(drafts), options.outtype)};
  if (names) names->imatrix = options.importance != nullptr;
  return TypeChooser(graph, std::move(drafts), names, options).choose();
}

std::optional<std::uint32_t> gguf_file_type(graph::DType dtype) {
  const auto row = std::ranges::find(kFileTypes, dtype, &FileTypeRow::dtype);
  return row == kFileTypes.end() ? std::nullopt : std::optional(row->number);
}

}  // namespace loadline::exporters
