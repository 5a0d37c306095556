// A partly filled arena in normal form: what is still to be placed, how low each box may start, and what
// each section needs at least; placements and their undoing touch only what they change.
#pragma once

#include "core/packing/section_model.h"
#include "core/packing/section_stack.h"

#include <cstdint>
#include <vector>

namespace loadline {

// T is int32_t or int64_t; check fits_in<T>() first.
//
// Sections are listed from left to right. One over which only boxes stand that all stand over its
// neighbour too says nothing of its own and leaves the list until that changes back. Linked neighbours over
// which no box stands in common belong to different components.
template <typename T>
class Skyline {
 public:
  static constexpr std::uint32_t kEnd = UINT32_MAX;  // beside the first and the last listed section

  // The model's boxes are sorted by their first section.
  Skyline(SectionModel model, T capacity);

  const SectionModel& model() const { return model_; }
  // Whether every box has one range. Else only boxes at the least floor of a component may be placed: further
  // up, what is free under another range of the box would be lost.
  bool whole() const { return whole_; }
  std::uint32_t section_count() const { return static_cast<std::uint32_t>(stacks_.size()); }
  T capacity() const { return capacity_; }

  // Of a listed section. slack() is negative only where the problem has no solution from the outset.
  const SectionStack<T>& stack(std::uint32_t section) const { return stacks_[section]; }
  T slack(std::uint32_t section) const { return capacity_ - stacks_[section].top; }
  // How far its floor may rise before what waits can no longer be stacked on it.
  T room(std::uint32_t section) const { return capacity_ - stacks_[section].floor - stacks_[section].total; }
  bool listed(std::uint32_t section) const { return listed_[section] != 0; }
  std::uint32_t next(std::uint32_t section) const { return next_[section]; }
  std::uint32_t previous(std::uint32_t section) const { return previous_[section]; }
  // Boxes that stand over both `section` and next(section).
  std::uint32_t crossing(std::uint32_t section) const { return crossing_[section]; }
  // The boxes over a section that are still to be placed. Invalidated by place() and undo().
  struct Ids {
    const std::uint32_t* from;
    const std::uint32_t* to;
    const std::uint32_t* begin() const { return from; }
    const std::uint32_t* end() const { return to; }
    bool empty() const { return from == to; }
  };
  Ids waiting(std::uint32_t section) const {
    const std::uint32_t* ids = ids_.data() + rows_[section];
    return {ids, ids + waiting_[section]};
  }
  // The least offset that is left for a box; its offset once placed.
  T start(std::uint32_t box) const { return starts_[box]; }
  // Where something that waits over a section ends at least.
  T top_over(std::uint32_t box, std::uint32_t section) const {
    return starts_[box] + row_sizes_[places_[slot(box, section)]];
  }
  // The least offset from `level` on that a box's alignment and the obstacles leave it.
  T fitting(std::uint32_t box, T level) const;

  // Places a box at its start, which is the floor of every section that it stands over. False when a
  // section then has no room for the rest; broken_section() says which. Undo either way.
  bool place(std::uint32_t box);
  // Nothing more starts below `level` over the section.
  bool raise(std::uint32_t section, T level);
  std::uint32_t broken_section() const { return broken_; }

  struct Moment {
    std::size_t lifts = 0, figures = 0, placements = 0;
  };
  Moment now() const { return {lifts_.size(), figures_.size(), placements_.size()}; }
  void undo(const Moment& moment);
  // Bytes of what undoing needs now, and of what is set aside for it.
  std::size_t logged() const { return lifts_.size() * sizeof(Lift) + figures_.size() * sizeof(Figure); }
  std::size_t log_bytes() const {
    return lifts_.capacity() * sizeof(Lift) + figures_.capacity() * sizeof(Figure);
  }

  // Two independent hashes of the state of a component: which boxes wait and where they may start. A state
  // decides whether the rest can be placed. `from` and `to` are its first and last listed sections.
  struct Hash {
    std::uint64_t a = 0, b = 0;
  };
  Hash hash(std::uint32_t from, std::uint32_t to) const;

 private:
  struct Lift {
    std::uint32_t box;
    T start;
  };
  struct Figure {
    std::uint32_t section;
    SectionStack<T> stack;
  };
  struct Unlinked {
    std::uint32_t section;
    std::uint32_t crossing_of;  // whose count took the place of its own; kEnd for none
    std::uint32_t crossing;
  };
  struct Placement {
    std::uint32_t box;
    std::uint32_t first;  // the first listed section that it stood over
    std::size_t unlinked;
  };
  struct Changed {
    std::uint32_t first, last;
  };
  // Where a box may not start: above `from`, below `to`.
  struct Barred {
    T from, to;
  };

  void index_boxes();
  void index_obstacles();
  void rehash(std::uint32_t box);
  void lift(std::uint32_t box, T start);
  void leave(std::uint32_t box, std::uint32_t section);
  void close(std::uint32_t box);
  void reopen(const Placement& placement);
  void merge_ends(std::uint32_t first, std::uint32_t last);
  void unlink(std::uint32_t section, std::uint32_t crossing_of);
  void relink(const Unlinked& gone);
  void measure(std::uint32_t section);
  void measure_around(std::uint32_t section);
  void raise_over(std::uint32_t section, T level, Changed& changed);
  bool remeasure(Changed range);
  std::size_t slot(std::uint32_t box, std::uint32_t section) const {
    const SectionRange* range = model_.ranges_of(box).begin();
    std::size_t at = slots_[box];
    for (; section >= range->last; ++range) at += range->last - range->first;
    return at + (section - range->first);
  }

  SectionModel model_;
  T capacity_;
  bool free_;   // neither alignments nor obstacles
  bool whole_;  // every box in one range; else sections stay listed and components together
  // by box
  std::vector<T> starts_;
  std::vector<char> waits_;
  std::vector<Hash> hashes_;
  std::vector<std::size_t> slots_;        // where its places begin
  std::vector<std::uint32_t> places_;     // by box and section: its index in ids_
  std::vector<std::uint32_t> beginning_;  // by section: the first box that begins there or later
  std::vector<std::size_t> bars_from_;    // where its bars begin; empty without obstacles
  std::vector<Barred> bars_;
  // by section and box over it: those that wait come first
  std::vector<std::uint32_t> rows_, ids_;
  std::vector<T> row_sizes_, scratch_;
  // by section and obstacle over it
  std::vector<std::uint32_t> obstacle_rows_, obstacles_;
  // by section
  std::vector<SectionStack<T>> stacks_;
  std::vector<std::uint32_t> waiting_, crossing_, next_, previous_;
  std::vector<char> listed_;
  std::uint32_t broken_ = 0;

  std::vector<Lift> lifts_;
  std::vector<Figure> figures_;
  std::vector<Unlinked> unlinked_;
  std::vector<Placement> placements_;
};

extern template class Skyline<std::int32_t>;
extern template class Skyline<std::int64_t>;

}  // namespace loadline
