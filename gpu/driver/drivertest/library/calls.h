// What both vendors' functions do, in the argument order they share; cuda.cpp and hip.cpp give them
// their names.
//
// Every function goes through entered(): it takes the lock, counts the call, applies the rule for
// failures and refuses what a lost device or a missing initialisation refuses.
#ifndef OSSRUN_FAKEDRIVER_CALLS_H_
#define OSSRUN_FAKEDRIVER_CALLS_H_

#include "machine.h"

namespace fake {

// How a function behaves when it is told to fail: a function that frees does its work and fails all
// the same, since real ones return the error of earlier work; the others do nothing.
enum class Failing { kNothing, kWorks };

// current: the device that this thread uses; -1 when the function needs none.
int entered(const char* name, bool needs_context, Failing failing,
            const std::function<int(int current)>& body);
void use(int device);  // of this thread; -1: none
// Whether this thread may launch in a queue: it must use the queue's device. Copies may be queued
// from any.
bool launchable(Stream* s);
// Allocates and frees wait for the device, or may: no thread does that while it captures.
int allocate(int device, size_t bytes, uintptr_t* at);
int release(int device, uintptr_t at, bool host);

int initialize();
int device_count(int* n);
int device_get(int* device, int index);
int device_name(char* to, int n, int device);
int device_pci(char* to, int n, int device);
int device_total(size_t* bytes, int device);
int memory_info(size_t* free, size_t* total, int device);
int host_alloc(void** at, size_t bytes);
int copy_in(uintptr_t to, const void* from, size_t n, Stream* s);
int copy_out(void* to, uintptr_t from, size_t n, Stream* s);
int copy_inside(uintptr_t to, uintptr_t from, size_t n, Stream* s);
int memory_set(uintptr_t to, unsigned char value, size_t n, Stream* s);
int module_load(Module** m, const char* image, int device);
int module_unload(Module* m);
int module_function(Function** f, Module* m, const char* name);
int stream_create(Stream** s, int device);
int stream_destroy(Stream* s);
int stream_wait(Stream* s, Event* e);
int stream_synchronize(Stream* s);
int event_create(Event** e, unsigned flags, int device);
int event_destroy(Event* e);
int event_record(Event* e, Stream* s);
int event_synchronize(Event* e);
int event_elapsed(float* ms, Event* start, Event* end);
int capture_begin(Stream* s);
int capture_end(Stream* s, Graph** g);
int graph_instantiate(Graph** exec, Graph* g);
int graph_launch(Graph* exec, Stream* s);
int graph_destroy(Graph* g);
int graph_exec_destroy(Graph* g);

const char* code_name(int code);
const char* code_text(int code);

}  // namespace fake

#endif  // OSSRUN_FAKEDRIVER_CALLS_H_
