// Package worker runs a GPU engine in a process of its own. The boundary is a model's step: Backend
// is the parent's side, an engine.Backend whose models take batches and return logits or tokens;
// Serve is the worker, which opens the GPUs and the checkpoint itself and runs the same code as an
// engine in this process.
// Why: a static executable cannot load a driver, and a driver that crashes, hangs or loses its card
// ends its process. So the release embeds a dynamic program, the worker: only that process is lost,
// and it is started again.
//
// The two talk over a socket that the worker inherits as descriptor 3, and share the memory that it
// inherits as descriptor 4. What must stay true:
//   - A step costs one message each way, however large it is: its data is in shared memory.
//   - Weights do not pass through here: the worker opens the parent's very files, or refuses.
//   - Every wait has an end: the worker's death is seen at once, and a late answer ends it.
//   - Input from the other side is not trusted: lengths, numbers and kinds are checked before they
//     are used.
//   - A worker never outlives its parent: it gets SIGKILL with it, and ends when the socket closes.
package worker
