// The library baseline against measured libraries: the reader, and the errors on the shipped files.
#include "sim/study/validate_library.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/core/error.hpp"
#include "model/workloads/all_gather/workload.hpp"
#include "model/workloads/library_gemm/workload.hpp"

namespace tritax {
namespace {

const std::string kMeasured = std::string(TRITAX_SOURCE_DIR) + "/scenarios/measured/";

constexpr std::string_view kPrograms =
    "# somewhere\n"
    "form,launch,gpus,m,n,k,dtype,device_us,wall_us\n"
    "gemm,eager,2,1024,2048,512,bf16,1,2\n"
    "gemm,graph,2,1024,2048,512,bf16,3,4\n"
    "gathered,graph,2,1024,2048,512,bf16,5,6\n"
    "stepwise,eager,2,1024,2048,512,bf16,7,8\n";

constexpr std::string_view kCalls =
    "what,launch,operands,gpus,m,n,k,dtype,bytes_per_rank,kernel_us\n"
    "gemm,eager,cold,1,256,128,64,fp8,0,1\n"
    "gemm,graph,cold,1,256,128,64,fp8,0,1\n"
    "gemm,eager,warm,1,256,128,64,fp8,0,2\n"
    "gemm,graph,loop,1,256,128,64,fp8,0,3\n"
    "all_gather,eager,cold,4,0,0,0,,4096,4\n";

std::string message_of(const std::string& csv) {
  try {
    parse_library(csv, "f.csv");
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(ValidateLibrary, ReadsTheFormsThatHaveACounterpart) {
  const LibraryFile programs = parse_library(kPrograms, "f.csv");
  EXPECT_EQ(programs.remarks, std::vector<std::string>{"somewhere"});
  ASSERT_EQ(programs.rows.size(), 2u);
  EXPECT_EQ(programs.rows[0].form, LibraryForm::gemm_cold);
  EXPECT_EQ(programs.rows[0].measured_ns, 3000);
  EXPECT_TRUE(programs.rows[0].between_events);
  EXPECT_EQ(programs.rows[0].scenario.problem.workload, &library_gemm());
  EXPECT_EQ(programs.rows[0].scenario.problem["n"], 1024);  // of one GPU
  EXPECT_EQ(programs.rows[1].form, LibraryForm::stepwise);
  EXPECT_EQ(programs.rows[1].measured_ns, 8000);
  EXPECT_EQ(programs.rows[1].where, "f.csv:6");

  const LibraryFile calls = parse_library(kCalls, "f.csv");
  std::vector<LibraryForm> forms;
  for (const LibraryRow& row : calls.rows) forms.push_back(row.form);
  for (const LibraryRow& row : calls.rows) EXPECT_FALSE(row.between_events) << row.where;
  EXPECT_EQ(forms, (std::vector<LibraryForm>{LibraryForm::gemm_cold, LibraryForm::gemm_warm,
                                             LibraryForm::gemm_loop, LibraryForm::all_gather}));
  const Problem& gather = calls.rows[3].scenario.problem;
  EXPECT_EQ(gather.workload, &all_gather());
  EXPECT_EQ(gather["rows"] * gather["cols"] * bytes_of(static_cast<DType>(gather["dtype"])), 4096);
}

// Its text names no file: the column of one may be empty.
TEST(ValidateLibrary, ReadsTheFasterOfTheVendorsSparseProducts) {
  const std::string columns =
      "workload,form,launch,gpus,rows,row_length,structure,matrix,cols,exponent,width,matrix_seed,dtype,"
      "repeats,device_us,device_p10_us,device_p90_us,wall_us,wall_p10_us,wall_p90_us,relative_error\n";
  const std::string shape = ",eager,1,1000,16,power-law,,1000,210,64,7,fp32,20,";
  const std::string csv = columns + "spmv,csr-default" + shape + "9,8,10,15,14,16,1e-07\n" + "spmv,csr-alg2" +
                          shape + "7,6,8,13,12,14,1e-07\n" + "spmv,library" + shape +
                          "7,6,8,13,12,14,1e-07\n";
  const LibraryFile file = parse_library(csv, "f.csv");
  ASSERT_EQ(file.rows.size(), 1u);
  EXPECT_EQ(file.rows[0].form, LibraryForm::kernel);
  EXPECT_EQ(file.rows[0].measured_ns, 7000);
  EXPECT_EQ(file.rows[0].scenario.pattern, "library");
  EXPECT_EQ(file.rows[0].scenario.problem["matrix_seed"], 7);
  const std::vector<LibraryResidual> rows = validate_library({file}, find_machine("h200-4"));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_GT(rows[0].predicted_ns, 1000);
  EXPECT_LT(rows[0].predicted_ns, 1e6);
  EXPECT_NE(message_of(columns + "spmv,coo" + shape + "9,8,10,15,14,16,1e-07\n").find("csr-alg2"),
            std::string::npos);
}

TEST(ValidateLibrary, RefusesWhatItCannotCompare) {
  EXPECT_EQ(message_of("form,launch,gpus,m,n,k,dtype,device_us,wall_us\ngemm,eager,2,8,8,8,bf16,1,2\n"),
            "f.csv: no row has a counterpart; allowed: forms 'gemm' as a graph and 'stepwise' of "
            "gemm_all_scatter.py, 'gemm' as a graph and 'library' of all_gather_gemm.py, 'library' of "
            "tritax-gpu sparse-library, and all of "
            "library_microbench.py");
  EXPECT_EQ(message_of("id,launch,gpus,m,n,k,dtype,device_us,wall_us\nx,graph,2,8,8,8,bf16,1,2\n"),
            "f.csv:2: the header names no column 'form'");
  EXPECT_NE(message_of("form,launch,gpus,m,n,k,dtype,device_us,wall_us\ngemm,graph,3,8,8,8,bf16,1,2\n")
                .find("f.csv:2: column 'n': '8' is not allowed; allowed: a multiple of the 3 GPUs"),
            std::string::npos);
  EXPECT_NE(message_of("form,launch,gpus,m,n,k,dtype,device_us,wall_us\nother,graph,2,8,8,8,bf16,1,2\n")
                .find("column 'form': 'other' is not allowed"),
            std::string::npos);
}

TEST(ValidateLibrary, RefusesDamageInRowsAndColumnsThatItDoesNotCompare) {
  const std::string programs =
      "form,launch,gpus,m,n,k,dtype,repeats,device_us,device_p10_us,device_p90_us,"
      "wall_us,wall_p10_us,wall_p90_us,relative_error\n";
  const std::string compared = "gemm,graph,2,8,8,8,bf16,30,3,2,4,5,4,6,1e-3\n";
  EXPECT_EQ(message_of(programs + compared), "accepted");
  for (const std::string row :
       {"gemm,graph,2,8,8,8,bf16,x,3,2,4,5,4,6,1e-3\n", "gemm,graph,2,8,8,8,bf16,30,3,2,4,-5,4,6,1e-3\n",
        "gemm,graph,2,8,8,8,bf16,30,3,2,4,5,4,6,nan\n", "gemm,graph,2,8,8,8,bf16,30,3,2,4,5,5.5,6,1e-3\n",
        "gathered,graph,2,8,8,8,bf16,30,none,2,4,5,4,6,1e-3\n"}) {
    EXPECT_EQ(message_of(programs + "stepwise,eager,2,8,8,8,bf16,30,3,2,4,5,4,6,1e-3\n" + row)
                  .rfind("f.csv:3: column ", 0),
              0u)
        << row;
  }
  EXPECT_EQ(message_of(std::string(kCalls) + "gemm,graph,warm,1,256,128,64,fp8,0,?\n").rfind("f.csv:7: ", 0),
            0u);
}

TEST(ValidateLibrary, RefusesACopyOfARowButNotASecondMeasurement) {
  const std::string again = "gemm,eager,warm,1,256,128,64,fp8,0,";
  EXPECT_NE(message_of(std::string(kCalls) + (again + "2\n")).find("repeats f.csv:4"), std::string::npos);
  EXPECT_EQ(message_of(std::string(kCalls) + (again + "5\n")), "accepted");
}

// Bounds a little above what the model has (25 rows of gemm_loop and most all-gathers set
// parameters), so that a change that makes it worse is seen.
struct Bound {
  LibraryForm form;
  std::size_t rows;
  double median;
  double p90;
};

void expect_within(const std::vector<LibraryResidual>& rows, const Bound& bound) {
  const ErrorSummary summary = summarise_library(rows, bound.form);
  const std::string_view name = kLibraryFormNames[static_cast<std::size_t>(bound.form)];
  EXPECT_EQ(summary.rows, bound.rows) << name;
  EXPECT_LT(summary.median_abs_error, bound.median) << name;
  EXPECT_LT(summary.p90_abs_error, bound.p90) << name;
}

TEST(ValidateLibrary, SingleCallsOfCublasAndNccl) {
  const std::vector<LibraryResidual> rows =
      validate_library({read_library(kMeasured + "h200-4-library-microbench.csv")}, find_machine("h200-4"));
  expect_within(rows, {LibraryForm::gemm_cold, 134, 0.095, 0.19});
  expect_within(rows, {LibraryForm::gemm_warm, 134, 0.06, 0.165});
  expect_within(rows, {LibraryForm::gemm_loop, 134, 0.05, 0.155});
  expect_within(rows, {LibraryForm::all_gather, 34, 0.06, 0.19});
}

// The library of h100-4 is that of H200; the GPU is known from microbenchmarks of the backend.
TEST(ValidateLibrary, SingleCallsOfCublasOnH100) {
  const std::vector<LibraryResidual> rows =
      validate_library({read_library(kMeasured + "h100-library-microbench.csv")}, find_machine("h100-4"));
  expect_within(rows, {LibraryForm::gemm_cold, 134, 0.07, 0.21});
  expect_within(rows, {LibraryForm::gemm_warm, 134, 0.08, 0.2});
  expect_within(rows, {LibraryForm::gemm_loop, 134, 0.065, 0.175});
}

// Rows that the tensor memory accelerator does not take, and fp32. A few rows of H200 set parameters, none of
// H100 did.
TEST(ValidateLibrary, UnalignedRowsAndFp32) {
  struct Case {
    std::string gpu;
    std::string machine;
  };
  for (const Case& c : {Case{"h200", "h200-4"}, Case{"h100", "h100-4"}}) {
    const Machine machine = find_machine(c.machine);
    const auto rows_of = [&](const std::string& what) {
      return validate_library({read_library(kMeasured + c.gpu + "-library-" + what + ".csv")}, machine);
    };
    expect_within(rows_of("unaligned"), {LibraryForm::gemm_loop, 28, 0.04, 0.19});
    expect_within(rows_of("fp32"), {LibraryForm::gemm_loop, 12, 0.065, 0.36});
  }
}

// Nothing was fitted to these.
TEST(ValidateLibrary, TallShapesThatMemoryLimits) {
  const std::vector<LibraryResidual> rows =
      validate_library({read_library(kMeasured + "h200-library-tall.csv")}, find_machine("h200-4"));
  expect_within(rows, {LibraryForm::gemm_cold, 18, 0.075, 0.175});
  expect_within(rows, {LibraryForm::gemm_warm, 18, 0.11, 0.18});
  expect_within(rows, {LibraryForm::gemm_loop, 18, 0.05, 0.14});
}

TEST(ValidateLibrary, WholeProgramsOfCublasAndNccl) {
  const std::vector<LibraryResidual> rows =
      validate_library({read_library(kMeasured + "h200-4-library-2.csv")}, find_machine("h200-4"));
  expect_within(rows, {LibraryForm::gemm_cold, 36, 0.07, 0.15});
  expect_within(rows, {LibraryForm::stepwise, 36, 0.07, 0.265});
}

// The host's part of these programs was slow and uneven that day.
TEST(ValidateLibrary, WholeProgramsOfShapesDrawnAtRandom) {
  const std::vector<LibraryResidual> rows =
      validate_library({read_library(kMeasured + "h200-4-library-random-2.csv")}, find_machine("h200-4"));
  expect_within(rows, {LibraryForm::gemm_cold, 28, 0.06, 0.21});
  expect_within(rows, {LibraryForm::stepwise, 28, 0.13, 0.39});
}

}  // namespace
}  // namespace tritax
