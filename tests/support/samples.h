// A small valid file of each format that is read through pickles, zips or numpy headers.
#pragma once

#include "tests/support/zips.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loadline::testing {

using Records = std::vector<std::pair<std::string, std::string>>;

// An archive as torch.save lays it out: ROOT/data.pkl with `pickle`, then ROOT/KEY for each record.
std::vector<ZipSpec> torch_members(std::string pickle, const Records& records);
std::string torch_zip(std::string pickle, const Records& records);
// `count` bytes that differ from their neighbours.
std::string pattern(std::size_t count);

// Ties, views, nested dicts, parameters, every kind of tensor that is shown as parts, scalars and lists.
std::string sample_torch();
std::string sample_torch_legacy();
// The magic number and what else stands before the object of a legacy file.
std::string legacy_preamble();

// `header` with its magic, version 1.0, and `data` bytes of pattern().
std::string npy_bytes(std::string_view header, std::size_t data);
std::string npy_header(std::string_view descr, std::string_view shape, std::string_view fortran = "False");
std::string sample_npy();
std::string sample_npz();

// The entry of one tensor in a config of a pt2 archive.
std::string pt2_entry(std::string_view name, std::string_view path, std::string_view sizes,
                      std::string_view strides, int offset = 0, int dtype = 7);
std::string pt2_zip(const std::string& weights_config, const Records& records);
std::string sample_pt2();

std::vector<std::string> format_samples();

}  // namespace loadline::testing
