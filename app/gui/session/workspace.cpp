// Opens models; workspace_transfer.cpp converts, uploads and queries the system.
#include "app/gui/session/workspace.h"

#include "app/gui/session/demo_folder.h"
#include "app/gui/session/requests.h"
#include "app/gui/session/window_state.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "importers/open_options.h"

#include <filesystem>
#include <utility>

namespace loadline::gui {

namespace {

// A path that is none (org/name) stays what it is.
std::string absolute_path(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return path;
  const std::string whole = std::filesystem::absolute(path, failed).lexically_normal().string();
  return failed ? path : whole;
}

}  // namespace

Workspace::Workspace(std::string hub_cache, std::shared_ptr<const ForwardAssets> assets)
    : hub_cache_(std::move(hub_cache)) {
  shared.assets = assets ? std::move(assets) : built_in_assets();
  shared.targets =
      std::make_shared<const std::vector<Target>>(built_in_targets().begin(), built_in_targets().end());
  document_ = std::make_unique<Document>(shared, nullptr, Document::Kept{});
}

void Workspace::ask_open(std::string name, std::string path, std::function<std::string(Progress&)> locate,
                         const std::vector<Remedy>& with) {
  ResolveOptions options;
  options.hub_cache = hub_cache_;
  options.assets = [assets = shared.assets] { return assets; };
  for (const Remedy& remedy : with)
    if (const auto* const option = find_option(open_options(), remedy.option))
      set_option(*option, options, remedy.value);
  wanted_.reset();
  opening.ask(
      shared.jobs, std::move(name),
      [locate = std::move(locate), options, assets = shared.assets](Progress& progress) {
        const std::string found = locate(progress);
        progress.check_cancelled();
        auto graph = std::make_shared<MetaGraph>(open_model(found, options));
        progress.check_cancelled();
        return make_model(std::move(graph), found, *assets);
      },
      [this, path = std::move(path)] {
        if (opening.error() != nullptr) {
          shared.notices.fail("open", *opening.error(), document().id, path);
        } else {
          adopt(opening.value());
          if (!path.empty()) remember(recent, absolute_path(path));
          if (const auto wanted = std::exchange(wanted_, std::nullopt))
            attempt([&] { document().ask(asked_by(*wanted)); });
        }
        opening.drop();
      });
}

void Workspace::open(const std::string& path, const std::vector<Remedy>& with) {
  if (path.ends_with(".csv")) {
    settings.panel = "arena";
    return document().arena->open(path);
  }
  if (is_request_file(path)) return attempt([&] { open_request(path); });
  ask_open(
      "Opening " + safe_display(path, 60), path, [path](Progress&) { return path; }, with);
}

void Workspace::open_demo() {
  if (!demo_) demo_ = std::make_shared<DemoFolder>();
  ask_open("Writing the demo model", "",
           [folder = demo_](Progress& progress) { return write_demo_model(folder->path(), progress); });
}

void Workspace::show(MetaGraphPtr graph, std::string path) {
  opening.reset();
  adopt(make_model(std::move(graph), std::move(path), *shared.assets));
}

void Workspace::close_model() {
  opening.reset();
  if (settings.panel == "arena") settings.panel = "map";  // without a model it is a page of its own
  adopt(nullptr);
}

void Workspace::adopt(ModelPtr model) {
  shared.notices.forget(document_->id);
  document_ = std::make_unique<Document>(shared, std::move(model), document_->hand_over());
}

void Workspace::attempt(const std::function<void()>& verb) {
  try {
    verb();
  } catch (const Error& error) {
    shared.notices.add(error, error.what(), document().id);
  }
}

}  // namespace loadline::gui
