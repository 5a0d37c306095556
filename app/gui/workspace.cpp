// Opening models; workspace_transfer.cpp has what moves bytes or asks the system.
#include "app/gui/workspace.h"

#include "app/gui/demo_folder.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "importers/resolve.h"

#include <array>
#include <utility>

namespace loadline::gui {

std::string_view color_by_name(ColorBy mode) {
  constexpr std::array<std::string_view, kColorModes> kNames = {"role", "dtype", "layer", "shard"};
  return kNames[static_cast<std::size_t>(mode)];
}

Workspace::Workspace(std::string hub_cache, std::shared_ptr<const ForwardAssets> assets)
    : hub_cache_(std::move(hub_cache)) {
  shared.assets = assets ? std::move(assets) : built_in_assets();
  shared.presets.assign(built_in_devices().begin(), built_in_devices().end());
  documents_.push_back(std::make_unique<Document>(shared, nullptr, Document::Kept{}));
}

void Workspace::ask_open(std::string name, std::function<std::string(Progress&)> locate) {
  opening.ask(
      shared.jobs, std::move(name),
      [locate = std::move(locate), cache = hub_cache_, assets = shared.assets](Progress& progress) {
        const std::string path = locate(progress);
        progress.check_cancelled();
        auto graph = std::make_shared<MetaGraph>(
            open_model(path, {.hub_cache = cache, .assets = [assets] { return assets; }}));
        progress.check_cancelled();
        return make_model(std::move(graph), path, *assets);
      },
      [this] {
        if (opening.error() != nullptr)
          shared.notices.fail("open", *opening.error(), document().id);
        else
          adopt(opening.value());
        opening.drop();
      });
}

void Workspace::open(const std::string& path) {
  if (path.ends_with(".csv")) {
    settings.panel = "arena";
    return document().arena->open(path);
  }
  ask_open("Opening " + safe_display(path, 60), [path](Progress&) { return path; });
}

void Workspace::open_demo() {
  if (!demo_) demo_ = std::make_shared<DemoFolder>();
  ask_open("Writing the demo model",
           [folder = demo_](Progress& progress) { return write_demo_model(folder->path(), progress); });
}

void Workspace::show(MetaGraphPtr graph, std::string path) {
  opening.reset();
  adopt(make_model(std::move(graph), std::move(path), *shared.assets));
}

void Workspace::close_model() {
  opening.reset();
  if (settings.panel == "arena") settings.panel = "explore";  // without a model it is a page of its own
  adopt(nullptr);
}

void Workspace::adopt(ModelPtr model) {
  std::unique_ptr<Document>& shown = documents_[current_];
  shared.notices.forget(shown->id);
  Document::Kept kept = shown->hand_over();
  shown = std::make_unique<Document>(shared, std::move(model), std::move(kept));
}

void Workspace::attempt(const std::function<void()>& verb) {
  try {
    verb();
  } catch (const Error& error) {
    shared.notices.add(Severity::error, error.what(), document().id);
  }
}

}  // namespace loadline::gui
