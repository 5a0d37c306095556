// The modules of a forward pass with their operators, as a list that unfolds; repeated modules on one line.
#pragma once

#include "app/gui/parts/ui.h"
#include "app/gui/state/workspace.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace loadline::gui {

class ModuleLines {
 public:
  // For a document with operators.
  void draw(Workspace& workspace, const Ui& ui, float height);
  void forget();

 private:
  // A line: one operator, or a group of repeated modules.
  struct Line {
    std::string name;
    OpGroup group;                    // no members: an operator that shares its name with others
    std::optional<std::uint32_t> op;  // also for a module that is one operator and nothing else
    std::uint16_t depth = 0;
    bool branch = false;
  };
  void refresh(const Workspace& workspace);
  void unfold();
  // Unfolds the modules around an operator that was chosen elsewhere, except for folded repetitions.
  void reveal(const Document& document);
  void mark(const Document& document);
  std::vector<Line> inside(OpNodeId node, std::uint16_t depth) const;
  std::vector<OpGroup> groups_inside(OpNodeId node) const;
  Line line_of(OpGroup group, std::uint16_t depth) const;
  void move(Document& document, const Ui& ui);
  void choose(Document& document, const Line& line);
  void draw_line(Document& document, const Ui& ui, const Line& line, bool selected);
  void draw_name(Document& document, const Ui& ui, const Line& line, bool selected);
  void describe(const Ui& ui, const Line& line) const;

  std::shared_ptr<const ForwardScene> scene_;
  std::shared_ptr<const ForwardFigures> figures_;
  std::vector<std::uint64_t> peaks_;  // per node
  std::vector<bool> open_;            // per node; a group uses the flag of its first member
  std::vector<Line> lines_;
  std::optional<std::size_t> seen_;    // the operator that was revealed
  std::optional<std::size_t> marked_;  // the innermost line that holds the operator shown
  std::optional<std::size_t> at_;      // the line that the arrows came to
  bool scroll_ = false;                // to what is marked
  bool folded_ = true;
  bool stale_ = true;
};

}  // namespace loadline::gui
