// Which share a process takes from the variables of Slurm and MPI.
#include "app/cli/convert/conversion.h"
#include "core/base/error.h"

#include <map>
#include <string>

#include <gtest/gtest.h>

namespace loadline::cli {
namespace {

WriteShare share(const std::map<std::string, std::string>& environment) {
  return share_from_environment([&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  });
}

TEST(Ranks, ComeFromSlurmAndMpi) {
  EXPECT_EQ(share({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}}), (WriteShare{2, 4}));
  EXPECT_EQ(share({{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}}), (WriteShare{0, 3}));
  EXPECT_EQ(share({{"SLURM_PROCID", "7"}, {"SLURM_NTASKS", "8"}}), (WriteShare{7, 8}));
  // mpirun in a job of one task; an array whose tasks have a rank 0 each, counted from 1
  EXPECT_EQ(share({{"SLURM_PROCID", "0"},
                   {"SLURM_NTASKS", "1"},
                   {"OMPI_COMM_WORLD_RANK", "1"},
                   {"OMPI_COMM_WORLD_SIZE", "2"}}),
            (WriteShare{1, 2}));
  EXPECT_EQ(share({{"SLURM_ARRAY_TASK_ID", "4"},
                   {"SLURM_ARRAY_TASK_MIN", "1"},
                   {"SLURM_ARRAY_TASK_COUNT", "4"},
                   {"SLURM_PROCID", "0"},
                   {"SLURM_NTASKS", "1"}}),
            (WriteShare{3, 4}));
}

TEST(Ranks, WhatDoesNotFitIsAnError) {
  EXPECT_THROW(share({}), Error);
  EXPECT_THROW(share({{"PMI_RANK", "x"}, {"PMI_SIZE", "3"}}), Error);
  EXPECT_THROW(share({{"PMI_RANK", "1"}}), Error);
  EXPECT_THROW(share({{"PMI_RANK", "3"}, {"PMI_SIZE", "3"}}), Error);
  // an array with steps leaves gaps
  EXPECT_THROW(
      share({{"SLURM_ARRAY_TASK_ID", "6"}, {"SLURM_ARRAY_TASK_MIN", "0"}, {"SLURM_ARRAY_TASK_COUNT", "4"}}),
      Error);
}

}  // namespace
}  // namespace loadline::cli
