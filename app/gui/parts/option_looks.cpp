// The window's knowledge about options: words that depend on the model, and the value in force if none is
// set.
#include "app/gui/parts/option_controls.h"
#include "core/base/text.h"

#include <algorithm>

namespace loadline::gui {
namespace {

constexpr std::uint64_t kMostOnSlider = 1 << 20;

const ForwardScene* operators_of(const Document& document) {
  const ForwardScene* scene = document.forward.value().get();
  return scene != nullptr && scene->forward() != nullptr ? scene : nullptr;
}

void capitalise(std::string& word) {
  if (word[0] >= 'a' && word[0] <= 'z') word[0] = static_cast<char>(word[0] - 'a' + 'A');
}

std::optional<OptionLook> tokens_look(const Document& document, OptionLook look, SymbolId symbol) {
  const ForwardScene* scene = operators_of(document);
  if (scene == nullptr || !scene->symbols_matter[index(symbol)]) return std::nullopt;
  look.most = std::min(look.most, kMostOnSlider);
  return look;
}

std::optional<OptionLook> type_look(const Document& document, OptionLook look,
                                    std::optional<DType> Profile::*own) {
  const ForwardScene* scene = operators_of(document);
  if (scene == nullptr || scene->model.source != ForwardSource::architecture) return std::nullopt;
  const DType type = (scene->assets->profile(scene->model.profile).*own).value_or(scene->model.bound->dtype);
  look.in_force = dtype_info(type).name;
  for (OptionLook::Word& row : look.words)
    for (char& c : row.shown)
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return look;
}

std::optional<OptionLook> profile_look(const Document& document, OptionLook look) {
  const ForwardScene* scene = operators_of(document);
  if (scene == nullptr) return std::nullopt;
  look.words.clear();
  for (const Profile& profile : scene->assets->profiles)
    if (runs(profile, *scene->graph)) look.words.push_back({profile.id, profile.id});
  if (look.words.empty()) return std::nullopt;  // operators of a format that no profile is for
  look.in_force = scene->model.profile;
  return look;
}

OptionLook budget_look(const Document& document, OptionLook look, bool device) {
  const Budget budget = document.memory().budget;
  const auto& bytes = device ? (budget.unified ? budget.unified : budget.device) : budget.host;
  look.in_force = bytes ? format_bytes(*bytes) : "no budget";
  return look;
}

OptionLook target_look(const Document& document, OptionLook look) {
  look.words.clear();
  for (const Target& target : document.targets()) look.words.push_back({target.id, target.name});
  return look;
}

}  // namespace

std::optional<OptionLook> look_of(const Document& document, const LoadOption& option) {
  OptionLook look = plain_look(option, document.asked().request);
  if (look.kind == OptionKind::choice && look.words.size() == 2)  // they stand side by side
    for (OptionLook::Word& row : look.words) capitalise(row.shown);
  const std::string_view id = option.id;
  if (id == "seq") return tokens_look(document, std::move(look), kSequence);
  if (id == "batch") return tokens_look(document, std::move(look), kBatch);
  if (id == "past") return tokens_look(document, std::move(look), kPast);
  if (id == "profile") return profile_look(document, std::move(look));
  if (id == "activation_dtype") return type_look(document, std::move(look), &Profile::activation);
  if (id == "cache_dtype") {
    const ForwardScene* scene = operators_of(document);
    if (scene == nullptr || scene->cache.empty()) return std::nullopt;
    return type_look(document, std::move(look), &Profile::cache);
  }
  if (id == "logits") {
    const ForwardScene* scene = operators_of(document);
    if (scene == nullptr || !scene->has_logits || scene->model.source != ForwardSource::architecture)
      return std::nullopt;
    look.in_force = scene->assets->profile(scene->model.profile).all_logits ? "all" : "last";
  }
  if (id == "activations" && document.asked().first_token && document.figures()) return std::nullopt;
  if (id == "memory") look.in_force = memory_kind_name(document.memory().kind);
  if (id == "device_budget") return budget_look(document, std::move(look), true);
  if (id == "host_budget") {
    if (document.memory().kind == MemoryKind::unified) return std::nullopt;
    return budget_look(document, std::move(look), false);
  }
  if (id == "target") return target_look(document, std::move(look));
  if (id == "gpu_layers" && document.model)  // what is behind the last layer counts as one more
    look.most = static_cast<std::uint64_t>(document.model->layer_count) + 1;
  return look;
}

}  // namespace loadline::gui
