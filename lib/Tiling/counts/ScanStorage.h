#pragma once
#include "Tiling/schedule/LoopRanges.h"

namespace fusec::tiling {

/// Where in device memory a scan's steps find a value of theirs: in rows, each as long as the value of one step.
struct ScanPlace {
  StepRange within; // steps that have a row
  int64_t turn = 0; // the row of step s is (s + turn) modulo `rows`
  int64_t rows = 1;
  int64_t row(int64_t step) const { return (step + turn) % rows; }
};

/// Where a value is written: in the stack of all steps, which may begin with a later one, and in the half of a state
/// that rounds hand on. One row for all steps is a place too; none where device memory does not hold the value.
std::vector<ScanPlace> writtenPlaces(const BoundSchedule &bound, TensorId t);
/// Where the equations of a step, and its Carry statements, read a value that lies in device memory.
ScanPlace readPlace(const BoundSchedule &bound, TensorId t);

} // namespace fusec::tiling
