// Lists the stores, reads a few models in one job, tries quantizations of those that do not run.
#include "app/gui/state/model/shelf.h"

#include "app/gui/state/base/services.h"
#include "core/base/error.h"
#include "core/base/tasks.h"
#include "core/forward/model/known_models.h"
#include "core/graph/names/tensor_names.h"
#include "importers/resolve.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>

#include <sys/stat.h>

namespace loadline::gui {
namespace {

// So many that a job lasts about as long as somebody waits for the first rows, and so few that they come one
// after the other.
constexpr std::size_t kAtOnce = 12;
constexpr std::size_t kReaders = 2;

// What the first target can give, in steps in which a verdict hardly changes.
std::uint64_t memory_of(const load::Target& target) {
  constexpr std::uint64_t kStep = 256ull << 20;
  return target.device_bytes.value_or(0) / kStep * 1'000'003 + target.host_bytes.value_or(0) / kStep;
}

using RoleBytes = std::array<std::uint64_t, graph::kRoleCount>;

// Of what is below each node of the tree; children stand behind their parents.
std::vector<RoleBytes> role_bytes(const graph::MetaGraph& graph, const graph::ModuleTree& tree) {
  std::vector<RoleBytes> below(tree.nodes.size());
  for (std::size_t i = tree.nodes.size(); i-- > 0;) {
    const graph::ModuleNode& node = tree.nodes[i];
    if (node.tensor) {
      const graph::Tensor& tensor = graph.tensor(*node.tensor);
      below[i][static_cast<std::size_t>(graph::tensor_role(tensor.name.view()))] +=
          graph.storage(tensor.storage).bytes;
    }
    if (i == graph::index(graph::kRootNode)) continue;
    for (std::size_t role = 0; role < graph::kRoleCount; ++role)
      below[graph::index(node.parent)][role] += below[i][role];
  }
  return below;
}

// A rectangle for each tensor; where they are too small, one for each role below a module.
std::vector<ThumbTile> thumbnail(const graph::MetaGraph& graph) {
  const graph::ModuleTree tree = graph::module_tree(graph);
  const std::vector<RoleBytes> below = role_bytes(graph, tree);
  view::TreemapOptions options;
  options.min_side = 3;
  options.padding = 0;
  options.header = kThumbHeight;  // no room for words
  std::vector<ThumbTile> tiles;
  for (const view::Tile& tile : view::layout_treemap(tree, view::TreemapOrder(tree), graph::kRootNode,
                                                     {0, 0, kThumbWidth, kThumbHeight}, options)) {
    if (tile.kind == view::TileKind::module) continue;
    const RoleBytes& bytes = below[graph::index(tile.node)];
    const double all = std::accumulate(bytes.begin(), bytes.end(), 0.0);
    view::Rect rect = tile.rect;
    for (std::size_t role = 0; role < bytes.size() && all > 0; ++role) {
      if (bytes[role] == 0) continue;
      rect.h = tile.rect.h * static_cast<double>(bytes[role]) / all;
      tiles.push_back({rect, static_cast<graph::Role>(role)});
      rect.y += rect.h;
    }
  }
  return tiles;
}

// What a job needs of the window.
struct Question {
  importers::ResolveOptions open;
  std::shared_ptr<const forward::ForwardAssets> assets;
  std::shared_ptr<const std::vector<load::Target>> targets;

  load::LoadEnvironment environment() const { return {.assets = assets, .targets = *targets}; }
  load::LoadRequest request() const {
    return report::usual_request(targets->front().id, report::kUsualPrompt);
  }
};

ShelfFacts read_facts(const Question& question, const std::string& path, const ShelfFacts* before,
                      Progress& progress) {
  ShelfFacts facts;
  try {
    const graph::MetaGraph graph = importers::open_model(path, question.open);
    const load::LoadEnvironment environment = question.environment();
    if (before == nullptr) {
      facts.row = report::model_row(graph, question.request(), environment, progress);
      facts.map = thumbnail(graph);
      facts.tried_types = facts.row->verdict.fits();
    } else {
      facts = *before;
      facts.tried_types = true;
      report::find_better(*facts.row, graph, question.request(), question.assets->type_policies, environment,
                          progress);
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::canceled) throw;
    facts.fault = error.what();
  }
  return facts;
}

// A path that the user opened, as the stores list theirs.
importers::StoredModel opened_model(const std::string& path) {
  const std::filesystem::path whole(path);
  const std::filesystem::path named = whole.filename().empty() ? whole.parent_path() : whole;
  importers::StoredModel model{.name = named.filename().string(), .path = path};
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0) {
    model.bytes = S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0;
    model.changed = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  }
  return model;
}

}  // namespace

bool Shelf::is_current(const Wanted& wanted) const {
  // so old is a list that a download or a conversion may be missing in it
  constexpr std::chrono::seconds kOld{15};
  return memory_ && *memory_ == memory_of(services_.targets->front()) && wanted == wanted_ &&
         std::chrono::steady_clock::now() - looked_at_ < kOld;
}

std::size_t Shelf::unread() const {
  return static_cast<std::size_t>(std::ranges::count_if(models_, [](const ShelfModel& model) {
    return !model.facts && !model.gone && !model.stored.path.empty();
  }));
}

void Shelf::look(Wanted wanted) {
  if (listed_.busy()) return;
  const std::uint64_t memory = memory_of(services_.targets->front());
  if (memory_ != memory) {
    read_.withdraw();  // what it would bring is of another memory
    kept_.clear();
  }
  memory_ = memory;
  wanted_ = std::move(wanted);
  looked_at_ = std::chrono::steady_clock::now();
  importers::StorePlaces places = places_;
  places.folders.insert(places.folders.end(), wanted_.folders.begin(), wanted_.folders.end());
  listed_.ask(
      services_.jobs, "Listing models",
      [places](Progress& progress) { return importers::stored_models(places, progress); },
      [this] { take_list(); });
}

void Shelf::take_list() {
  std::vector<ShelfModel> models;
  const auto find = [&](const std::string& path) {
    return std::ranges::find_if(models, [&](const ShelfModel& model) {
      return model.stored.path == path ||
             (model.stored.store == importers::Store::hub && model.stored.name == path);
    });
  };
  for (const importers::StoredModel& stored : listed_.or_empty().models) models.push_back({stored});
  const auto add = [&](const std::string& path, bool ShelfModel::*mark) {
    if (find(path) == models.end()) models.push_back({opened_model(path)});
    *find(path).*mark = true;
  };
  for (const std::string& path : wanted_.favorites) add(path, &ShelfModel::favorite);
  for (const std::string& path : wanted_.recent) add(path, &ShelfModel::recent);
  for (ShelfModel& model : models) {
    std::error_code failed;
    const bool opened = model.favorite || model.recent;
    model.gone = opened && !std::filesystem::exists(model.stored.path, failed);
    const auto kept = kept_.find(model.stored.path);
    if (kept != kept_.end() && kept->second.bytes == model.stored.bytes &&
        kept->second.changed == model.stored.changed)
      model.facts = kept->second.facts;
  }
  std::ranges::stable_sort(models, [](const ShelfModel& a, const ShelfModel& b) {
    return std::pair(!a.favorite, !a.recent) < std::pair(!b.favorite, !b.recent);
  });
  models_ = std::move(models);
  read_.withdraw();
  read_next();
}

void Shelf::read_next() {
  std::vector<std::pair<std::size_t, std::shared_ptr<const ShelfFacts>>> wanted;
  for (std::size_t i = 0; i < models_.size() && wanted.size() < kAtOnce; ++i)
    if (!models_[i].facts && !models_[i].gone && !models_[i].stored.path.empty())
      wanted.emplace_back(i, nullptr);
  // once every model has its row, what would run of those that do not
  for (std::size_t i = 0; i < models_.size() && wanted.size() < kReaders; ++i)
    if (models_[i].facts && models_[i].facts->row && !models_[i].facts->tried_types)
      wanted.emplace_back(i, models_[i].facts);
  if (wanted.empty()) return;
  std::vector<std::string> paths;
  for (const auto& [at, facts] : wanted) paths.push_back(models_[at].stored.path);
  Question question{{}, services_.assets, services_.targets};
  question.open.hub_cache = places_.hub_cache;
  question.open.assets = [assets = services_.assets] { return assets; };
  read_.ask(
      services_.jobs, "Reading headers of models",
      [wanted = std::move(wanted), paths = std::move(paths), question](Progress& progress) {
        std::vector<Read> found(wanted.size());
        ParallelLoop(wanted.size(), std::min(kReaders, wanted.size()), [&](std::size_t i) {
          progress.check_canceled();
          found[i] = {wanted[i].first, std::make_shared<const ShelfFacts>(
                                           read_facts(question, paths[i], wanted[i].second.get(), progress))};
        }).finish();
        return found;
      },
      [this] {
        if (read_.error() != nullptr) return;
        for (const Read& read : read_.or_empty()) {
          ShelfModel& model = models_[read.at];
          model.facts = read.facts;
          kept_[model.stored.path] = {model.stored.bytes, model.stored.changed, read.facts};
        }
        read_next();
      });
}

}  // namespace loadline::gui
