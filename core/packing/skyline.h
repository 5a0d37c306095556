// A partly filled arena in normal form: what is still to be placed, how low each may start, the least height
// of a section.
#pragma once

#include "core/packing/normal_form.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace loadline::packing {

// --- The least height at which the boxes over one section can be stacked.

// The state of a section while boxes are still to be placed over it. `floor`: the lowest start of any box.
// `on_floor`: how many boxes may start there. `top`: a lower bound for the height of a stack of all of them.
// This is the makespan of one machine with release dates: max over starts s of s + the sizes that start at s
// or later.
template <typename T>
struct SectionStack {
  T floor = 0;
  T total = 0;  // of all sizes
  T top = 0;
  std::uint32_t on_floor = 0;
};

// starts[ids[i]] >= 0 is the least offset of box i of `count` > 0, sizes[i] > 0 its size. The sum of all
// sizes and a start must fit in T. `scratch` has room for count + kStackPadding; up to kStackPadding elements
// past the end of `sizes` and `ids` may be read, but are not used.
inline constexpr std::size_t kStackPadding = 64;
SectionStack<std::int32_t> stack_section(const std::int32_t* starts, const std::uint32_t* ids,
                                         const std::int32_t* sizes, std::size_t count, std::int32_t* scratch);
SectionStack<std::int64_t> stack_section(const std::int64_t* starts, const std::uint32_t* ids,
                                         const std::int64_t* sizes, std::size_t count, std::int64_t* scratch);

// --- A partly filled arena in normal form: the boxes still to be placed, how low each may start, and the
// least height of each section. Placements and their undoing touch only the parts that change.

// T is int32_t or int64_t; check fits_in<T>() first.
//
// Sections are listed from left to right. If every box over a section also covers its neighbor, the section
// adds no constraint; it is unlisted until that changes. Linked neighbors that no box covers together belong
// to different components.
template <typename T>
class Skyline {
 public:
  static constexpr std::uint32_t kEnd = UINT32_MAX;  // marks the end of the list on either side

  // The model's boxes must be sorted by their first section.
  Skyline(SectionModel model, T capacity);

  const SectionModel& model() const { return model_; }
  // Whether every box has one range. If not, only boxes at the least floor of a component may be placed:
  // higher up, free space under another range of the box would be lost.
  bool whole() const { return whole_; }
  std::uint32_t section_count() const { return static_cast<std::uint32_t>(stacks_.size()); }
  T capacity() const { return capacity_; }

  // Both need a listed section. slack() is negative only if the problem has no solution from the start.
  const SectionStack<T>& stack(std::uint32_t section) const { return stacks_[section]; }
  T slack(std::uint32_t section) const { return capacity_ - stacks_[section].top; }
  // How far its floor may rise while the waiting boxes can still be stacked on it.
  T room(std::uint32_t section) const { return capacity_ - stacks_[section].floor - stacks_[section].total; }
  bool listed(std::uint32_t section) const { return listed_[section] != 0; }
  std::uint32_t next(std::uint32_t section) const { return next_[section]; }
  std::uint32_t previous(std::uint32_t section) const { return previous_[section]; }
  // The number of boxes that cover both `section` and next(section).
  std::uint32_t crossing(std::uint32_t section) const { return crossing_[section]; }
  // The boxes over a section that are still to be placed. Invalidated by place() and undo().
  std::span<const std::uint32_t> waiting(std::uint32_t section) const {
    return {ids_.data() + rows_[section], waiting_[section]};
  }
  // The least offset possible for a box; its offset once placed.
  T start(std::uint32_t box) const { return starts_[box]; }
  // A lower bound for the end of a waiting box over a section.
  T top_over(std::uint32_t box, std::uint32_t section) const {
    return starts_[box] + row_sizes_[places_[slot(box, section)]];
  }
  // The least offset, not below `level`, that the box's alignment and the obstacles allow.
  T fitting(std::uint32_t box, T level) const;

  // Places a box at its start, which must be the floor of every section that it covers. Returns false if a
  // section then lacks room for the rest; broken_section() names it. Undo in both cases.
  bool place(std::uint32_t box);
  // Requires that no more boxes start below `level` over the section.
  bool raise(std::uint32_t section, T level);
  std::uint32_t broken_section() const { return broken_; }

  struct Moment {
    std::size_t lifts = 0, figures = 0, placements = 0;
  };
  Moment now() const { return {lifts_.size(), figures_.size(), placements_.size()}; }
  void undo(const Moment& moment);
  // Bytes of the undo log in use, and bytes allocated for it.
  std::size_t logged() const { return lifts_.size() * sizeof(Lift) + figures_.size() * sizeof(Figure); }
  std::size_t log_bytes() const {
    return lifts_.capacity() * sizeof(Lift) + figures_.capacity() * sizeof(Figure);
  }

  // Two independent hashes of a component's state: which boxes wait and where they may start. The state alone
  // decides whether the rest can be placed. `from` and `to` are the component's first and last listed
  // sections.
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
    std::uint32_t crossing_of;  // section whose crossing count was replaced; kEnd if none
    std::uint32_t crossing;
  };
  struct Placement {
    std::uint32_t box;
    std::uint32_t first;  // the first listed section that it covered
    std::size_t unlinked;
  };
  struct Changed {
    std::uint32_t first, last;
  };
  // Starts above `from` and below `to` are blocked for a box.
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
    const SectionRange* range = model_.ranges_of(box).data();
    std::size_t at = slots_[box];
    for (; section >= range->last; ++range) at += range->last - range->first;
    return at + (section - range->first);
  }

  SectionModel model_;
  T capacity_;
  bool free_;   // neither alignments nor obstacles
  bool whole_;  // every box has one range; else sections stay listed and components are not split
  // by box
  std::vector<T> starts_;
  std::vector<char> waits_;
  std::vector<Hash> hashes_;
  std::vector<std::size_t> slots_;         // by box: start of its entries in places_
  std::vector<std::uint32_t> places_;      // by box and section: its index in ids_
  std::vector<std::uint32_t> beginning_;   // by section: the first box that begins there or later
  std::vector<std::vector<Barred>> bars_;  // by box; empty without obstacles
  // by section and box over it: the waiting boxes come first
  std::vector<std::uint32_t> rows_, ids_;
  std::vector<T> row_sizes_, scratch_;
  std::vector<std::vector<std::uint32_t>> obstacles_;  // over each section; empty without obstacles
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

}  // namespace loadline::packing
