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
  std::string joined;                  // of strings that came in several pieces
  std::vector<std::string_view> text;  // of a string tensor: its elements
};

struct Request {
  TRITONBACKEND_Request* triton = nullptr;
  std::vector<Given> inputs;        // in the order of the model's
  std::vector<std::string> wanted;  // outputs; empty: all
  std::string failure;              // why it cannot run, or did not
  TRITONSERVER_Error_Code code = TRITONSERVER_ERROR_INTERNAL;  // of the failure
  TRITONBACKEND_Response* response = nullptr;

  int64_t rows() const { return inputs.empty() || inputs[0].shape.empty() ? 0 : inputs[0].shape[0]; }
};

// Parses a request. ``failure`` is set where its type, shape or bytes are not as the model
// declares.
Request take(TRITONBACKEND_Request* triton, const std::vector<Tensor>& inputs);

// Adds an output to the response of a request and returns where its bytes are to be written.
void* add_output(Request& request, const std::string& name, const Type& type, std::vector<int64_t> shape, size_t bytes);
