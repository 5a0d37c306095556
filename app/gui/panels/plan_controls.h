// The choice of method, order and ring, as several panels offer it.
#pragma once

#include "app/gui/session.h"
#include "app/gui/ui.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace loadline::gui {

// Method and order side by side.
void method_and_order(Session& session, const Ui& ui, float method_width, float order_width);
// Ring bytes, slots and activations, one under the other, with labels.
void ring_controls(Session& session, const Ui& ui);
// What the chosen method has a choice in, side by side in as many lines as it takes.
void method_options(Session& session, const Ui& ui);

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
