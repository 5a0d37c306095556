// The models on this disk, each with what it is and whether it runs here: for the start page.
#pragma once

#include "app/gui/state/base/jobs.h"
#include "app/report/does_it_run.h"
#include "core/graph/names/tensor_names.h"
#include "core/view/layouts.h"
#include "importers/stores.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace loadline::gui {

struct Services;

// A rectangle of a thumbnail, in a picture of kThumbWidth x kThumbHeight.
inline constexpr double kThumbWidth = 56, kThumbHeight = 34;
struct ThumbTile {
  view::Rect rect;
  graph::Role role{};
};

// What was read of a model.
struct ShelfFacts {
  std::optional<report::ModelRow> row = {};
  std::string fault = {};  // why there is no row
  std::vector<ThumbTile> map = {};
  bool tried_types = false;  // row->better and row->no_better are what they will be
};

struct ShelfModel {
  importers::StoredModel stored;
  bool favorite = false, recent = false;
  bool gone = false;                             // a favorite or recent path at which nothing lies
  std::shared_ptr<const ShelfFacts> facts = {};  // null: not read yet
};

// Lists and reads in the background, a few models at a time. Used from one thread.
class Shelf {
 public:
  Shelf(Services& services, importers::StorePlaces places)
      : services_(services), places_(std::move(places)) {}
  Shelf(const Shelf&) = delete;
  Shelf& operator=(const Shelf&) = delete;

  // What is looked for besides the stores of programs. Paths.
  struct Wanted {
    std::vector<std::string> favorites = {}, recent = {}, folders = {};
    bool operator==(const Wanted&) const = default;
  };
  // Lists the models, favorites and recent ones first, and reads those that are new, or of which files or the
  // machine's memory have changed. Does nothing while the list is being made.
  void look(Wanted wanted);
  // Whether look() was called for this, for the memory that the machine can give now, and not long ago.
  bool is_current(const Wanted& wanted) const;
  const std::vector<ShelfModel>& models() const { return models_; }
  bool listing() const { return listed_.busy(); }
  // Models that are not read yet.
  std::size_t unread() const;
  const importers::StorePlaces& places() const { return places_; }

 private:
  struct Read {
    std::size_t at = 0;
    std::shared_ptr<const ShelfFacts> facts;
  };
  struct Kept {
    std::uint64_t bytes = 0;
    std::int64_t changed = 0;
    std::shared_ptr<const ShelfFacts> facts;
  };
  void take_list();
  void read_next();

  Services& services_;
  importers::StorePlaces places_;
  std::vector<ShelfModel> models_;
  std::map<std::string, Kept> kept_;     // by path
  std::optional<std::uint64_t> memory_;  // of the machine, that kept_ is of
  Wanted wanted_;
  std::chrono::steady_clock::time_point looked_at_ = {};
  Latest<importers::StoredModels> listed_;
  Latest<std::vector<Read>> read_;
};

}  // namespace loadline::gui
