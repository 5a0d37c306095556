// The choice of method, order and ring, as several panels offer it.
#pragma once

#include "app/gui/session.h"
#include "app/gui/ui.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace loadline::gui {

// Method and order side by side.
void method_and_order(Session& session, const Ui& ui, float method_width, float order_width);
// Ring bytes, slots and activations, one under the other, with labels.
void ring_controls(Session& session, const Ui& ui);
// What the chosen method has a choice in, side by side in as many lines as it takes.
void method_options(Session& session, const Ui& ui);

// A label and a combo, on the line where they fit.
std::optional<std::size_t> labelled_combo(const Ui& ui, std::string_view label, float width,
                                          std::string_view current, std::span<const std::string_view> values,
                                          std::size_t at, std::string_view hint);
// What parse_size() reads back; empty for none.
std::string typed_size(const std::optional<std::uint64_t>& bytes);

// Where the weights go, for a method that keeps some off the device: layers, accelerate's map or rules. What
// is chosen shows for the others, too: it is why they cannot be done.
class PlacementControls {
 public:
  void draw(Session& session, const Ui& ui);

 private:
  // As typed, until enter is pressed or the field is left.
  struct Field {
    std::string typed = {};
    bool editing = false;
  };
  void draw_way(Session& session, const Ui& ui);
  static void draw_layers(Session& session, const Ui& ui);
  void draw_map(Session& session, const Ui& ui);
  void draw_rules(Session& session, const Ui& ui);
  static bool draw_field(const Ui& ui, const char* id, std::string_view label, float width, Field& field,
                         const std::string& now, const char* empty, std::string_view hint);

  bool wants_rules_ = false;  // chosen, before there are any
  Field device_, host_, rules_;
};

// Kind of memory, device, budgets and allocator, side by side in as many lines as it takes.
class MemoryControls {
 public:
  void draw(Session& session, const Ui& ui);

 private:
  static void draw_memory(Session& session, const Ui& ui);
  void draw_device(Session& session, const Ui& ui) const;
  void draw_allocator(Session& session, const Ui& ui) const;
  // What is typed stays until it is a size.
  struct Field {
    std::string typed = {};
    bool editing = false;
  };
  void draw_budget(Session& session, const Ui& ui, const char* id, std::string_view label, Field& field,
                   std::optional<std::uint64_t> Budget::*limit) const;

  Field device_;
  Field host_;
  Field unified_;
  bool narrow_ = false;
};

}  // namespace loadline::gui
