// The tensor types that ONNX Runtime and Triton share, and what a model declares of its tensors.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

// A failure that a user can be told.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Type {
  int onnx;            // ONNXTensorElementDataType
  const char* name;    // ONNX Runtime's: tensor(float)
  const char* config;  // in Triton's configuration: TYPE_FP32
  int triton;          // TRITONSERVER_DataType
  size_t size;         // bytes of an element, 0 for strings
};

// nullptr for a type that cannot be served.
const Type* type_of_onnx(int onnx);
const Type* type_of_name(const std::string& name);
// The name of an element type that cannot be served: bfloat16, complex64.
std::string element_name(int onnx);

// A number, a symbol, or neither where the model leaves it unnamed.
struct Dimension {
  int64_t number = -1;
  std::string symbol;
  bool fixed() const { return number >= 0; }
};

using Shape = std::vector<Dimension>;

struct Tensor {
  bool input;
  std::string name;
  std::string type;  // tensor(float), seq(map(int64,tensor(float)))
  Shape shape;

  const char* kind() const { return input ? "input" : "output"; }
  // input 'x' tensor(float) [N,3]
  std::string shown() const;
};

// TYPE_FP32. Throws Error for a type that cannot be served.
std::string triton_type(const Tensor& tensor);

// [N,3,?]: symbols as they are, an unnamed dimension as a question mark.
std::string shown(const Shape& shape);
std::string shown(const std::vector<int64_t>& shape, const char* between = ",");
// The number of elements.
int64_t elements(const std::vector<int64_t>& shape);
bool is_utf8(std::string_view text);
