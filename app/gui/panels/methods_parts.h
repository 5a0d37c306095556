// The views of the comparison: rows, curves, and the order that somebody arranges.
#pragma once

#include "app/gui/widgets.h"
#include "app/gui/workspace.h"
#include "app/report/pictured_answer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace loadline::gui {

// A row for each method and order, sorted as the settings say.
class MethodsTable {
 public:
  void draw(Workspace& workspace, const Ui& ui, ImVec2 size);

 private:
  void refresh(const Workspace& workspace);
  void agree_on_sort(CompareSort& sort);

  std::shared_ptr<const report::PicturedAnswer> seen_;  // what `at_` is of
  CompareSort sorted_;
  std::vector<std::size_t> at_;
  double most_ = 1;
  SortArrows arrows_;
};

// A small plot for each method, all to one scale.
void draw_methods_curves(Workspace& workspace, const Ui& ui, ImVec2 size);
// What decides, of a few methods, over each other.
void draw_methods_overlay(Document& document, const Ui& ui, ImVec2 size);
// The methods whose curves lie over each other: those picked, else a few from the least to the most.
std::vector<report::PicturedRow> overlaid_rows(const Document& document,
                                               const std::vector<report::PicturedRow>& rows);

// The order of the load as a list to drag rows of, and its file.
class OrderEditor {
 public:
  void draw(Workspace& workspace, const Ui& ui, ImVec2 size);

 private:
  void draw_file(Workspace& workspace, const Ui& ui);
  void draw_item(Document& document, const Ui& ui, std::size_t at);

  std::string path_;
  // what a row asked for this frame
  enum class Wish { none, move, fold };
  Wish wish_ = Wish::none;
  std::size_t from_ = 0, to_ = 0;
};

// Of the memory that decides: the device's, or the one that all share.
std::optional<std::uint64_t> leading_budget(const BoundRequest& bound);
// Chooses the method of a row, and its order where that is one of the table.
void choose_row(Workspace& workspace, const LoadRow& row);
// What a pointer on a row says: what the method does, why it cannot be done, exact figures.
void row_card(const Document& document, const Ui& ui, const LoadRow& row);

}  // namespace loadline::gui
