// Each mapped tensor becomes a recipe; types follow llama.cpp's converter (conversion/base.py).
#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/convert/numbers/elements.h"
#include "core/convert/recipe/packed_weights.h"
#include "core/forward/family/settings.h"
#include "core/forward/gguf/gguf_map.h"
#include "core/forward/model/expected_tensors.h"
#include "core/forward/model/known_models.h"
#include "core/graph/names/tensor_names.h"
#include "core/graph/packed/quantization.h"
#include "core/io/unfinished.h"
#include "core/tokenizer/gguf_tokenizer.h"
#include "exporters/exporter.h"
#include "exporters/gguf/gguf.h"
#include "exporters/model_folder.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace loadline::exporters {
namespace {

// Makes the steps of one mapped tensor into those of a recipe.
class RecipeMaker {
 public:
  RecipeMaker(const graph::MetaGraph& graph, const std::vector<std::optional<std::uint32_t>>& packed,
              const forward::MappedTensor& tensor, const TensorRecipes* recipes)
      : graph_(graph), packed_(packed), tensor_(tensor), recipes_(recipes) {}

  // In floating-point numbers, if that is what the sources hold.
  convert::Recipe floats() {
    for (const forward::NameStep& step : tensor_.steps) ends_.push_back(add(step));
    return std::move(recipe_);
  }

  // In the blocks that the one source stores; nothing if it stores none, or if a step reaches into them.
  std::optional<convert::Recipe> blocks() {
    const forward::NameStep& first = tensor_.steps.front();
    if (first.kind != forward::NameStepKind::source || instead(first.tensor) != nullptr) return std::nullopt;
    const auto packed = packed_[graph::index(first.tensor)];
    const auto repacking = packed ? repacking_of(graph_.logical[*packed]) : std::nullopt;
    const bool stored =
        !packed && tensor_.steps.size() == 1 && convert::can_become_f32(graph_.tensor(first.tensor).dtype);
    if (!repacking && !stored) return std::nullopt;
    as_blocks_ = true;
    if (repacking && repacking->turned) turned_.insert(0);
    return floats();
  }

 private:
  std::uint32_t add(const forward::NameStep& step) {
    switch (step.kind) {
      case forward::NameStepKind::source:
        return source(step.tensor);
      case forward::NameStepKind::values:
        return put(
            {.kind = convert::StepKind::constants, .constants = {step.values.begin(), step.values.end()}});
      case forward::NameStepKind::stack:
      case forward::NameStepKind::join:
        return joined(step);
      case forward::NameStepKind::permute:
        return permuted(step);
      case forward::NameStepKind::turn:
        return turned(step);
      case forward::NameStepKind::part:
        return put({.kind = convert::StepKind::slice,
                    .inputs = {input(step)},
                    .axis = number(step, 0),
                    .first = number(step, 1),
                    .count = number(step, 2)});
      case forward::NameStepKind::half:
        return half(step);
      case forward::NameStepKind::shape:
        return put({.kind = convert::StepKind::reshape,
                    .inputs = {input(step)},
                    .shape = std::vector<std::uint64_t>(step.arguments.begin(), step.arguments.end())});
      case forward::NameStepKind::transpose:
        if (form(input(step)).shape.size() < 2 || turned_.contains(input(step))) return input(step);
        return put({.kind = convert::StepKind::transpose, .inputs = {input(step)}});
      case forward::NameStepKind::add:
        return put({.kind = convert::StepKind::add_constant,
                    .inputs = {as_f32(input(step))},
                    .value = step.values.front()});
    }
    return 0;
  }

  const convert::Recipe* instead(graph::TensorId id) const {
    if (recipes_ == nullptr) return nullptr;
    const auto found = recipes_->instead.find(graph::index(id));
    return found == recipes_->instead.end() ? nullptr : &found->second;
  }

  std::uint32_t source(graph::TensorId id) {
    if (const convert::Recipe* const recipe = instead(id)) return recipe_.append(*recipe);
    if (const auto packed = packed_[graph::index(id)])
      return put(
          {.kind = as_blocks_ ? convert::StepKind::repack : convert::StepKind::unpack, .packed = *packed});
    const std::uint32_t taken = put({.kind = convert::StepKind::take, .tensor = id});
    if (as_blocks_ || !convert::can_become_f32(graph_.tensor(id).dtype)) return taken;
    return put({.kind = convert::StepKind::dequantize, .inputs = {taken}});
  }

  // Blocks can go through steps that leave rows whole. Some are stored turned, and need no turning.
  std::optional<convert::Repacking> repacking_of(const graph::LogicalTensor& weight) const {
    const auto has = [&](forward::NameStepKind kind) {
      return std::ranges::any_of(tensor_.steps,
                                 [&](const forward::NameStep& step) { return step.kind == kind; });
    };
    const bool whole = std::ranges::all_of(tensor_.steps, [](const forward::NameStep& step) {
      return step.kind == forward::NameStepKind::source || step.kind == forward::NameStepKind::shape ||
             step.kind == forward::NameStepKind::part || step.kind == forward::NameStepKind::transpose;
    });
    const auto blocks = whole ? convert::ggml_repacking(graph_, weight) : std::nullopt;
    if (blocks && blocks->turned != has(forward::NameStepKind::transpose)) return std::nullopt;
    return blocks;
  }

  std::uint32_t joined(const forward::NameStep& step) {
    convert::RecipeStep join{.kind = convert::StepKind::concatenate};
    if (step.kind == forward::NameStepKind::join) {
      for (const std::uint32_t at : step.inputs) join.inputs.push_back(ends_[at]);
      return put(std::move(join));
    }
    const std::vector<convert::Form> forms = convert::recipe_forms(graph_, recipe_);
    for (const std::uint32_t at : step.inputs) {
      const graph::Shape shape = with_first(forms[ends_[at]].shape, 1);
      join.inputs.push_back(put({.kind = convert::StepKind::reshape, .inputs = {ends_[at]}, .shape = shape}));
    }
    return put(std::move(join));
  }

  // The rows of a head are 2 x D/2: pairs (i, i + D/2) become neighbors.
  std::uint32_t permuted(const forward::NameStep& step) {
    const std::uint64_t rows = first_side(input(step)), heads = number(step, 0);
    if (heads == 0 || rows % (2 * heads) != 0)
      fail("{} rows cannot be split into {} heads of even size", rows, heads);
    return put(
        {.kind = convert::StepKind::permute_rows, .inputs = {input(step)}, .a = 2, .b = rows / heads / 2});
  }

  std::uint32_t turned(const forward::NameStep& step) {
    const graph::Shape shape = form(input(step)).shape;
    const auto blocks = checked_mul(number(step, 0), number(step, 1));
    if (shape.empty() || !blocks || *blocks == 0 || shape.front() % *blocks != 0)
      fail("{} rows cannot be split into {} x {} blocks", shape.empty() ? 0 : shape.front(), number(step, 0),
           number(step, 1));
    graph::Shape inner = shape;
    inner[0] /= *blocks;
    const std::uint32_t split = put(
        {.kind = convert::StepKind::reshape, .inputs = {input(step)}, .shape = with_first(inner, *blocks)});
    const std::uint32_t turned = put({.kind = convert::StepKind::permute_rows,
                                      .inputs = {split},
                                      .a = number(step, 0),
                                      .b = number(step, 1)});
    return put({.kind = convert::StepKind::reshape, .inputs = {turned}, .shape = shape});
  }

  std::uint32_t half(const forward::NameStep& step) {
    const graph::Shape shape = form(input(step)).shape;
    const std::uint64_t axis = number(step, 0);
    if (axis >= shape.size() || shape[axis] % 2 != 0) fail("dimension {} has no halves", axis);
    return put({.kind = convert::StepKind::slice,
                .inputs = {input(step)},
                .axis = axis,
                .first = number(step, 1) * (shape[axis] / 2),
                .count = shape[axis] / 2});
  }

  std::uint32_t as_f32(std::uint32_t at) {
    if (form(at).dtype == graph::DType::f32) return at;
    return put({.kind = convert::StepKind::cast, .inputs = {at}, .dtype = graph::DType::f32});
  }

  static graph::Shape with_first(const graph::Shape& shape, std::uint64_t side) {
    std::vector<std::uint64_t> sides = shape.vector();
    sides.insert(sides.begin(), side);
    return sides;
  }
  std::uint32_t input(const forward::NameStep& step) const { return ends_[step.inputs.front()]; }
  static std::uint64_t number(const forward::NameStep& step, std::size_t i) {
    return static_cast<std::uint64_t>(step.arguments[i]);
  }
  convert::Form form(std::uint32_t at) const { return convert::recipe_forms(graph_, recipe_)[at]; }
  std::uint64_t first_side(std::uint32_t at) const {
    const graph::Shape shape = form(at).shape;
    return shape.empty() ? 0 : shape.front();
  }
  std::uint32_t put(convert::RecipeStep step) {
    recipe_.steps.push_back(std::move(step));
    return static_cast<std::uint32_t>(recipe_.steps.size() - 1);
  }
  template <typename... Values>
  [[noreturn]] void fail(fmt::format_string<Values...> detail, const Values&... values) const {
    throw Error(ErrorCode::malformed, {.tensor = tensor_.name},
                fmt::vformat(detail, fmt::make_format_args(values...)));
  }

  const graph::MetaGraph& graph_;
  const std::vector<std::optional<std::uint32_t>>& packed_;
  const forward::MappedTensor& tensor_;
  const TensorRecipes* recipes_;
  bool as_blocks_ = false;
  convert::Recipe recipe_;
  std::set<std::uint32_t> turned_;   // repacked weights whose last two dimensions have changed places
  std::vector<std::uint32_t> ends_;  // by step of the mapped tensor: the recipe's step that gives it
};

bool stays_f32(const forward::GgufFamily& family, const forward::MappedTensor& tensor,
               const graph::Shape& shape) {
  return shape.size() <= 1 || tensor.name.ends_with("_norm.weight") || !tensor.name.ends_with(".weight") ||
         std::ranges::any_of(family.f32, [&](const std::string& pattern) {
           return graph::glob_matches(pattern, tensor.name);
         });
}

SlotDraft draft_of(const graph::MetaGraph& graph, const std::vector<std::optional<std::uint32_t>>& packed,
                   const forward::GgufFamily& family, const forward::MappedTensor& tensor,
                   const TensorRecipes* recipes) {
  const graph::Name name(tensor.name);
  SlotDraft draft{slot_of(graph, name, RecipeMaker(graph, packed, tensor, recipes).floats())};
  draft.stays_f32 = stays_f32(family, tensor, draft.floats.shape);
  draft.own = draft.stays_f32 ? graph::DType::f32 : draft.floats.dtype;
  if (!draft.stays_f32)
    for (const forward::NameStep& step : tensor.steps)
      if (step.kind == forward::NameStepKind::source && packed[graph::index(step.tensor)])
        draft.own = graph.logical[*packed[graph::index(step.tensor)]].dtype;
  if (auto blocks = RecipeMaker(graph, packed, tensor, recipes).blocks())
    draft.blocks = slot_of(graph, name, std::move(*blocks));
  return draft;
}

// A model, the configuration that says how it is mapped, and the map.
struct MappedModel {
  MappedModel(const graph::MetaGraph& graph, const TensorRecipes* recipes)
      : text(require_config(graph)),
        config(text, std::string(graph::kConfigKey)),
        family(forward::find_gguf_family(config)) {
    if (family == nullptr)
      throw Error(ErrorCode::unsupported, {.file = std::string(graph::kConfigKey)},
                  "{}: there is no map to llama.cpp's names for it",
                  config.model_type().empty()
                      ? "'model_type' is not set, which names the family"
                      : fmt::format("the family '{}'", safe_display(config.model_type(), 60)));
    if (recipes == nullptr || recipes->written >= graph.tensors.size()) {
      map = forward::map_to_gguf(*family, config, graph);
    } else {
      graph::MetaGraph written = graph;  // without what only recipes read
      written.tensors.resize(recipes->written);
      map = forward::map_to_gguf(*family, config, written);
    }
  }

  static const std::string& require_config(const graph::MetaGraph& graph) {
    if (const std::string* const found = graph::find_text(graph, graph::kConfigKey)) return *found;
    throw Error(ErrorCode::unsupported, "no config.json lies beside the weights: llama.cpp's names need it");
  }

  const std::string& text;
  forward::ModelConfig config;
  const forward::GgufFamily* family;
  forward::GgufMap map;
};

// Whoever cannot have llama.cpp's names can keep the model's.
MappedModel mapped_model(const graph::MetaGraph& graph, const TensorRecipes* recipes) {
  try {
    return {graph, recipes};
  } catch (const Error& error) {
    if (error.remedy() || (error.code() != ErrorCode::unsupported && error.code() != ErrorCode::malformed))
      throw;
    throw error.with({"names", "keep"});
  }
}

std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> bytes;
  append_bytes(bytes, text);
  return bytes;
}

// Files of the model's folder; config.json is known already.
tokenizer::GgufTokenizer tokenizer_of(const std::string& config, const std::string& pre_tokenizer,
                                      const FolderFiles& beside, std::vector<std::string>& files_read) {
  const tokenizer::OpenTokenizerFile open =
      [&](const std::string& name) -> std::shared_ptr<const io::SourceFile> {
    if (name == graph::kConfigKey)
      return std::make_shared<const io::SourceFile>(io::SourceFile::from_memory(name, bytes_of(config)));
    const auto found = std::ranges::find(beside.files, name, &FolderFile::name);
    if (found == beside.files.end()) return nullptr;
    files_read.push_back(name);
    auto file = std::make_shared<const io::SourceFile>(io::SourceFile::open(found->path));
    io::refuse_pointer(*file);
    return file;
  };
  const tokenizer::ListTokenizerFiles list = [&](const std::string& folder) {
    std::vector<std::string> names;
    for (const FolderFile& file : beside.files)
      if (file.name.starts_with(folder + "/")) names.push_back(file.name.substr(folder.size() + 1));
    return names;
  };
  const tokenizer::ModelTokenizer model = tokenizer::read_model_tokenizer(open, list);
  if (!model.json && !model.sentencepiece) return {};
  return tokenizer::gguf_tokenizer(model, {.pre_tokenizer = pre_tokenizer});
}

void note_no_tokenizer(const FolderFiles& beside, std::vector<std::string>& notes) {
  std::string note =
      "no tokenizer.json and no tokenizer.model lie beside the weights: the file takes token ids alone";
  for (const std::string& name : beside.left_out)
    if (name == "tokenizer.json" || name == "tokenizer.model")
      note = fmt::format(
          "'{}' is a link out of the model's folder, which is not followed: the file takes token ids alone",
          name);
  notes.push_back(std::move(note));
}

// Without a tokenizer llama.cpp takes the number of tokens from a key of the model.
void add_no_vocabulary(GgufModelKeys& keys, const std::string& architecture,
                       const forward::ModelConfig& config) {
  keys.tokenizer.push_back({"tokenizer.ggml.model", std::string("none")});
  const std::string name = architecture + ".vocab_size";
  const bool known =
      std::ranges::any_of(keys.model, [&](const graph::MetaEntry& key) { return key.key == name; });
  if (const assets::Datum size = config.get("vocab_size"); !known && !size.null())
    keys.model.push_back({name, key_value({name, forward::GgufType::u32, size})});
}

// The first tensor of the model that goes into this one of the file.
std::string_view source_of(const forward::GgufMap& map, std::string_view name) {
  const auto found = std::ranges::find(map.tensors, name, &forward::MappedTensor::name);
  return found == map.tensors.end() ? name : std::string_view(found->steps.front().name);
}

std::vector<SlotDraft> drafts_of(const graph::MetaGraph& graph, const MappedModel& mapped,
                                 const ExportOptions& options) {
  std::vector<SlotDraft> drafts;
  const auto packed = graph::logical_positions(graph);
  for (const forward::MappedTensor& tensor : mapped.map.tensors)
    drafts.push_back(draft_of(graph, packed, *mapped.family, tensor, options.recipes.get()));
  arrange(graph, options, drafts);
  return drafts;
}

// A file that lacks a tensor, or has one of another shape, would run wrongly or not at all. A model without
// its head is one: llama.cpp then takes the embedding.
void check_complete(const MappedModel& mapped, const std::vector<SlotDraft>& drafts) {
  graph::MetaGraph whole;
  try {
    whole = forward::config_graph(mapped.text, std::string(graph::kConfigKey));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    return;
  }
  const MappedModel wanted(whole, nullptr);
  std::unordered_map<std::string_view, const Slot*> held;
  for (const SlotDraft& draft : drafts) held.emplace(draft.floats.name.view(), &draft.floats);
  for (const SlotDraft& draft : drafts_of(whole, wanted, {})) {
    const Slot& slot = draft.floats;
    const auto found = held.find(slot.name.view());
    const auto fail = [&](const std::string& detail) {
      throw Error(ErrorCode::malformed, {.file = std::string(graph::kConfigKey), .tensor = slot.name.str()},
                  detail)
          .with({"names", "keep"});
    };
    if (found == held.end()) {
      if (slot.name.view().starts_with("output.")) continue;
      fail(fmt::format("config.json describes a model with this tensor ('{}'), and the files hold none",
                       safe_display(source_of(wanted.map, slot.name.view()), 100)));
    }
    if (found->second->shape != slot.shape)
      fail(fmt::format("has the shape [{}], config.json says [{}]", fmt::join(found->second->shape, ", "),
                       fmt::join(slot.shape, ", ")));
  }
}

}  // namespace

void check_ignored(const std::vector<forward::Setting>& settings, const ExportOptions& options) {
  for (const std::string& pattern : options.ignored_settings)
    if (pattern != "*" && std::ranges::none_of(settings, [&](const forward::Setting& setting) {
          return graph::glob_matches(pattern, setting.name);
        }))
      throw Error(ErrorCode::usage, "'{}' matches no setting that has to be ignored here",
                  safe_display(pattern, 80));
}

// A file that runs, and computes something else than the model, is worse than none.
std::vector<forward::Setting> ignored_settings(const std::vector<forward::Setting>& settings,
                                               const ExportOptions& options, const std::string& file,
                                               std::string_view why) {
  std::vector<forward::Setting> left, ignored;
  std::string names;
  for (const forward::Setting& setting : settings) {
    const bool may = std::ranges::any_of(options.ignored_settings, [&](const std::string& pattern) {
      return graph::glob_matches(pattern, setting.name);
    });
    (may ? ignored : left).push_back(setting);
    if (may) continue;
    std::string name = setting.name;
    std::ranges::replace(name, ',', '?');  // a glob's: commas stand between names
    names += (names.empty() ? "" : ",") + name;
  }
  constexpr std::size_t kMostNames = 20;
  if (left.size() > kMostNames) names = "*";
  if (!left.empty())
    throw Error(ErrorCode::unsupported, {.file = file}, "{}: {}", forward::settings_text(left), why)
        .with({"ignore", names});
  return ignored;
}

graph::MetaValue key_value(const forward::MappedKey& key) {
  const auto fail = [&]() -> Error {
    return Error(ErrorCode::malformed, {.file = std::string(graph::kConfigKey)}, "'{}' would be {}{}{}",
                 key.name, key.value.shown(), key.settings.empty() ? "" : ": it follows from ",
                 key.settings.empty() ? "" : join_names(key.settings, 4));
  };
  const std::int64_t* const whole = key.value.number();
  switch (key.type) {
    case forward::GgufType::text:
      if (key.value.text() == nullptr) throw fail();
      return *key.value.text();
    case forward::GgufType::boolean:
      return key.value.truth();
    case forward::GgufType::f32: {
      if (whole == nullptr && key.value.real() == nullptr) throw fail();
      const auto number =
          whole != nullptr ? static_cast<float>(*whole) : static_cast<float>(*key.value.real());
      // what norms divide by and positions turn by is more than nothing
      const bool positive = key.name.ends_with("epsilon") || key.name.ends_with("freq_base") ||
                            key.name.ends_with("scaling.factor");
      if (!std::isfinite(number) || (positive && !(number > 0)) ||
          (key.name.ends_with("epsilon") && number >= 1))
        throw fail();
      return number;
    }
    case forward::GgufType::u32:
      break;
  }
  if (whole == nullptr || *whole < 0 || *whole > std::numeric_limits<std::uint32_t>::max()) throw fail();
  return static_cast<std::uint32_t>(*whole);
}

bool maps_names(const graph::MetaGraph& graph, const ExportOptions& options) {
  return !options.keep_names.value_or(false) && graph.format != "gguf" && !graph.forward &&
         graph::find_text(graph, graph::kConfigKey) != nullptr;
}

namespace {

// The setting that says how weights are packed, where nothing has unpacked the whole numbers in the files.
std::optional<forward::Setting> unread_packing(const graph::MetaGraph& graph,
                                               const forward::ModelConfig& config) {
  const bool whole = std::ranges::any_of(graph.tensors, [](const graph::Tensor& tensor) {
    using T = graph::DType;
    const bool small =
        tensor.dtype == T::i8 || tensor.dtype == T::u8 || tensor.dtype == T::i32 || tensor.dtype == T::u32;
    return small && tensor.shape.size() >= 2;
  });
  if (!whole || !graph.logical.empty()) return std::nullopt;
  for (const char* const key : kPackings) {
    if (config.get(key).null()) continue;
    const std::string method = std::string(key) + ".quant_method";
    const assets::Datum named = config.get(method);
    return forward::Setting{named.null() ? key : method, named.null() ? "not understood" : named.shown()};
  }
  return std::nullopt;
}

// llama.cpp takes the embedding for a head that is missing, also where the model does not tie them.
void refuse_missing(const graph::MetaGraph& graph) {
  const forward::ModelClaims claims = forward::model_claims(graph, *forward::built_in_assets());
  if (claims.missing.empty()) return;
  throw Error(ErrorCode::malformed,
              {.file = std::string(graph::kConfigKey), .tensor = claims.missing.front()},
              "is missing: the model has it with these settings{}",
              claims.missing.size() == 1 ? "" : fmt::format(", and {} more are", claims.missing.size() - 1));
}

}  // namespace

GgufModel gguf_model(const graph::MetaGraph& graph, const ExportOptions& options) {
  const MappedModel mapped = mapped_model(graph, options.recipes.get());
  refuse_missing(graph);
  const forward::GgufMap& map = mapped.map;
  GgufModel model;
  auto& keys = model.keys.model;
  keys.push_back({"general.architecture", map.architecture});
  keys.push_back({"general.type", std::string("model")});
  for (const forward::MappedKey& key : map.keys) keys.push_back({key.name, key_value(key)});
  model.dropped = map.dropped;
  std::ranges::copy(map.notes, std::back_inserter(model.notes));
  const FolderFiles beside = folder_files(graph, options.follow_links, options.tokenizer_folder);
  std::vector<forward::Setting> unheeded = map.unaccounted;
  std::ranges::move(further_modules(beside.files), std::back_inserter(unheeded));
  if (auto packing = unread_packing(graph, mapped.config);
      packing && std::ranges::find(unheeded, packing->name, &forward::Setting::name) == unheeded.end())
    unheeded.push_back(std::move(*packing));
  tokenizer::GgufTokenizer tokenizer;
  if (options.tokenizer)
    tokenizer = tokenizer_of(mapped.text, options.pre_tokenizer, beside, model.files_read);
  std::vector<forward::Setting> uncut, all = unheeded;
  for (auto& [name, shown] : tokenizer.unheeded) uncut.push_back({std::move(name), std::move(shown)});
  all.insert(all.end(), uncut.begin(), uncut.end());
  check_ignored(all, options);
  unheeded = ignored_settings(unheeded, options, std::string(graph::kConfigKey),
                              fmt::format("llama.cpp's '{}' is not known to compute that", map.architecture));
  if (!unheeded.empty())
    model.notes.push_back(fmt::format("{}: ignored, so what it computes may differ from the model",
                                      forward::settings_text(unheeded)));
  if (const auto pooling = pooling_type(beside.files, model.files_read))
    keys.push_back({map.architecture + ".pooling_type", *pooling});
  std::ranges::move(tokenizer.notes, std::back_inserter(model.notes));
  uncut = ignored_settings(uncut, options, "the tokenizer",
                           "no key of a GGUF file tells llama.cpp to cut texts so");
  if (!uncut.empty())
    model.notes.push_back(
        fmt::format("{}: ignored, so llama.cpp may cut texts in another way", forward::settings_text(uncut)));
  model.keys.tokenizer = std::move(tokenizer.keys);
  if (model.keys.tokenizer.empty() && options.tokenizer) note_no_tokenizer(beside, model.notes);
  if (model.keys.tokenizer.empty()) add_no_vocabulary(model.keys, map.architecture, mapped.config);
  // what the map says of the tokenizer goes before what its files say
  for (const graph::MetaEntry& entry : keys)
    std::erase_if(model.keys.tokenizer,
                  [&](const tokenizer::GgufTokenizerKey& key) { return key.name == entry.key; });
  model.drafts = drafts_of(graph, mapped, options);
  check_complete(mapped, model.drafts);
  return model;
}

std::vector<Slot> gguf_slots(const graph::MetaGraph& graph, const ExportOptions& options) {
  return plain_slots(drafts_of(graph, mapped_model(graph, options.recipes.get()), options), options.outtype);
}

}  // namespace loadline::exporters
