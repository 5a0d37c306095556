// The choice of method, order and ring, as several panels offer it.
#pragma once

#include "app/gui/ui.h"
#include "app/gui/workspace.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace loadline::gui {

// Method and order side by side.
void method_and_order(Workspace& workspace, const Ui& ui, float method_width, float order_width);
// Ring bytes, slots and activations, one under the other, with labels.
void ring_controls(Workspace& workspace, const Ui& ui);
// What the chosen method has a choice in, side by side in as many lines as it takes.
void method_options(Workspace& workspace, const Ui& ui);

// A label and a combo, on the line where they fit with `behind` more pixels.
std::optional<std::size_t> labelled_combo(const Ui& ui, std::string_view label, float width,
                                          std::string_view current, std::span<const std::string_view> values,
                                          std::size_t at, std::string_view hint, float behind = 0);
// What is typed stays until enter is pressed or the field is left.
struct TypedField {
  std::string typed = {};
  bool editing = false;
};
// A label, which may be empty, and a field of `width` for text, on the line where they fit: `now` until
// somebody types. True when what was typed counts. They take labelled_field_width() of a line that goes on.
float labelled_field_width(const Ui& ui, std::string_view label, float width);
bool labelled_field(const Ui& ui, const char* id, std::string_view label, float width, TypedField& field,
                    const std::string& now, const char* empty, std::string_view hint);
// What parse_size() reads back; empty for none.
std::string typed_size(const std::optional<std::uint64_t>& bytes);

// Where the weights go, for a method that keeps some off the device: layers, accelerate's map or rules. What
// is chosen shows for the others, too: it is why they cannot be done.
class PlacementControls {
 public:
  void draw(Workspace& workspace, const Ui& ui);

 private:
  void draw_way(Workspace& workspace, const Ui& ui);
  static void draw_layers(Workspace& workspace, const Ui& ui);
  void draw_map(Workspace& workspace, const Ui& ui);
  void draw_rules(Workspace& workspace, const Ui& ui);

  bool wants_rules_ = false;  // chosen, before there are any
  TypedField device_, host_, rules_;
};

// Kind of memory, device, budgets and allocator, side by side in as many lines as it takes.
class MemoryControls {
 public:
  void draw(Workspace& workspace, const Ui& ui);

 private:
  static void draw_memory(Workspace& workspace, const Ui& ui);
  void draw_device(Workspace& workspace, const Ui& ui) const;
  void draw_allocator(Workspace& workspace, const Ui& ui) const;
  void draw_budget(Workspace& workspace, const Ui& ui, const char* id, std::string_view label,
                   TypedField& field, std::optional<std::uint64_t> Budget::*limit) const;

  TypedField device_, host_, unified_;
  bool narrow_ = false;
};

}  // namespace loadline::gui
