// The views of the comparison: table, curves, overlay, and the order editor.
#pragma once

#include "app/gui/parts/widgets.h"
#include "app/gui/state/workspace.h"
#include "app/report/chart.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace loadline::gui {

// A row for each method and order, sorted as the settings say.
class MethodsTable {
 public:
  void draw(Workspace& workspace, const Ui& ui, ImVec2 size);

 private:
  void refresh(const Workspace& workspace);
  void move_choice(Workspace& workspace, const Ui& ui);
  void agree_on_sort(CompareSort& sort);

  std::shared_ptr<const report::AnswerWithCurves> seen_;  // what `at_` is of
  CompareSort sorted_;
  bool fits_only_ = false;
  std::set<std::string, std::less<>> compared_;
  std::vector<std::size_t> at_;
  int scroll_ = 0;  // frames in which the chosen row is brought into sight
  double most_ = 1;
  SortArrows arrows_;
};

// Draws a small plot for each method, all on one scale.
void draw_methods_curves(Workspace& workspace, const Ui& ui, ImVec2 size);
// The rows of the methods that this document compares.
std::vector<report::DrawnRow> compared_rows(const Document& document, const report::ChartSubject& subject);
// Draws a curve for each of a few methods over each other, in the space in which they differ most.
void draw_methods_overlay(Document& document, const Ui& ui, ImVec2 size);
// The methods in the overlay: those picked by the user, else a few from the lowest to the highest peak.
std::vector<report::DrawnRow> overlaid_rows(const Document& document,
                                            const std::vector<report::DrawnRow>& rows);

// The order of the load as a list of rows to drag, with the path of a file to load or save.
class OrderEditor {
 public:
  void draw(Workspace& workspace, const Ui& ui, ImVec2 size);

 private:
  void draw_file(Workspace& workspace, const Ui& ui);
  void draw_item(Document& document, const Ui& ui, std::size_t at);

  std::string path_;
  // the change that a row requested in this frame
  enum class Wish { none, move, fold };
  Wish wish_ = Wish::none;
  std::size_t from_ = 0, to_ = 0;
};

// The bytes that decide, and behind them whether they are too many: the figure is red then, which not
// everyone sees.
std::string leading_figure(const load::LoadRow& row);
// Chooses the method of a row, and its order if the order is in the table of orders.
void choose_row(Workspace& workspace, const load::LoadRow& row);
// Draws the hover card of a row: what the method does, why it cannot be used, exact figures.
void row_card(const Document& document, const Ui& ui, const load::LoadRow& row);

}  // namespace loadline::gui
