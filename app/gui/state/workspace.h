// The state of the window and the user's operations on it. Needs no window: no ImGui, no Vulkan types.
#pragma once

#include "app/gui/state/base/jobs.h"
#include "app/gui/state/base/services.h"
#include "app/gui/state/document.h"
#include "app/gui/state/lesson_play.h"
#include "app/gui/state/model/files.h"
#include "app/gui/state/model/shelf.h"
#include "app/gui/state/settings.h"
#include "app/gui/state/transfers.h"
#include "core/gpu/device_info.h"
#include "core/io/file_system.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::gui {

// --- The open models, and the user's operations on them.

// Every function returns at once. Long work runs in a job, whose result poll() takes in. Used from one
// thread.
class Workspace {
 public:
  // Null `assets` means the built-in assets.
  explicit Workspace(importers::StorePlaces stores,
                     std::shared_ptr<const forward::ForwardAssets> assets = nullptr);
  // With the hub cache as the only store (ResolveOptions).
  explicit Workspace(std::string hub_cache, std::shared_ptr<const forward::ForwardAssets> assets = nullptr)
      : Workspace(importers::StorePlaces{.hub_cache = std::move(hub_cache)}, std::move(assets)) {}
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // Opens a path in the background, with the options `with` of opening. Paths open one after the other, each
  // in a document of its own, which is shown then: the document that has this path already, else the one
  // without a model, else a new one at the end. A .csv file is a packing problem, which the panel "arena"
  // shows beside the model. A .json file may be a saved request.
  void open(const std::string& path, const std::vector<Remedy>& with = {});
  // As open(), but the start page stays where it is and the model comes behind it.
  void open_beside(const std::string& path);
  // Opens a saved request (core/load/request/load_options.h) and applies it to `model`, else to the model
  // that it names, else to the present model. Throws Error.
  void open_request(const std::string& path, const std::string& model = {});
  void save_request(const std::string& path);
  // Writes the built-in demo model to a temporary folder, once, and opens it.
  void open_demo();
  // Shows a graph that is already there.
  void show(graph::MetaGraphPtr graph, std::string path);
  // Shows a model in the place of the document with that id, else of the one shown if that has no model, else
  // at the end.
  void adopt(ModelPtr model, std::uint64_t in_place_of = 0);
  // Reads the model again from its files. The question, the filter and the selection stay.
  void reload();
  // Reads the model shown again with other sides of its pictures; none: the usual ones.
  void take_picture_sides(std::vector<importers::NamedSide> sides);
  // Reads the model shown again if its request has other sides of pictures: it was undone or redone.
  void follow_picture_sides();
  // Closes the document that is shown, and shows the one beside it.
  void close_model();
  // The document that is shown. There always is one; a new model comes in a new document.
  Document& document() { return *documents_[shown_]; }
  const Document& document() const { return *documents_[shown_]; }
  // All of them, in the order of the tabs.
  const std::vector<std::unique_ptr<Document>>& documents() const { return documents_; }
  std::size_t shown_document() const { return shown_; }
  void show_document(std::size_t at);  // a position in documents(); others are ignored
  // Shows the document without a model, which is the start page; it comes at the end if there is none.
  void show_start();
  // The open model that is most like the one shown, by its number of weights: a converted file is compared
  // with its source. Nothing if no other model is open.
  std::optional<std::size_t> nearest_document() const;
  // The document with this id; null if it was closed.
  Document* find_document(std::uint64_t id) const;

  // Lists the devices, at every call again: their free memory changes, and with it what the first target,
  // which is this machine, can give.
  void find_devices();
  // The first model is asked whether it runs on this machine, with the prompt of the start page.
  void ask_of_this_machine();
  // The models of the start page are asked with this prompt and context (report::RunQuestion), and so is the
  // model that is opened next on it.
  void ask_models(std::uint64_t prompt, std::uint64_t context);
  // Lists and reads the models on this disk, unless that was done not long ago. Every frame of the start
  // page.
  void look_for_models();
  // Drops a path from the favorites and from the recent models.
  void forget_model(const std::string& path);
  const std::vector<gpu::DeviceInfo>& devices() const { return services.devices.or_empty(); }
  void choose_device(std::string device);
  // Takes the memory that this machine can give now for the first target.
  void measure_machine();
  // The targets besides this machine.
  void set_data_sheets(std::vector<load::Target> sheets);

  // Keeps the path of the model shown among the favorites, or drops it. Throws Error{usage} without a path.
  void toggle_favorite();
  void toggle_favorite(const std::string& path);

  // Applies remedies: opens `path` again with the options, sets options of the load, or passes options to the
  // convert panel.
  void mend(const std::vector<Remedy>& remedies, const std::string& path = {});
  // Quits, unless a conversion or an upload runs: then asks first, once.
  void ask_quit();
  // Calls `verb` and turns its Error into a notice: for buttons.
  void attempt(const std::function<void()>& verb);
  // Takes in the results of finished jobs; true if there were any.
  bool poll();
  bool busy() const {
    return !services.jobs.idle() || !waiting_.empty() || services.requests.holds<ExportRequest>();
  }
  // Called on another thread when poll() has something to do.
  void set_wake(const std::function<void()>& wake);

  Services services;
  Settings settings;
  LessonPlay lesson{services};
  LessonStage stage{*this};
  Places places;
  Shelf shelf;
  Transfers transfers{services, [this] { find_devices(); }};
  Latest<Model> opening;

 private:
  void take_panel();  // of the document shown, as it was left
  // A model to be opened.
  struct ToOpen {
    std::string name;                                   // of the job
    std::string path;                                   // as asked for; empty: not to be remembered
    std::function<std::string(Progress&)> locate = {};  // makes or finds the model; empty: it is at the path
    std::vector<Remedy> with = {};
    std::vector<importers::NamedSide> sides = {};
    std::optional<load::LoadRequest> request = {};  // asked of the model once it is there
    std::uint64_t in_place_of = 0;                  // the id of the document that is read again; 0: none
    bool beside = false;                            // a document without a model stays
  };
  void ask_open(ToOpen wanted);
  void open_next();
  void take_opened(const ToOpen& wanted);
  void replace(std::size_t at, ModelPtr model);
  void reload(std::size_t at);
  void read_again(std::size_t at, std::vector<importers::NamedSide> sides);
  void watch_files();
  void take_changed_files();

  std::deque<ToOpen> waiting_;                        // the first is being opened
  std::shared_ptr<io::TemporaryFolder> demo_;         // shared with the jobs that write to it
  std::vector<std::unique_ptr<Document>> documents_;  // never empty
  std::size_t shown_ = 0;
  FileWatch watch_;
};

// What a tab is called, not escaped: the model's name, and where another open model has that too, its file's.
std::string tab_title(const Workspace& workspace, const Document& document);

}  // namespace loadline::gui
