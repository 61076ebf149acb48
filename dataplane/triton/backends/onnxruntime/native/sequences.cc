#include "sequences.h"

#include <algorithm>
#include <utility>

#include "triton_calls.h"

namespace {

constexpr uint32_t kSequenceStart = 1;  // TRITONSERVER_REQUEST_FLAG_SEQUENCE_START

const std::pair<const char*, const char*> kValues[] = {
    {"int32_false_true", "TYPE_INT32"}, {"fp32_false_true", "TYPE_FP32"}, {"bool_false_true", "TYPE_BOOL"}};

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Each control input and its type.
std::vector<std::pair<std::string, std::string>> controls(const Json& batcher) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const Json& entry : batcher["control_input"].items()) {
    for (const Json& control : entry["control"].items()) {
      std::string type = control["data_type"].string();
      for (const auto& [field, name] : kValues) {
        if (control[field].truthy()) type = name;
      }
      const std::string& name = entry["name"].string();
      if (found.empty() || found.back().first != name) found.emplace_back(name, type);
    }
  }
  return found;
}

void refuse_twice(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (std::count(names.begin(), names.end(), name) > 1) {
      throw Error("config.pbtxt names '" + name + "' twice in sequence_batching");
    }
  }
}

// Triton 2.51 pairs the inputs and outputs of states by their places in alphabetical order, not as
// the configuration does. So each value goes under the output that has its input's place.
void choose_carriers(std::vector<State>& states) {
  std::vector<std::string> inputs, outputs;
  for (const State& state : states) {
    inputs.push_back(state.input);
    outputs.push_back(state.output);
  }
  std::sort(inputs.begin(), inputs.end());
  std::sort(outputs.begin(), outputs.end());
  for (State& state : states) {
    state.carrier = outputs[static_cast<size_t>(std::find(inputs.begin(), inputs.end(), state.input) - inputs.begin())];
  }
}

const Tensor& named(const std::vector<Tensor>& tensors, bool input, const std::string& name, const std::string& role) {
  std::string known;
  for (const Tensor& tensor : tensors) {
    if (tensor.input != input) continue;
    if (tensor.name == name) return tensor;
    known += (known.empty() ? "'" : ", '") + tensor.name + "'";
  }
  throw Error("config.pbtxt names the " + role + " '" + name + "', the model has [" + known + "]");
}

// exact: a variable dimension of the model does not fit.
void check_tensor(const std::string& role, const Tensor& tensor, const std::string& data_type,
                  const std::vector<int64_t>& dims, bool batching, bool exact) {
  std::string type = triton_type(tensor);
  if (type != data_type) {
    throw Error("config.pbtxt has " + data_type + " for " + role + " '" + tensor.name + "', the model " + type);
  }
  Shape shape(tensor.shape.begin() + (batching && !tensor.shape.empty() ? 1 : 0), tensor.shape.end());
  bool fits = !dims.empty() && dims.size() == shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i) {
    fits = shape[i].fixed() ? shape[i].number == dims[i] : !exact;
  }
  if (!fits) {
    throw Error("config.pbtxt has dims " + shown(dims) + " for " + role + " '" + tensor.name + "', the model " +
                shown(shape));
  }
}

std::vector<int64_t> numbers(const Json& list) {
  std::vector<int64_t> found;
  for (const Json& d : list.items()) found.push_back(d.integer());
  return found;
}

}  // namespace

bool Sequences::provides(const std::string& input) const { return has(provided, input); }

bool Sequences::keeps(const std::string& output) const {
  return std::any_of(states.begin(), states.end(), [&](const State& state) { return state.output == output; });
}

Sequences declared_sequences(const Json& config) {
  const Json& batcher = config["sequence_batching"];
  Sequences found;
  found.inputs.batched = config.has("sequence_batching");
  if (batcher["iterative_sequence"].truthy()) {
    throw Error("config.pbtxt asks for iterative sequences, which this backend has not");
  }
  std::vector<std::string> outputs;
  for (const auto& [name, type] : controls(batcher)) {
    found.provided.push_back(name);
    if (type == "TYPE_STRING") found.inputs.text_id = name;
  }
  for (const Json& entry : batcher["control_input"].items()) {
    for (const Json& control : entry["control"].items()) {
      bool is_id = control["kind"].string() == "CONTROL_SEQUENCE_CORRID";
      if (is_id && found.inputs.text_id.empty()) found.inputs.number_id = entry["name"].string();
    }
  }
  for (const Json& entry : batcher["state"].items()) {
    const std::string& name = entry["input_name"].string();
    for (const char* field : {"use_same_buffer_for_input_output", "use_growable_memory"}) {
      if (entry[field].truthy()) {
        throw Error(std::string("config.pbtxt sets ") + field + " for state '" + name +
                    "', which this backend has not");
      }
    }
    found.states.push_back({name, entry["output_name"].string(), !entry["initial_state"].truthy(), ""});
    found.provided.push_back(name);
    outputs.push_back(found.states.back().output);
  }
  refuse_twice(found.provided);
  refuse_twice(outputs);
  for (const Json& entry : config["input"].items()) {
    if (found.provides(entry["name"].string())) {
      throw Error("config.pbtxt names the input '" + entry["name"].string() + "', which sequence_batching provides");
    }
  }
  choose_carriers(found.states);
  return found;
}

void check_sequences(const Json& config, const std::vector<Tensor>& tensors, bool batching) {
  const Json& batcher = config["sequence_batching"];
  for (const auto& [name, type] : controls(batcher)) {
    check_tensor("control input", named(tensors, true, name, "control input"), type, {1}, batching, true);
  }
  for (const Json& entry : batcher["state"].items()) {
    std::vector<int64_t> dims = numbers(entry["dims"]), first = dims;
    for (bool input : {true, false}) {
      std::string role = input ? "state input" : "state output";
      const Tensor& tensor = named(tensors, input, entry[input ? "input_name" : "output_name"].string(), role);
      check_tensor(role, tensor, entry["data_type"].string(), dims, batching, false);
    }
    std::replace(first.begin(), first.end(), int64_t{-1}, int64_t{1});
    for (const Json& initial : entry["initial_state"].items()) {
      if (std::vector<int64_t> begins = numbers(initial["dims"]); begins != first) {
        throw Error("config.pbtxt has initial_state with dims " + shown(begins) + " for state '" +
                    entry["input_name"].string() + "', expected " + shown(first) +
                    " (Triton begins each variable dimension of a state with 1)");
      }
    }
  }
}

void begin_with_zeros(Request& request, const std::vector<Tensor>& inputs, const std::vector<State>& states) {
  uint32_t flags = 0;
  ignore(TRITONBACKEND_RequestFlags(request.triton, &flags));
  if ((flags & kSequenceStart) == 0) return;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    bool zero = std::any_of(states.begin(), states.end(),
                            [&](const State& state) { return state.zero && state.input == inputs[i].name; });
    // Strings are empty already.
    if (zero && type_of_name(inputs[i].type)->size != 0) request.inputs[i].clear();
  }
}

void* next_state(const Request& request, const State& state, const Type& type, std::vector<int64_t> shape,
                 size_t bytes, TRITONBACKEND_State** handle) {
  call(TRITONBACKEND_StateNew(handle, request.triton, state.carrier.c_str(), type.triton, shape.data(),
                              static_cast<uint32_t>(shape.size())));
  void* buffer = nullptr;
  TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
  int64_t memory_id = 0;
  call(TRITONBACKEND_StateBuffer(*handle, &buffer, bytes, &memory, &memory_id));
  if (memory == TRITONSERVER_MEMORY_GPU) throw Error("state '" + state.output + "' lies in the memory of a GPU");
  return buffer;
}
