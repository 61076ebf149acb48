// The elements of an output of ONNX Runtime, divided among requests; strings in Triton's form. Must
// not know requests.
#pragma once

#include <string>
#include <vector>

#include "ort_api.h"
#include "tensors.h"

class Content {
 public:
  // Throws Error for a type that cannot be served.
  Content(const Ort& ort, OrtValue* value, const std::vector<int64_t>& shape);

  // The size of ``count`` elements from the place ``from`` on.
  size_t bytes(size_t from, size_t count) const;
  void write(size_t from, size_t count, char* to) const;

  const Type* type;

 private:
  const char* data_ = nullptr;
  std::string text_;
  std::vector<size_t> offsets_;
};
