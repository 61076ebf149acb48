// The inputs of a request and the outputs that it wants, checked against the model. Must not know
// ONNX Runtime.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tensors.h"
#include "triton_api.h"

// The value of one input. Its bytes stay where Triton has them, in one or several pieces.
struct Given {
  std::vector<int64_t> shape;  // a scalar without its one dimension
  std::vector<std::string_view> pieces;
  size_t bytes = 0;
  std::vector<char> own;               // bytes that are not Triton's; it keeps its place when moved
  std::vector<std::string_view> text;  // of a string tensor: its elements

  // Zeros instead of what was given.
  void clear();
};

struct Request {
  TRITONBACKEND_Request* triton = nullptr;
  std::vector<Given> inputs;        // in the order of the model's
  std::vector<std::string> wanted;  // outputs; empty: all
  bool empty_slot = false;          // it keeps other sequences in their places, and nobody waits for it
  std::string failure;              // why it cannot run, or did not
  TRITONSERVER_Error_Code code = TRITONSERVER_ERROR_INTERNAL;  // of the failure
  TRITONBACKEND_Response* response = nullptr;

  bool runs() const { return failure.empty() && !empty_slot; }
  int64_t rows() const { return inputs.empty() || inputs[0].shape.empty() ? 0 : inputs[0].shape[0]; }
};

// What a model with sequences changes.
struct SequenceInputs {
  bool batched = false;   // the model has sequence_batching
  std::string text_id;    // the control input of ids as strings; empty: there is none
  std::string number_id;  // the one of ids as numbers
};

// Parses a request. ``failure`` is set where its type, shape or bytes are not as the model
// declares. Of a model with sequences one that wants no output is an empty slot and is not read.
Request take(TRITONBACKEND_Request* triton, const std::vector<Tensor>& inputs, const SequenceInputs& sequences);

// Adds an output to the response of a request and returns where its bytes are to be written.
void* add_output(Request& request, const std::string& name, const Type& type, std::vector<int64_t> shape, size_t bytes);
