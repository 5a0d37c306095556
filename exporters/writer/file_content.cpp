// Header, slots, pieces and checksums of one file.

#include "core/base/error.h"
#include "core/io/source_file.h"
#include "exporters/exporter.h"
#include "exporters/writer/pipeline.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <vector>

#include <zlib.h>

namespace loadline::exporters {

// --- Little-endian elements are copied unchanged; big-endian numbers are byte-swapped.

class ElementStream::Impl {
 public:
  Impl(const graph::MetaGraph& source, const graph::MetaArray& array)
      : array_(array),
        file_(io::SourceFile::open(source.file(array.file).path)),
        in_(file_, array.offset, array.offset + array.bytes) {
    in_.set_big_endian(true);
    if (array_.big_endian && array_.element != graph::MetaType::string && array_.count > 0)
      swapped_ = array_.bytes / array_.count;
    text_left_ = array_.big_endian ? 0 : array_.bytes;
  }

  std::span<const std::byte> next() {
    if (swapped_ > 0) return next_numbers();
    if (text_left_ > 0) return next_bytes();
    if (array_.big_endian && strings_ < array_.count) return next_length();
    if (in_.remaining() > 0) throw in_.malformed(in_.at(), "the array has changed since the file was opened");
    return {};
  }

 private:
  static constexpr std::uint64_t kPiece = 64 << 10;

  std::span<const std::byte> next_bytes() {
    piece_.resize(static_cast<std::size_t>(std::min(text_left_, kPiece)));
    in_.read_bytes(piece_, "metadata");
    text_left_ -= piece_.size();
    return piece_;
  }

  std::span<const std::byte> next_length() {
    text_left_ = in_.read<std::uint64_t>("a string's length");
    if (text_left_ > in_.remaining()) in_.skip(text_left_, "a string");  // an Error with both numbers
    ++strings_;
    piece_.clear();
    append_u64(piece_, text_left_);
    return piece_;
  }

  std::span<const std::byte> next_numbers() {
    piece_.resize(static_cast<std::size_t>(std::min(in_.remaining(), kPiece / swapped_ * swapped_)));
    in_.read_bytes(piece_, "metadata");
    for (auto at = piece_.begin(); at != piece_.end(); at += static_cast<std::ptrdiff_t>(swapped_))
      std::reverse(at, at + static_cast<std::ptrdiff_t>(swapped_));
    return piece_;
  }

  const graph::MetaArray& array_;
  io::SourceFile file_;
  io::Cursor in_;
  std::vector<std::byte> piece_;
  std::uint64_t swapped_ = 0;    // bytes of a number whose bytes change places
  std::uint64_t text_left_ = 0;  // bytes that are copied before the next length
  std::uint64_t strings_ = 0;    // whose lengths have been passed
};

ElementStream::ElementStream(const graph::MetaGraph& source, const graph::MetaArray& array)
    : impl_(std::make_unique<Impl>(source, array)) {}
ElementStream::~ElementStream() = default;
std::span<const std::byte> ElementStream::next() { return impl_->next(); }

void HeaderStream::read(std::span<std::byte> out) {
  while (!out.empty()) {
    if (piece_.empty()) piece_ = next_piece();
    assert(!piece_.empty());
    const std::size_t bytes = std::min(piece_.size(), out.size());
    std::memcpy(out.data(), piece_.data(), bytes);
    piece_ = piece_.subspan(bytes);
    out = out.subspan(bytes);
    at_ += bytes;
  }
}

std::span<const std::byte> HeaderStream::next_piece() {
  if (elements_) {
    if (const auto piece = elements_->next(); !piece.empty()) return piece;
    elements_.reset();
    ++copy_;
  }
  while (copy_ < file_.copies.size() && file_.copies[copy_].at == at_) {
    elements_ = std::make_unique<ElementStream>(source_, file_.copies[copy_].array);
    if (const auto piece = elements_->next(); !piece.empty()) return piece;
    elements_.reset();
    ++copy_;
  }
  const auto rest = std::span(file_.header).subspan(header_at_);
  const auto before_copy =
      copy_ < file_.copies.size() ? static_cast<std::size_t>(file_.copies[copy_].at - at_) : rest.size();
  header_at_ += before_copy;
  return rest.first(before_copy);
}

// --- Cuts header, slots and pieces into windows.

namespace {

// Whether reading the storage from the front to the back is much cheaper than otherwise.
bool decodes(const graph::MetaGraph& graph, graph::TensorId tensor) {
  const graph::Encoding encoding = graph.storage(graph.tensor(tensor).storage).encoding;
  return encoding != graph::Encoding::plain && encoding != graph::Encoding::byte_swapped;
}

std::uint32_t crc_of(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::uint32_t joined(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes) {
  return static_cast<std::uint32_t>(::crc32_combine(first, second, static_cast<z_off_t>(second_bytes)));
}

}  // namespace

convert::RecipeReader& RecipeBuffers::reader(const graph::MetaGraph& source, const io::ReadTensor& read,
                                             const Slot& slot) {
  if (slot_ != &slot) {
    reader_.reset();  // frees its buffers before the next ones are made
    reader_.emplace(source, read, slot.recipe, memory_);
    slot_ = &slot;
  }
  return *reader_;
}

FileContent::FileContent(const LayoutFile& file, const graph::MetaGraph& source, const io::ReadTensor& read,
                         std::uint64_t memory)
    : file_(file),
      source_(source),
      read_(read),
      header_(header_bytes(file)),
      stream_(file, source),
      in_order_(memory),
      crcs_(file.checksums.size(), 0) {
  for (std::size_t i = 0; i < file.checksums.size(); ++i)
    for (const std::uint64_t at : file.checksums[i].at) places_.emplace_back(at, i);
  std::ranges::sort(places_);
  if (file.copy_of.empty()) return;
  copied_ = io::SourceFile::open(file.copy_of);
  if (copied_->size() != file.bytes)
    throw Error(ErrorCode::io, {.file = file.copy_of}, "has {} bytes now, it had {}", copied_->size(),
                file.bytes);
}

void FileContent::pass(std::uint64_t offset, std::span<const std::byte> bytes) {
  join_crcs(offset, crcs_of(offset, bytes));
}

FileContent::Crcs FileContent::crcs_of(std::uint64_t offset, std::span<const std::byte> bytes) const {
  Crcs crcs;
  const std::uint64_t end = offset + bytes.size();
  for (auto range = first_checksum(offset); range != file_.checksums.end() && range->begin < end; ++range) {
    const std::uint64_t from = std::max(range->begin, offset), to = std::min(range->end, end);
    const auto part =
        bytes.subspan(static_cast<std::size_t>(from - offset), static_cast<std::size_t>(to - from));
    crcs.emplace_back(crc_of(part), part.size());
  }
  return crcs;
}

void FileContent::join_crcs(std::uint64_t offset, const Crcs& crcs) {
  auto range = first_checksum(offset);
  for (const auto& [crc, bytes] : crcs) {
    std::uint32_t& whole = crcs_[static_cast<std::size_t>(range++ - file_.checksums.begin())];
    whole = joined(whole, crc, bytes);
  }
}

std::vector<Checksum>::const_iterator FileContent::first_checksum(std::uint64_t offset) const {
  return std::ranges::partition_point(file_.checksums,
                                      [&](const Checksum& range) { return range.end <= offset; });
}

bool FileContent::reads_in_order(const Slot& slot) const {
  return std::ranges::any_of(convert::recipe_tensors(source_, slot.recipe),
                             [&](graph::TensorId tensor) { return decodes(source_, tensor); });
}

void FileContent::begin(Window& window) {
  window.parts.clear();
  window.crcs.clear();
  const std::uint64_t end = window.offset + window.bytes.size();
  for (std::uint64_t at = window.offset; at < end;) at = begin_next(window, at);
}

// Begins with what lies at `at`, and returns where that ends in the window.
std::uint64_t FileContent::begin_next(Window& window, std::uint64_t at) {
  const std::uint64_t end = window.offset + window.bytes.size();
  const auto bytes_to = [&](std::uint64_t upto) {
    return window.bytes.subspan(static_cast<std::size_t>(at - window.offset),
                                static_cast<std::size_t>(std::min(upto, end) - at));
  };
  if (copied_) {
    window.parts.push_back({nullptr, at, bytes_to(end)});
    return end;
  }
  if (at < header_) {
    const auto out = bytes_to(header_);
    stream_.read(out);
    return at + out.size();
  }
  const auto slot_end = [&] { return file_.slots[slot_].offset + file_.slots[slot_].bytes; };
  const auto piece_end = [&] { return file_.pieces[piece_].offset + file_.pieces[piece_].bytes.size(); };
  while (slot_ < file_.slots.size() && slot_end() <= at) ++slot_;
  while (piece_ < file_.pieces.size() && piece_end() <= at) ++piece_;
  std::uint64_t next = UINT64_MAX;
  if (slot_ < file_.slots.size()) next = file_.slots[slot_].offset;
  if (piece_ < file_.pieces.size()) next = std::min(next, file_.pieces[piece_].offset);
  if (next > at) {
    const auto gap = bytes_to(next);
    std::ranges::fill(gap, std::byte{0});
    return at + gap.size();
  }
  if (piece_ < file_.pieces.size() && file_.pieces[piece_].offset <= at) {
    const Piece& piece = file_.pieces[piece_];
    const auto out = bytes_to(piece_end());
    std::memcpy(out.data(), piece.bytes.data() + (at - piece.offset), out.size());
    return at + out.size();
  }
  const Slot& slot = file_.slots[slot_];
  const Window::Part part{&slot, at - slot.offset, bytes_to(slot_end())};
  if (reads_in_order(slot))
    read_part(part, in_order_);
  else
    window.parts.push_back(part);
  return at + part.bytes.size();
}

void FileContent::read_part(const Window::Part& part, RecipeBuffers& buffers) const {
  if (part.slot == nullptr) return copied_->read_at(part.from, part.bytes);
  const Slot& slot = *part.slot;
  const auto copied = convert::copied_tensor(slot.recipe);
  const auto read = [&](std::uint64_t offset, std::span<std::byte> out) {
    if (copied) return read_(*copied, offset, out);
    buffers.reader(source_, read_, slot).read(offset, out);
  };
  const auto note_faults = [&](bool again) {
    if (copied) return;
    const convert::NumberFaults found = buffers.reader(source_, read_, slot).take_faults();
    if (again || !found.any()) return;
    const std::lock_guard lock(mutex_);
    convert::NumberFaults& all = faults_[&slot];
    all.overflowed += found.overflowed;
    all.special += found.special;
  };
  // an element, or block, that the window's border cuts is read whole
  const std::uint64_t unit = std::max<std::uint64_t>(graph::dtype_info(slot.dtype).block_bytes, 1);
  const auto read_cut = [&](std::uint64_t offset, std::span<std::byte> out) {
    std::vector<std::byte> whole(static_cast<std::size_t>(std::min(unit, slot.bytes - offset / unit * unit)));
    read(offset / unit * unit, whole);
    note_faults(offset % unit != 0);  // the window before has counted them
    std::memcpy(out.data(), whole.data() + offset % unit, out.size());
  };
  std::uint64_t at = part.from;
  auto out = part.bytes;
  const auto cut = [&](std::uint64_t bytes) {
    const auto first = out.first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, out.size())));
    read_cut(at, first);
    at += first.size();
    out = out.subspan(first.size());
  };
  if (at % unit != 0) cut(unit - at % unit);
  const std::uint64_t whole = out.size() / unit * unit;
  if (whole > 0) {
    read(at, out.first(static_cast<std::size_t>(whole)));
    note_faults(false);
  }
  at += whole;
  out = out.subspan(static_cast<std::size_t>(whole));
  if (!out.empty()) cut(out.size());
}

std::map<const Slot*, convert::NumberFaults> FileContent::faults() const {
  const std::lock_guard lock(mutex_);
  return faults_;
}

void FileContent::fill(Window& window, RecipeBuffers& buffers) const {
  for (const Window::Part& part : window.parts) read_part(part, buffers);
  window.crcs = crcs_of(window.offset, window.bytes);
}

void FileContent::finish(Window& window) {
  const std::uint64_t end = window.offset + window.bytes.size();
  join_crcs(window.offset, window.crcs);
  // the border of a window may cut a checksum
  constexpr std::uint64_t kSize = sizeof(std::uint32_t);
  const std::uint64_t first = window.offset - std::min(window.offset, kSize - 1);
  for (auto place = std::ranges::lower_bound(places_, first, {}, &Place::first);
       place != places_.end() && place->first < end; ++place)
    for (std::uint64_t i = 0; i < kSize; ++i)
      if (const std::uint64_t at = place->first + i; at >= window.offset && at < end)
        window.bytes[static_cast<std::size_t>(at - window.offset)] =
            static_cast<std::byte>(crcs_[place->second] >> (8 * i));
}

}  // namespace loadline::exporters
