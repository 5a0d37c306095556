// The models on this disk, each with what it is and whether it runs here: for the start page.
#pragma once

#include "app/gui/state/base/jobs.h"
#include "app/report/does_it_run.h"
#include "importers/stores.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::gui {

struct Services;

struct ShelfModel {
  importers::StoredModel stored;
  bool favorite = false, recent = false;
  bool gone = false;      // a favorite or recent path at which nothing lies
  std::int64_t used = 0;  // when it was opened here last, seconds since 1970; 0: never
  std::shared_ptr<const report::ModelFacts> facts = {};  // null: not read yet
  // Whether it is known what there is to say.
  bool is_answered() const { return gone || stored.path.empty() || (facts && facts->is_judged()); }
  // Why it is not whole; empty if it is, or if that is not known.
  std::string missing_part() const;
  bool runs() const;
};

// --- Which of them are listed, and in which order.

// `kept`: favorites, then recent ones, then by store and name.
enum class ShelfColumn : std::uint8_t { kept, name, size, verdict, context, used };
inline constexpr std::array<std::string_view, 6> kShelfColumnNames = {"kept",    "name",    "size",
                                                                      "verdict", "context", "used"};
struct ShelfView {
  std::string filter = {};  // words that name, path, type or format contain, in any order
  bool only_runs = false;
  ShelfColumn by = ShelfColumn::kept;
  bool ascending = true;
};
// Positions of the models that the view shows. What has no figure to sort by comes last.
std::vector<std::size_t> shelf_rows(std::span<const ShelfModel> models, const ShelfView& view);

// Lists and reads in the background, a few models at a time. Used from one thread.
class Shelf {
 public:
  Shelf(Services& services, importers::StorePlaces places)
      : services_(services), places_(std::move(places)) {}
  Shelf(const Shelf&) = delete;
  Shelf& operator=(const Shelf&) = delete;

  // Where what is read is kept for the next run of the program. Before the first look().
  void keep_in(report::KeptFacts kept) { kept_ = std::move(kept); }

  // What is looked for besides the stores of programs, and what is asked of each model.
  struct Wanted {
    std::vector<std::string> favorites = {}, recent = {}, folders = {};  // paths
    std::map<std::string, std::int64_t> used = {};                       // when a path was opened last
    std::uint64_t prompt = report::kUsualPrompt, context = 0;  // tokens, as report::RunQuestion has them
    bool operator==(const Wanted&) const = default;
  };
  // Lists the models, favorites and recent ones first, and reads those that are new, or of which files or the
  // machine's memory have changed. Does nothing while the list is being made.
  void look(Wanted wanted);
  // Whether look() was called for this, for the memory that the machine can give now, and not long ago.
  bool is_current(const Wanted& wanted) const;
  const std::vector<ShelfModel>& models() const { return models_; }
  ShelfView view = {};
  bool listing() const { return listed_.busy(); }
  // Whether the models that are listed have answers to another question.
  bool asks_anew() const { return asks_anew_; }
  // Models that are not read yet, or not asked this question.
  std::size_t unread() const;
  // What they are asked.
  const report::RunQuestion& question() const { return question_; }
  const importers::StorePlaces& places() const { return places_; }

 private:
  struct Read {
    std::size_t at = 0;
    std::shared_ptr<const report::ModelFacts> facts;
  };
  struct Listed {
    importers::StoredModels found;
    std::optional<report::KeptFacts> kept;  // what earlier runs have read, once
  };
  report::RunQuestion asked(const Wanted& wanted) const;
  void take_list();
  void read_next();
  void write_kept();

  Services& services_;
  importers::StorePlaces places_;
  std::vector<ShelfModel> models_;
  report::KeptFacts kept_;
  bool has_read_kept_ = false;
  report::RunQuestion question_;
  std::string question_text_;  // empty: nothing is asked yet
  bool asks_anew_ = false;     // since the models were listed
  Wanted wanted_;
  std::chrono::steady_clock::time_point looked_at_ = {};
  Latest<Listed> listed_;
  Latest<std::vector<Read>> read_;
  Latest<std::string> written_;  // why it could not be; empty: it was
};

}  // namespace loadline::gui
