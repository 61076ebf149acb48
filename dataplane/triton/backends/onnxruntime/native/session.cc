#include "session.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace {

using Options = Owned<OrtSessionOptions, &Ort::ReleaseSessionOptions>;

// The message on one line, as Triton's log needs it, and at most 500 characters of it.
std::string one_line(const std::string& words) {
  std::string out;
  for (char c : words) {
    bool space = c == ' ' || (c >= '\t' && c <= '\r');
    if (!space) out += c;
    if (space && !out.empty() && out.back() != ' ') out += ' ';
  }
  while (!out.empty() && out.back() == ' ') out.pop_back();
  if (out.size() <= 500) return out;
  size_t end = 500;
  // Not within a character.
  while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xC0) == 0x80) --end;
  return out.substr(0, end);
}

int number(const Json& config, const std::string& name) {
  const std::string& text = config["parameters"][name]["string_value"].string();
  if (text.empty()) return 0;
  char* end = nullptr;
  long value = std::strtol(text.c_str(), &end, 10);
  bool digits = end != text.c_str();
  while (*end == ' ') ++end;
  if (!digits || *end != '\0' || value != static_cast<int>(value)) {
    throw Error("config.pbtxt has " + name + " '" + text + "', which is not a number");
  }
  return static_cast<int>(value);
}

// The values of optimization { graph { level } }, as Triton's own backend of this name reads them;
// 0: not set.
int optimization(const Json& config) {
  switch (int64_t level = config["optimization"]["graph"]["level"].integer()) {
    case 0: return 99;  // ORT_ENABLE_ALL
    case -1: return 1;  // ORT_ENABLE_BASIC
    case 1: return 2;   // ORT_ENABLE_EXTENDED
    case 2: return 0;   // ORT_DISABLE_ALL
    default: throw Error("config.pbtxt has graph level " + std::to_string(level) + ", known are [-1, 0, 1, 2]");
  }
}

// The cores of this instance (AMPHITRITE_CORES). Copies that run at once share them: threads do not
// spin, so nothing is lost, and a single request has them all.
int cores() {
  cpu_set_t set;
  int usable = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  const char* given = std::getenv("AMPHITRITE_CORES");
  return given != nullptr && std::atoi(given) > 0 ? std::min(usable, std::atoi(given)) : usable;
}

void choose(const Ort& ort, const Json& config, Options& options) {
  ort.check(ort.CreateSessionOptions(options.out()));
  OrtSessionOptions* chosen = options.get();
  ort.check(ort.SetSessionGraphOptimizationLevel(chosen, optimization(config)));
  int intra = number(config, "intra_op_thread_count"), inter = number(config, "inter_op_thread_count");
  ort.check(ort.SetIntraOpNumThreads(chosen, intra != 0 ? intra : cores()));
  ort.check(ort.SetInterOpNumThreads(chosen, inter != 0 ? inter : 1));
  if (number(config, "execution_mode") != 0) ort.check(ort.SetSessionExecutionMode(chosen, 1));
  // Spinning threads would take the cores from Triton, the proxy and the other instances of a small
  // machine.
  ort.check(ort.AddSessionConfigEntry(chosen, "session.intra_op.allow_spinning", "0"));
  std::ifstream cpuinfo("/proc/cpuinfo");  // Where it cannot be read, answers are right rather than fast.
  if (overflows(cpuinfo)) ort.check(ort.AddSessionConfigEntry(chosen, "session.x64quantprecision", "1"));
  ort.check(ort.SetSessionLogSeverityLevel(chosen, 3));
}

// tensor(float), seq(...), map(...), as ONNX Runtime's Python interface calls it.
std::string type_name(const Ort& ort, const OrtTypeInfo* info) {
  int kind = 0;
  ort.check(ort.GetOnnxTypeFromTypeInfo(info, &kind));
  if (kind == 1) {
    const OrtTensorTypeAndShapeInfo* tensor = nullptr;
    int element = 0;
    ort.check(ort.CastTypeInfoToTensorInfo(info, &tensor));
    ort.check(ort.GetTensorElementType(tensor, &element));
    return "tensor(" + element_name(element) + ")";
  }
  if (kind == 2) {
    const OrtSequenceTypeInfo* sequence = nullptr;
    TypeInfo inner(ort);
    ort.check(ort.CastTypeInfoToSequenceTypeInfo(info, &sequence));
    ort.check(ort.GetSequenceElementType(sequence, inner.out()));
    return "seq(" + type_name(ort, inner.get()) + ")";
  }
  if (kind == 3) {
    const OrtMapTypeInfo* map = nullptr;
    TypeInfo inner(ort);
    int key = 0;
    ort.check(ort.CastTypeInfoToMapTypeInfo(info, &map));
    ort.check(ort.GetMapKeyType(map, &key));
    ort.check(ort.GetMapValueType(map, inner.out()));
    return "map(" + element_name(key) + "," + type_name(ort, inner.get()) + ")";
  }
  return kind == 5 ? "sparse_tensor" : kind == 6 ? "optional" : "opaque";
}

Shape shape_of(const Ort& ort, const OrtTypeInfo* info) {
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  ort.check(ort.CastTypeInfoToTensorInfo(info, &tensor));
  if (tensor == nullptr) return {};
  size_t count = 0;
  ort.check(ort.GetDimensionsCount(tensor, &count));
  std::vector<int64_t> numbers(count);
  std::vector<const char*> symbols(count);
  ort.check(ort.GetDimensions(tensor, numbers.data(), count));
  ort.check(ort.GetSymbolicDimensions(tensor, symbols.data(), count));
  Shape shape(count);
  for (size_t i = 0; i < count; ++i) {
    shape[i].number = numbers[i];
    if (symbols[i] != nullptr) shape[i].symbol = symbols[i];
  }
  return shape;
}

}  // namespace

// Without VNNI the usual kernels add products of 8-bit numbers in 16 bits. The sums saturate, and the answers differ from
// those of other CPUs. The exact kernels are slower. With VNNI they would cost time and change nothing. On other
// architectures than x86 ONNX Runtime ignores the setting.
bool overflows(std::istream& cpuinfo) {
  std::string line, flag;
  while (std::getline(cpuinfo, line)) {
    if (line.compare(0, 5, "flags") != 0) continue;
    std::istringstream flags(line);
    while (flags >> flag) {
      if (flag == "avx512_vnni" || flag == "avx_vnni") return false;
    }
    break;  // All cores have the same.
  }
  return true;
}

Session::Session(const Ort& ort, const std::string& path, const Json& config) : ort_(ort), session_(ort) {
  try {
    Options options(ort);
    choose(ort, config, options);
    ort.check(ort.CreateSession(ort.env, path.c_str(), options.get(), session_.out()));
    describe(true);
    describe(false);
  } catch (const std::exception& error) {
    throw Error("ONNX Runtime cannot load " + path.substr(path.rfind('/') + 1) + ": " + one_line(error.what()));
  }
  for (const std::string& name : input_names_) inputs_.push_back(name.c_str());
}

void Session::describe(bool input) {
  size_t count = 0;
  ort_.check((input ? ort_.SessionGetInputCount : ort_.SessionGetOutputCount)(session_.get(), &count));
  for (size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    TypeInfo info(ort_);
    auto name_of = input ? ort_.SessionGetInputName : ort_.SessionGetOutputName;
    ort_.check(name_of(session_.get(), i, ort_.allocator, &name));
    std::string copied = name;
    ort_.check(ort_.AllocatorFree(ort_.allocator, name));
    ort_.check((input ? ort_.SessionGetInputTypeInfo : ort_.SessionGetOutputTypeInfo)(session_.get(), i, info.out()));
    if (input) input_names_.push_back(copied);
    tensors_.push_back({input, copied, type_name(ort_, info.get()), shape_of(ort_, info.get())});
  }
}

std::vector<Value> Session::run(const std::vector<Value>& inputs, const std::vector<const char*>& wanted) const {
  std::vector<const OrtValue*> given;
  for (const Value& value : inputs) given.push_back(value.get());
  std::vector<OrtValue*> made(wanted.size(), nullptr);
  OrtStatus* status = ort_.Run(session_.get(), nullptr, inputs_.data(), given.data(), given.size(), wanted.data(),
                               wanted.size(), made.data());
  std::vector<Value> outputs;
  for (OrtValue* value : made) {
    outputs.emplace_back(ort_);
    *outputs.back().out() = value;
  }
  try {
    ort_.check(status);
  } catch (const std::exception& error) {
    throw Error("ONNX Runtime: " + one_line(error.what()));
  }
  return outputs;
}
