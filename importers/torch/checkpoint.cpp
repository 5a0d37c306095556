// Files of torch.save: the stream before torch 1.6 and the zip archive since.

#include "core/base/checked_arithmetic.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/graph/names/file_names.h"
#include "importers/formats.h"
#include "importers/huggingface/index.h"
#include "importers/importer.h"
#include "importers/torch/values.h"
#include "importers/wire/zip.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/core.h>

namespace loadline::importers {

// --- torch.save before 1.6 (torch 2.13: torch/serialization.py _legacy_save, _legacy_load).
//
//   pickle   0x1950a86a20f9469cfc6c
//   pickle   1001
//   pickle   {"protocol_version": 1001, "little_endian": ..., "type_sizes": {...}}
//   pickle   the object; persistent ids ('storage', class, key, location, numel, view)
//   pickle   [key, ...]
//   per key  i64 little-endian numel, then its elements, little-endian on every machine

namespace {

// The magic number in a pickle of protocol 2, 3 and 1, without the pickle's end.
constexpr std::array<std::string_view, 3> kMagics = {
    "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19",
    "\x80\x03\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", "L119547037146038801333356L\n"};
constexpr std::size_t kMostMagic = kMagics[2].size();

// Empty if the file begins with none of them.
std::string_view magic_of(std::string_view head) {
  const auto found = std::ranges::find_if(kMagics, [&](auto magic) { return head.starts_with(magic); });
  return found == kMagics.end() ? "" : *found;
}

constexpr std::int64_t kProtocol = 1001;

// Whether the file is a tar archive: its magic stands in the middle of the first header.
bool is_tar(std::string_view head) { return head.size() >= 262 && head.substr(257, 5) == "ustar"; }

class TorchLegacy : GraphReader {
 public:
  explicit TorchLegacy(const io::SourceFile& file) : GraphReader(file, "torch_legacy"), cursor_(file) {}

  graph::MetaGraph read() {
    read_preamble();
    read_values();
    sort_by_place(graph_);  // after the pickle is freed, which is as large as the graph
    return std::move(graph_);
  }

 private:
  void read_preamble() {
    const std::string_view magic = magic_of(file_.head(kMostMagic));
    if (magic.empty())
      throw cursor_.malformed(0, "does not begin with the magic number of torch.save before 1.6");
    cursor_.read_text(magic.size(), magic.size(), "the magic number");
    if (cursor_.read<std::uint8_t>("the magic number") != '.')
      throw cursor_.malformed(magic.size(), "the magic number is not all of its pickle");
    const std::uint64_t at = cursor_.at();
    const Pickle version(cursor_);
    if (!version.root().is(PickleValue::Kind::integer) || version.integer(version.root()) != kProtocol)
      throw Error(ErrorCode::unsupported, {.file = file_.path(), .byte = at},
                  "a protocol version other than {}", kProtocol);
    // describes the machine that wrote the file; nothing in the file depends on it
    const Pickle machine(cursor_);
    if (!machine.root().is(PickleValue::Kind::dict))
      throw cursor_.malformed(at, "the third pickle is not a dict");
  }

  void read_values() {
    const Pickle pickle(cursor_);
    TorchStorages storages = torch_storages(pickle, file_.path(), TorchIds::legacy);
    const std::vector<graph::StorageId> placed = place(storages, Pickle(cursor_));
    storages.forget_keys();
    add_torch_values(pickle, storages, placed, graph_);
  }

  // The storages follow in the order of `keys`, each after its number of elements.
  std::vector<graph::StorageId> place(const TorchStorages& storages, const Pickle& keys) {
    at_ = cursor_.at();
    if (!keys.root().is(PickleValue::Kind::list)) throw malformed("the list of storages is not a list");
    std::vector<std::optional<graph::StorageId>> found(storages.storages().size());
    graph_.storages.reserve(found.size());
    for (const PickleValue& key : keys.items(keys.root())) {
      const std::string name = key.is(PickleValue::Kind::integer) ? std::to_string(keys.integer(key))
                                                                  : std::string(keys.text(key));
      const auto known = storages.find(name);
      // only the pickle gives the size of its elements
      if (!known)
        throw malformed("lists a storage '{}' that the pickle does not use", safe_display(name, 60));
      if (found[*known]) throw malformed("lists storage '{}' twice", safe_display(name, 60));
      found[*known] = place_one(storages.storages()[*known], name);
    }
    if (at_ != file_.size())
      graph_.note(graph::Severity::error, {}, "{}: {} bytes after the last storage (byte {})",
                  safe_display(file_.path()), file_.size() - at_, at_);
    std::vector<graph::StorageId> placed;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (!found[i])
        throw malformed("does not list storage '{}', which the pickle uses",
                        safe_display(storages.key(storages.storages()[i]), 60));
      placed.push_back(*found[i]);
    }
    return placed;
  }

  graph::StorageId place_one(const TorchStorage& storage, std::string_view key) {
    // a separate cursor, so that no weights are read ahead
    io::Cursor count(file_, at_, at_ + 8);
    const auto numel = count.read<std::int64_t>("a storage's number of elements");
    if (numel < 0 || static_cast<std::uint64_t>(numel) != storage.numel)
      throw malformed("storage '{}' has {} elements here, the pickle says {}", safe_display(key, 60), numel,
                      storage.numel);
    at_ = count.at();
    if (!range_fits(at_, storage.bytes(), file_.size()))
      throw malformed("storage '{}' needs {} bytes, {} are left", safe_display(key, 60), storage.bytes(),
                      file_.size() - at_);
    const graph::StorageId id =
        graph_.add_storage(graph::plain_storage(graph::FileId{0}, at_, storage.bytes()));
    at_ += storage.bytes();
    return id;
  }

  template <typename... Values>
  Error malformed(fmt::format_string<Values...> detail, const Values&... values) const {
    return cursor_.malformed(at_, detail, values...);
  }

  io::Cursor cursor_;     // over the pickles
  std::uint64_t at_ = 0;  // among the storages
};

}  // namespace

graph::MetaGraph read_torch_legacy_file(const io::SourceFile& file) {
  if (is_tar(file.head(512)))
    throw Error(ErrorCode::unsupported, {.file = file.path(), .byte = 0},
                "a tar archive, as torch wrote before 0.1.10: load it with torch and save it again");
  return TorchLegacy(file).read();
}

Match sniff_torch_legacy(std::string_view head, std::string_view path) {
  if (!magic_of(head).empty()) return Match::yes;
  // other pickles and tar archives match too, so that they are refused with a clear message
  const bool named = graph::has_ending_of(path, "torch_legacy") || path.ends_with(".tar");
  return named && (head.starts_with("\x80") || is_tar(head)) ? Match::maybe : Match::no;
}

graph::MetaGraph read_torch_legacy(const Source& source) {
  if (!source.set.empty()) return read_loose_shards(source);
  graph::MetaGraph graph = read_torch_legacy_file(*source.file);
  add_config(source, graph);
  return graph;
}

// --- torch.save since 1.6 (torch 2.13: torch/serialization.py _save, caffe2/serialize/inline_container.cc).
//
//   ROOT/data.pkl      the object, its storages as persistent ids ('storage', class, key, location, numel)
//   ROOT/data/KEY      a storage's bytes, stored, 64-aligned; exactly numel * element size
//   ROOT/byteorder     "little" or "big"; little without it
//   ROOT/version       "3\n": 1 to 10 can be read
//   ROOT/.format_version, .storage_alignment, .data/serialization_id     not needed
//   ROOT/constants.pkl, ROOT/code/...     only in TorchScript: refused

namespace {

constexpr std::uint64_t kMostPickle = 256 << 20;
constexpr std::uint64_t kMostRecord = 64;  // of a version or a byte order
constexpr int kMostVersion = 10;

class TorchZip : GraphReader {
 public:
  explicit TorchZip(const io::SourceFile& file)
      : GraphReader(file, "torch"), zip_(std::in_place, file, ZipNames::paths), root_(zip_->root()) {}

  graph::MetaGraph read() {
    const ZipMember& pickle_member = check_kind();
    check_version();
    const bool big_endian = is_big_endian();
    read_values(pickle_member, big_endian);
    sort_by_place(graph_);  // after the pickle is freed, which is as large as the graph
    return std::move(graph_);
  }

 private:
  const ZipMember* find(std::string_view name) const { return zip_->find(fmt::format("{}/{}", root_, name)); }

  template <typename... Values>
  Error unsupported(fmt::format_string<Values...> detail, const Values&... values) const {
    return Error(ErrorCode::unsupported, {.file = file_.path()}, detail, values...);
  }

  // Finds data.pkl, after checking that this is no other kind of archive.
  const ZipMember& check_kind() const {
    if (find("archive_format") != nullptr)
      throw unsupported("an archive of torch.export whose first member is none of its weights");
    if (find("constants.pkl") != nullptr)
      throw unsupported("a TorchScript archive, which holds code: save the model's state_dict instead");
    const ZipMember* pickle = find("data.pkl");
    if (pickle == nullptr && find("version") != nullptr && find("byteorder") != nullptr)
      throw malformed("torch.save has not finished this file: it lacks '{}/data.pkl', so save it again",
                      safe_display(root_, 100));
    if (pickle == nullptr)
      throw malformed("a zip archive without '{}/data.pkl': not written by torch.save",
                      safe_display(root_, 100));
    return *pickle;
  }

  void check_version() const {
    const ZipMember* member = find("version");
    if (member == nullptr) member = find(".data/version");
    if (member == nullptr) return;
    const std::string text = zip_->read(*member, kMostRecord);
    int version = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), version);
    if (failure != std::errc() || version < 1 ||
        text.find_first_not_of(" \r\n", static_cast<std::size_t>(end - text.data())) != std::string::npos)
      throw zip_->malformed(*member, "is not a version: '{}'", safe_display(text));
    if (version > kMostVersion)
      throw unsupported("version {} of the format, the newest known is {}", version, kMostVersion);
  }

  bool is_big_endian() const {
    const ZipMember* member = find("byteorder");
    if (member == nullptr) return false;
    const std::string text = zip_->read(*member, kMostRecord);
    if (text != "little" && text != "big")
      throw zip_->malformed(*member, "says '{}', not little or big", safe_display(text));
    return text == "big";
  }

  // Reads the pickle directly from the file, because a large model has a large pickle.
  Pickle read_pickle(const ZipMember& member) const {
    if (member.bytes > kMostPickle)
      throw Error(ErrorCode::limit, {.file = file_.path(), .byte = member.header},
                  "the pickle has {} bytes, the limit is {}", member.bytes, kMostPickle);
    if (!member.deflated) {
      zip_->check_stored(member);
      io::Cursor cursor(file_, member.payload, member.payload + member.bytes);
      return whole_pickle(cursor);
    }
    const std::string text = zip_->read(member, kMostPickle);
    const auto bytes = std::as_bytes(std::span(text));
    const io::SourceFile held = io::SourceFile::from_memory(fmt::format("{}: {}", file_.path(), member.name),
                                                            {bytes.begin(), bytes.end()});
    io::Cursor cursor(held);
    return whole_pickle(cursor);
  }

  static Pickle whole_pickle(io::Cursor& cursor) {
    Pickle pickle(cursor);
    if (cursor.remaining() != 0)
      throw cursor.malformed(cursor.at(), "{} bytes follow the pickle", cursor.remaining());
    return pickle;
  }

  void read_values(const ZipMember& member, bool big_endian) {
    const Pickle pickle = read_pickle(member);
    TorchStorages storages = torch_storages(pickle, file_.path(), TorchIds::zip);
    storages.forget_keys();  // not needed: the archive finds members by name
    const std::vector<graph::StorageId> placed = place(storages, big_endian);
    std::vector<graph::Note> notes = add_unreferenced();
    notes.insert(notes.end(), zip_->notes().begin(), zip_->notes().end());
    zip_.reset();
    used_ = {};
    add_torch_values(pickle, storages, placed, graph_);
    graph_.notes.insert(graph_.notes.end(), notes.begin(), notes.end());
  }

  // Finds the place of each storage and compares its size with the pickle.
  std::vector<graph::StorageId> place(const TorchStorages& storages, bool big_endian) {
    std::vector<graph::StorageId> placed;
    placed.reserve(storages.storages().size());
    graph_.storages.reserve(storages.storages().size());
    used_.resize(zip_->members().size());
    for (const TorchStorage& wanted : storages.storages()) {
      const std::string name = fmt::format("data/{}", storages.key(wanted));
      const ZipMember* member = find(name);
      if (member == nullptr)
        throw malformed("the pickle names a storage '{}', which the archive does not hold",
                        safe_display(name, 100));
      if (member->deflated)
        throw zip_->malformed(*member, "is compressed; torch stores the bytes of storages as they are");
      if (member->bytes != wanted.bytes())
        throw zip_->malformed(*member, "has {} bytes, the pickle says {}", member->bytes, wanted.bytes());
      used_[static_cast<std::size_t>(member - zip_->members().data())] = true;
      graph::Storage storage = zip_->storage(*member, graph::FileId{0});
      if (big_endian) swap_bytes(storage, wanted);
      placed.push_back(graph_.add_storage(storage));
    }
    return placed;
  }

  void swap_bytes(graph::Storage& storage, const TorchStorage& wanted) {
    const bool complex = graph::dtype_info(wanted.type.dtype).kind == graph::DTypeKind::complex;
    const int unit = complex ? wanted.type.item_bytes / 2 : wanted.type.item_bytes;
    if (unit > 1) {
      storage.encoding = graph::Encoding::byte_swapped;
      storage.unit = static_cast<std::uint8_t>(unit);
    } else if (wanted.untyped && !std::exchange(untyped_noted_, true)) {
      // torch treats untyped storages as single bytes, whatever the dtypes of their tensors
      graph_.note(graph::Severity::error, {},
                  "big-endian storages without a type: the order of their numbers' bytes is not "
                  "known");
    }
  }

  // Bytes that no tensor uses are still part of the file.
  std::vector<graph::Note> add_unreferenced() {
    const std::string folder = root_ + "/data/";
    std::vector<std::string> left;
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const ZipMember& member = zip_->members()[i];
      if (used_[i] || !member.name.starts_with(folder)) continue;
      graph_.storages.push_back(zip_->storage(member, graph::FileId{0}));
      left.emplace_back(member.name);
    }
    return unused_storages(left);
  }

  std::optional<ZipArchive> zip_;  // freed once its storages are placed
  std::string root_;
  std::vector<bool> used_;  // members
  bool untyped_noted_ = false;
};

}  // namespace

graph::MetaGraph read_torch_zip_file(const io::SourceFile& file) {
  if (file.head(8) == "PYTORCH1")
    throw Error(ErrorCode::unsupported, {.file = file.path(), .byte = 0},
                "a PYTORCH1 container, a format torch abandoned before its release");
  return TorchZip(file).read();
}

// The first member is data.pkl, or in TorchScript data/0; all lie in one folder.
Match sniff_torch_zip(std::string_view head, std::string_view path) {
  if (head.starts_with("PYTORCH1")) return Match::yes;
  // of numpy's archives, any name ends in .npy: that of a tensor, which may lie in a module called code
  if (const auto name = first_zip_name(head); name && !name->ends_with(".npy")) {
    const std::size_t slash = name->find('/');
    const std::string_view inside = slash == std::string_view::npos ? "" : name->substr(slash + 1);
    if (inside == "data.pkl" || inside == "constants.pkl" || inside == "version" || inside == "byteorder" ||
        inside.starts_with("code/") ||
        (inside.starts_with("data/") && inside.find_first_not_of("0123456789", 5) == std::string_view::npos))
      return Match::yes;
  }
  return head.starts_with("PK\3\4") && graph::has_ending_of(path, "torch") ? Match::maybe : Match::no;
}

graph::MetaGraph read_torch_zip(const Source& source) {
  if (!source.set.empty()) return read_loose_shards(source);
  graph::MetaGraph graph = read_torch_zip_file(*source.file);
  add_config(source, graph);
  return graph;
}

}  // namespace loadline::importers
