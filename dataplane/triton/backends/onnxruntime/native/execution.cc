#include "execution.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "content.h"
#include "triton_calls.h"

namespace {

// Kernels may rely on this alignment of numbers.
constexpr size_t kAlignment = 64;
// A larger buffer is released after its use.
constexpr size_t kKeptBytes = 32 << 20;

uint64_t now() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
}

std::vector<int64_t> shape_of(const Ort& ort, const OrtValue* value) {
  ShapeInfo info(ort);
  ort.check(ort.GetTensorTypeAndShape(value, info.out()));
  size_t count = 0;
  ort.check(ort.GetDimensionsCount(info.get(), &count));
  std::vector<int64_t> shape(count);
  ort.check(ort.GetDimensions(info.get(), shape.data(), count));
  return shape;
}

// Whether two requests differ only in the first dimension.
bool fit(const Request& one, const Request& other) {
  for (size_t i = 0; i < one.inputs.size(); ++i) {
    const auto &a = one.inputs[i].shape, &b = other.inputs[i].shape;
    if (a.size() != b.size() || a.empty() || !std::equal(a.begin() + 1, a.end(), b.begin() + 1)) return false;
  }
  return true;
}

// Stores the rows of a state's output for the next request of the sequence.
void keep(const Request& request, const State& state, const Content& content, size_t from, size_t count,
          std::vector<int64_t> shape) {
  size_t bytes = content.bytes(from, count);
  TRITONBACKEND_State* handle = nullptr;
  void* to = next_state(request, state, *content.type, std::move(shape), bytes, &handle);
  if (bytes != 0) content.write(from, count, static_cast<char*>(to));
  call(TRITONBACKEND_StateUpdate(handle));
}

}  // namespace

void Execution::run(TRITONBACKEND_Request** requests, uint32_t count) {
  times_ = {now()};
  buffers_.resize(model_.inputs.size());
  std::vector<Request> taken;
  taken.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    taken.push_back(take(requests[i], model_.inputs, model_.sequences.inputs));
    Request& request = taken.back();
    if (request.wanted.empty()) request.wanted = model_.outputs;
    if (request.runs() && !model_.sequences.states.empty()) {
      begin_with_zeros(request, model_.inputs, model_.sequences.states);
    }
  }
  refuse_beyond_bound(taken);
  std::vector<bool> done(count, false);
  for (uint32_t i = 0; i < count; ++i) {
    if (done[i]) continue;
    if (!taken[i].runs()) {
      finish(taken[i], times_);
      continue;
    }
    std::vector<Request*> group{&taken[i]};
    for (uint32_t j = i + 1; model_.max_batch_size > 0 && j < count; ++j) {
      if (done[j] || !taken[j].runs() || !fit(taken[i], taken[j])) continue;
      group.push_back(&taken[j]);
      done[j] = true;
    }
    if (group.size() > 1 && run_group(group)) continue;
    for (Request* request : group) run_alone(*request);
  }
  for (auto& buffer : buffers_) {
    if (buffer.capacity() > kKeptBytes) std::vector<char>().swap(buffer);
  }
}

void Execution::refuse_beyond_bound(std::vector<Request>& requests) {
  int64_t rows = 0;
  for (const Request& request : requests) rows += request.runs() ? request.rows() : 0;
  if (model_.max_batch_size == 0 || rows <= model_.max_batch_size) return;
  const char* name = "";
  ignore(TRITONBACKEND_ModelInstanceName(instance_, &name));
  for (Request& request : requests) {
    if (!request.runs()) continue;
    request.failure = "batch size " + std::to_string(rows) + " for '" + name + "', max allowed is " +
                      std::to_string(model_.max_batch_size);
    request.code = TRITONSERVER_ERROR_INVALID_ARG;
  }
}

std::vector<Value> Execution::compute(const std::vector<Request*>& group, const std::vector<std::string>& wanted) {
  std::vector<Value> inputs;
  for (size_t i = 0; i < model_.inputs.size(); ++i) inputs.push_back(joined(i, group));
  std::vector<const char*> names;
  for (const std::string& name : wanted) names.push_back(name.c_str());
  times_.compute_start = now();
  std::vector<Value> outputs = model_.session->run(inputs, names);
  times_.compute_end = now();
  return outputs;
}

// False: these requests must run one by one.
bool Execution::run_group(std::vector<Request*>& group) {
  std::vector<std::string> wanted;
  int64_t rows = 0;
  for (const Request* request : group) {
    rows += request->rows();
    for (const std::string& name : request->wanted) {
      if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) wanted.push_back(name);
    }
  }
  wanted = with_states(std::move(wanted));
  try {
    std::vector<Value> outputs = compute(group, wanted);
    std::vector<std::vector<int64_t>> shapes;
    for (const Value& output : outputs) {
      shapes.push_back(shape_of(model_.session->ort(), output.get()));
      if (shapes.back().empty() || shapes.back()[0] != rows) return false;
    }
    respond(group, wanted, outputs, shapes);
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

void Execution::run_alone(Request& request) {
  std::vector<Request*> group{&request};
  const std::vector<std::string> wanted = with_states(request.wanted);
  try {
    std::vector<Value> outputs = compute(group, wanted);
    std::vector<std::vector<int64_t>> shapes;
    for (size_t i = 0; i < outputs.size(); ++i) {
      shapes.push_back(shape_of(model_.session->ort(), outputs[i].get()));
      if (model_.max_batch_size > 0 && (shapes[i].empty() || shapes[i][0] != request.rows())) {
        throw Error("output '" + wanted[i] + "' has the shape " + shown(shapes[i], ", ") + " for a batch of " +
                    std::to_string(request.rows()) +
                    ": this model does not keep the batch, so it needs a config.pbtxt without max_batch_size "
                    "that gives the dims of its tensors in full");
      }
    }
    respond(group, wanted, outputs, shapes);
  } catch (const std::exception& error) {
    request.failure = error.what();
    finish(request, times_);
  }
}

// The outputs to compute: what clients want, and what sequences keep.
std::vector<std::string> Execution::with_states(std::vector<std::string> wanted) const {
  for (const State& state : model_.sequences.states) {
    if (std::find(wanted.begin(), wanted.end(), state.output) == wanted.end()) wanted.push_back(state.output);
  }
  return wanted;
}

// The value of one input for a group of requests: in place, or copied into one buffer.
Value Execution::joined(size_t index, const std::vector<Request*>& group) {
  const Ort& ort = model_.session->ort();
  const Type& type = *type_of_name(model_.inputs[index].type);
  std::vector<int64_t> shape = group[0]->inputs[index].shape;
  if (group.size() > 1) {
    shape[0] = 0;
    for (const Request* request : group) shape[0] += request->inputs[index].shape[0];
  }
  Value value(ort);
  if (type.size == 0) {
    ort.check(ort.CreateTensorAsOrtValue(ort.allocator, shape.data(), shape.size(), type.onnx, value.out()));
    size_t place = 0;
    for (const Request* request : group) {
      for (std::string_view text : request->inputs[index].text) {
        char* buffer = nullptr;
        ort.check(ort.GetResizedStringTensorElementBuffer(value.get(), place++, text.size(), &buffer));
        if (!text.empty()) std::memcpy(buffer, text.data(), text.size());
      }
    }
    return value;
  }
  size_t bytes = 0;
  for (const Request* request : group) bytes += request->inputs[index].bytes;
  const auto& first = group[0]->inputs[index].pieces;
  char* data = first.size() == 1 ? const_cast<char*>(first[0].data()) : nullptr;
  if (group.size() > 1 || data == nullptr || reinterpret_cast<uintptr_t>(data) % kAlignment != 0) {
    std::vector<char>& buffer = buffers_[index];
    if (buffer.size() < bytes + kAlignment) buffer.resize(bytes + kAlignment);
    auto address = reinterpret_cast<uintptr_t>(buffer.data());
    data = buffer.data() + (kAlignment - address % kAlignment) % kAlignment;
    char* to = data;
    for (const Request* request : group) {
      for (std::string_view piece : request->inputs[index].pieces) {
        std::memcpy(to, piece.data(), piece.size());
        to += piece.size();
      }
    }
  }
  ort.check(ort.CreateTensorWithDataAsOrtValue(ort.memory, data, bytes, shape.data(), shape.size(), type.onnx,
                                               value.out()));
  return value;
}

// Each request of the group gets its rows of the outputs that it wants, its sequence those that it
// keeps, and then its response. Throws
// only before the first response is begun.
void Execution::respond(std::vector<Request*>& group, const std::vector<std::string>& wanted,
                        const std::vector<Value>& outputs, const std::vector<std::vector<int64_t>>& shapes) {
  std::vector<Content> contents;
  for (size_t i = 0; i < outputs.size(); ++i) contents.emplace_back(model_.session->ort(), outputs[i].get(), shapes[i]);
  int64_t rows = 0;
  for (const Request* request : group) rows += request->rows();
  for (size_t i = 0; i < outputs.size(); ++i) {
    size_t from = 0;
    for (Request* request : group) {
      std::vector<int64_t> shape = shapes[i];
      if (group.size() > 1) shape[0] = request->rows();
      auto count = static_cast<size_t>(elements(shape)), begin = from;
      from += count;
      bool asked = std::find(request->wanted.begin(), request->wanted.end(), wanted[i]) != request->wanted.end();
      if (!request->failure.empty()) continue;
      try {
        for (const State& state : model_.sequences.states) {
          if (state.output == wanted[i]) keep(*request, state, contents[i], begin, count, shape);
        }
        if (!asked) continue;
        size_t bytes = contents[i].bytes(begin, count);
        void* to = add_output(*request, wanted[i], *contents[i].type, shape, bytes);
        if (bytes != 0) contents[i].write(begin, count, static_cast<char*>(to));
      } catch (const std::exception& error) {
        request->failure = error.what();
      }
    }
  }
  auto batch = static_cast<uint64_t>(model_.max_batch_size > 0 ? std::max<int64_t>(rows, 1) : 1);
  ignore(TRITONBACKEND_ModelInstanceReportBatchStatistics(instance_, batch, times_.start, times_.compute_start,
                                                          times_.compute_end, now()));
  for (Request* request : group) finish(*request, times_);
}

// Counts, answers and releases a request. The counters are right before the client has its
// response.
void Execution::finish(Request& request, const Times& times) {
  TRITONSERVER_Error* error = nullptr;
  if (!request.failure.empty()) {
    error = TRITONSERVER_ErrorNew(request.code, request.failure.c_str());
  }
  if (request.response == nullptr) ignore(TRITONBACKEND_ResponseNew(&request.response, request.triton));
  ignore(TRITONBACKEND_ModelInstanceReportStatistics(instance_, request.triton, error == nullptr, times.start,
                                                     times.compute_start, times.compute_end, now()));
  if (request.response != nullptr) ignore(TRITONBACKEND_ResponseSend(request.response, kResponseFinal, error));
  if (error != nullptr) TRITONSERVER_ErrorDelete(error);
  ignore(TRITONBACKEND_RequestRelease(request.triton, kReleaseAll));
}
