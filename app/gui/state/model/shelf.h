// The models on this disk, each with what it is and whether it runs here: for the start page.
#pragma once

#include "app/gui/state/base/jobs.h"
#include "app/report/does_it_run.h"
#include "core/graph/names/tensor_names.h"
#include "core/view/layouts.h"
#include "importers/stores.h"

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

// What was read of a model; `bytes`, `changed` and `target` say of what state of the files and of the
// machine.
struct ShelfFacts {
  std::optional<report::ModelRow> row = {};
  std::string fault = {};  // why there is no row
  std::vector<ThumbTile> map = {};
  bool tried_types = false;  // row->better is what it will be
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

  // Lists the models, favorites and recent ones first, and reads those that are new, or of which files or the
  // machine's memory have changed. Does nothing while that is under way.
  void look(const std::vector<std::string>& favorites, const std::vector<std::string>& recent);
  // Whether look() has been called for the memory that the machine has now.
  bool is_current() const;
  const std::vector<ShelfModel>& models() const { return models_; }
  bool listing() const { return listed_.busy(); }
  // Models that are not read yet.
  std::size_t unread() const;
  // Folders besides the stores of programs.
  void set_folders(std::vector<std::string> folders);
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
  void take_list(const std::vector<std::string>& favorites, const std::vector<std::string>& recent);
  void read_next();

  Services& services_;
  importers::StorePlaces places_;
  std::vector<ShelfModel> models_;
  std::map<std::string, Kept> kept_;     // by path
  std::optional<std::uint64_t> memory_;  // of the machine, that kept_ is of
  Latest<std::vector<importers::StoredModel>> listed_;
  Latest<std::vector<Read>> read_;
};

}  // namespace loadline::gui
