// The open models: which one is shown, which give way to others, which are read again.
#include "app/gui/state/workspace.h"

#include "app/gui/state/model/model_path.h"
#include "app/gui/state/window_state.h"
#include "core/base/error.h"
#include "core/base/text.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

namespace loadline::gui {

Document* Workspace::find_document(std::uint64_t id) const {
  const auto found =
      std::ranges::find_if(documents_, [&](const auto& document) { return document->id == id; });
  return found != documents_.end() ? found->get() : nullptr;
}

void Workspace::show_document(std::size_t at) {
  if (at >= documents_.size() || at == shown_) return;
  document().panel = settings.panel;
  shown_ = at;
  take_panel();
}

void Workspace::take_panel() {
  if (!document().panel.empty()) settings.panel = document().panel;
}

// In the place of a document, else of the one shown if that has no model, else at the end; and shows it.
void Workspace::adopt(ModelPtr model, std::uint64_t in_place_of) {
  for (std::size_t i = 0; i < documents_.size(); ++i)
    if (documents_[i]->id == in_place_of || (in_place_of == 0 && i == shown_ && !documents_[i]->model))
      return replace(i, std::move(model));
  document().panel = settings.panel;
  documents_.push_back(std::make_unique<Document>(shared, std::move(model), document().kept()));
  shown_ = documents_.size() - 1;
  watch_files();
}

void Workspace::replace(std::size_t at, ModelPtr model) {
  const std::unique_ptr<Document> before = std::move(documents_[at]);
  shared.notices.forget(before->id);
  const bool again = before->model && model && is_same_path(before->model->path, model->path);
  const Asked asked = before->asked();
  documents_[at] = std::make_unique<Document>(shared, std::move(model), before->hand_over(again));
  shown_ = at;
  // what refers to this model may hold no longer: then the rest of the question stays
  if (again && of_any_model(asked) != asked) attempt([&] { document().ask(asked); });
  watch_files();
}

std::optional<std::size_t> Workspace::nearest_document() const {
  std::optional<std::size_t> nearest;
  const std::uint64_t wanted = document().parameters();
  const auto distance = [&](std::size_t at) {
    const std::uint64_t there = documents_[at]->parameters();
    return there > wanted ? there - wanted : wanted - there;
  };
  for (std::size_t i = 0; i < documents_.size(); ++i)
    if (i != shown_ && documents_[i]->model && (!nearest || distance(i) <= distance(*nearest))) nearest = i;
  return nearest;
}

void Workspace::close_model() {
  if (documents_.size() == 1) {
    if (settings.panel == "arena") settings.panel = "map";  // without a model it is a page of its own
    return replace(0, nullptr);
  }
  shared.notices.forget(document().id);
  documents_.erase(documents_.begin() + static_cast<std::ptrdiff_t>(shown_));
  shown_ = std::min(shown_, documents_.size() - 1);
  take_panel();
  watch_files();
}

void Workspace::reload() {
  if (!document().model || document().model->path.empty())
    throw Error(ErrorCode::usage, "this model is not in a file");
  reload(shown_);
}

void Workspace::reload(std::size_t at) {
  const std::string path = documents_[at]->model->path;
  ask_open(
      {.name = "Reading again " + safe_display(path, 60), .path = path, .in_place_of = documents_[at]->id});
}

void Workspace::toggle_favourite() {
  if (!document().model || document().model->path.empty())
    throw Error(ErrorCode::usage, "this model is not in a file");
  const std::string path = document().model->path;
  if (std::erase(favourites, path) > 0) return;
  favourites.insert(favourites.begin(), path);
  if (favourites.size() > kMostFavourites) favourites.resize(kMostFavourites);
}

bool Workspace::poll() {
  take_changed_files();
  return shared.jobs.poll();
}

void Workspace::set_wake(const std::function<void()>& wake) {
  shared.jobs.set_wake(wake);
  watch_.set_wake(wake);
}

void Workspace::watch_files() {
  std::vector<std::string> paths;
  for (const std::unique_ptr<Document>& document : documents_)
    if (document->model && !document->model->path.empty())
      for (const ModelFile& file : document->model->graph->files) paths.push_back(file.path);
  watch_.watch(std::move(paths));
}

// Reads models again whose files were written since.
void Workspace::take_changed_files() {
  const std::vector<std::string> changed = watch_.take_changed();
  if (changed.empty()) return;
  const auto is_changed = [&](const ModelFile& file) {
    return std::ranges::find(changed, file.path) != changed.end();
  };
  for (std::size_t i = 0; i < documents_.size(); ++i) {
    const ModelPtr& model = documents_[i]->model;
    if (!model || model->path.empty()) continue;
    const auto file = std::ranges::find_if(model->graph->files, is_changed);
    if (file == model->graph->files.end()) continue;
    shared.notices.add(Severity::info,
                       fmt::format("{} was written by another program: the model is read again",
                                   safe_display(file->path, 120)));
    reload(i);
  }
}

std::string tab_title(const Workspace& workspace, const Document& document) {
  if (!document.model) return "no model";
  const auto alike = std::ranges::count_if(workspace.documents(), [&](const auto& other) {
    return other->model && other->model->name == document.model->name;
  });
  const std::filesystem::path path = document.model->path;
  if (alike < 2 || path.empty()) return document.model->name;
  const std::filesystem::path named = path.has_filename() ? path : path.parent_path();
  return named.filename().string();
}

}  // namespace loadline::gui
