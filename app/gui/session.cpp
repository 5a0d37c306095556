// Opening and selecting; session_plan.cpp has what is worked out, session_transfer.cpp what moves bytes.
#include "app/gui/session.h"

#include "app/gui/session_demo.h"
#include "core/base/text.h"
#include "core/graph/shares.h"
#include "importers/resolve.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace loadline::gui {
namespace {

// Opening must not wait behind an upload, and planning not behind an open.
constexpr unsigned kWorkers = 3;

}  // namespace

std::string_view color_by_name(ColorBy mode) {
  constexpr std::array<std::string_view, kColorModes> kNames = {"role", "dtype", "layer", "shard"};
  return kNames[static_cast<std::size_t>(mode)];
}

Session::Session(std::string hub_cache, std::shared_ptr<const ForwardAssets> assets)
    : hub_cache_(std::move(hub_cache)),
      assets_(assets ? std::move(assets) : built_in_assets()),
      presets_(built_in_devices().begin(), built_in_devices().end()),
      arena_(jobs_, [this](const Error& error) { fail("open", error, About::work); }),
      jobs_(kWorkers) {}

Session::~Session() = default;

void Session::post_open(std::string name, std::function<std::string(Progress&)> locate) {
  const std::uint64_t number = ++open_count_;
  opening_ = number;
  upload_alone_ = false;
  const std::string cache = hub_cache_;
  const auto assets = assets_;
  jobs_.post(
      std::move(name), "open",
      [locate = std::move(locate), cache, assets](Progress& progress) {
        const std::string path = locate(progress);
        progress.check_cancelled();
        auto graph = std::make_shared<MetaGraph>(
            open_model(path, {.hub_cache = cache, .assets = [assets] { return assets; }}));
        progress.check_cancelled();
        return make_model(std::move(graph), path, *assets);
      },
      [this, number](Outcome<ModelPtr> outcome) {
        if (opening_ != number) return;  // something else was opened since
        opening_ = 0;
        if (outcome.ok())
          adopt(outcome.value());
        else
          fail("open", outcome.error(), About::model);
      });
}

void Session::open(const std::string& path) {
  if (path.ends_with(".csv")) {
    panel = "arena";
    return arena_.open(path);
  }
  post_open("Opening " + safe_display(path, 60), [path](Progress&) { return path; });
}

void Session::open_demo() {
  if (!demo_) demo_ = std::make_unique<DemoFolder>();
  post_open("Writing the demo model",
            [folder = demo_->path()](Progress& progress) { return write_demo_model(folder, progress); });
}

void Session::show(MetaGraphPtr graph, std::string path) {
  opening_ = 0;
  jobs_.cancel_tagged("open");
  adopt(make_model(std::move(graph), std::move(path), *assets_));
}

void Session::close_model() {
  opening_ = 0;
  jobs_.cancel_tagged("open");
  if (panel == "arena") panel = "explore";  // without a model it is a page of its own
  adopt(nullptr);
}

void Session::adopt(ModelPtr model) {
  model_ = std::move(model);
  ++generation_;
  selection_.reset();
  zoomed_ = kRootNode;
  operator_shown.reset();
  projection_.reset();
  arena_.forget_model();
  upload_result_.reset();
  convert_report_.reset();
  comparison_ = std::make_shared<const std::vector<report::PlanRow>>();
  forget_order();
  std::erase_if(notices_, [](const Notice& notice) { return notice.of_model; });
  upload_alone_ = false;
  forget_files();
  table_.filter.clear();
  refresh_table();
  planning_ = 0;
  comparing_ = 0;
  jobs_.cancel_tagged("plan");
  jobs_.cancel_tagged("compare");
  jobs_.cancel_tagged("forward");
  forward_.reset();
  forward_figures_.reset();
  forward_error_.clear();
  forward_choice_.others.clear();
  lowering_ = 0;
  weigh_upload();
  if (model_) lower(), plan(), compare();
}

void Session::select(std::optional<TensorId> tensor) {
  if (model_ && tensor && index(*tensor) >= model_->graph->tensors.size()) return;
  selection_ = model_ ? tensor : std::nullopt;
  ++selections_;
}

void Session::zoom(NodeId module) {
  if (!model_ || index(module) >= model_->tree.nodes.size()) return;
  zoomed_ = module;
}

void Session::set_filter(std::string filter) {
  if (filter == table_.filter) return;
  table_.filter = std::move(filter);
  refresh_table();
}

void Session::set_sort(SortColumn column, bool ascending) {
  if (table_.column == column && table_.ascending == ascending) return;
  table_.column = column;
  table_.ascending = ascending;
  if (model_) sort_tensors(*model_, table_.rows, column, ascending);
}

void Session::refresh_table() {
  table_.error.clear();
  std::vector<TensorId> rows;
  try {
    if (model_) rows = filtered(*model_, table_.filter);
  } catch (const Error& error) {  // half typed
    table_.error = error.what();
    return;
  }
  table_.applied = table_.filter;
  table_.rows = std::move(rows);
  table_.bytes = 0;
  table_.lit.clear();
  if (!model_) return;
  if (table_.rows.size() != model_->graph->tensors.size()) table_.lit = nodes_with(*model_, table_.rows);
  sort_tensors(*model_, table_.rows, table_.column, table_.ascending);
  table_.bytes = sum(shares(*model_->graph, table_.rows)).bytes;
}

void Session::fail(std::string_view what, const Error& error, About about) {
  const bool of_model = about == About::model;
  if (error.code() == ErrorCode::cancelled)
    add_notice({Severity::info, fmt::format("Cancelled: {}", what), of_model});
  else
    add_notice({Severity::error, fmt::format("Could not {}: {}", what, error.what()), of_model});
}

void Session::notify(Severity severity, std::string text) { add_notice({severity, std::move(text)}); }

void Session::add_notice(Notice notice) {
  constexpr std::size_t kMost = 5;
  if (!notices_.empty() && notices_.back().text == notice.text) return;
  if (notices_.size() == kMost) notices_.erase(notices_.begin());
  notices_.push_back(std::move(notice));
}

void Session::dismiss(std::size_t notice) {
  if (notice < notices_.size()) notices_.erase(notices_.begin() + static_cast<std::ptrdiff_t>(notice));
}

void Session::attempt(const std::function<void()>& verb) {
  try {
    verb();
  } catch (const Error& error) {
    add_notice({Severity::error, error.what(), true});
  }
}

std::shared_ptr<const UploadResult> Session::upload_result() const {
  return upload_result_ && upload_result_->projection == projection_ ? upload_result_ : nullptr;
}

}  // namespace loadline::gui
